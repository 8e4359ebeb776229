//! Which modules are where the page of the architecture does not have them.

use xtask::Rule;

use crate::tree::Checkout;

/// What is said of a crate's floors, with a row of them in the page.
fn floors(row: &str, files: &[(&str, &str)]) -> Vec<String> {
    let page = format!("# A\n\n| crate | floors |\n|---|---|\n| [door](crates/access/door/src/lib.rs) | {row} |\n");
    let mut checkout = Checkout::new().file("ARCHITECTURE.md", &page);
    for (name, code) in files {
        checkout = checkout.file(&format!("crates/access/door/src/{name}.rs"), &format!("//! A module.\n{code}"));
    }
    let found = checkout.found(Rule::Floors);
    assert!(found.iter().all(|finding| (finding.path.as_str(), finding.line) == ("ARCHITECTURE.md", 5)));
    found.iter().map(|finding| finding.what.clone()).collect()
}

const DOWN: [(&str, &str); 3] = [("a", ""), ("b", "use crate::a::A;"), ("c", "use crate::{a::A, b::B};")];

#[test]
fn floors_that_know_only_those_below_are_as_they_should_be() {
    assert!(floors("`a` < `b` < `c`", &DOWN).is_empty());
}

#[test]
fn a_module_that_uses_one_above_is_found() {
    assert_eq!(floors("`b` < `a` < `c`", &DOWN), ["in crates/access/door `b` uses `a`, which is not on a floor below its own"]);
}

#[test]
fn modules_on_one_floor_do_not_use_each_other() {
    assert_eq!(floors("`a` < `b`, `c`", &DOWN), ["in crates/access/door `c` uses `b`, which is not on a floor below its own"]);
}

#[test]
fn a_name_of_no_module_is_found() {
    assert_eq!(floors("`a` < `gone` < `c`", &DOWN), ["`gone` is no module of crates/access/door"]);
}

#[test]
fn what_is_not_named_is_free() {
    assert!(floors("`a` < `c`", &[("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "use crate::b::B;")]).is_empty());
}
