//! Which modules stand on a circle.

use xtask::Rule;

use crate::tree::Checkout;

/// What is said of circles in a crate of these files.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let mut checkout = Checkout::new();
    for (path, code) in files {
        checkout = checkout.file(&format!("crates/access/door/src/{path}"), &format!("//! A module.\n{code}"));
    }
    checkout.found(Rule::Circles).iter().map(|finding| finding.what.clone()).collect()
}

#[test]
fn arrows_one_way_are_no_circle() {
    assert!(circles(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::{C, D};"), ("c.rs", "pub struct C;")]).is_empty());
}

#[test]
fn three_modules_that_lead_round_are_one_circle() {
    let found = circles(&[
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::{c::C, d::D};"),
        ("c.rs", "fn c() { crate::a::a() }"),
        ("d.rs", ""),
    ]);
    assert_eq!(found, ["3 modules in a circle: a, b, c"]);
}

#[test]
fn a_folder_is_one_module_to_those_beside_it() {
    let found = circles(&[("a/mod.rs", "mod in_a;"), ("a/in_a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")]);
    assert_eq!(found, ["2 modules in a circle: a, b"]);
}

#[test]
fn circles_inside_of_a_folder_are_found() {
    let found = circles(&[("a/mod.rs", "mod x;\nmod y;"), ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use super::x::X;")]);
    assert_eq!(found, ["2 modules in a circle: x, y"]);
}

#[test]
fn a_module_and_what_lies_in_it_are_one_thing() {
    assert!(circles(&[("a/mod.rs", "mod x;\nuse x::X;"), ("a/x.rs", "use super::A;")]).is_empty());
}

#[test]
fn a_name_that_the_crate_passes_on_leads_to_where_it_is_made() {
    let found =
        circles(&[("lib.rs", "mod a;\nmod b;\npub use b::{Other, B};"), ("a.rs", "use crate::B;"), ("b.rs", "use super::a::A;")]);
    assert_eq!(found, ["2 modules in a circle: a, b"]);
}

#[test]
fn words_in_comments_and_tests_are_no_arrows() {
    let tests = "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    assert!(circles(&[("a.rs", "use crate::b::B;"), ("b.rs", tests)]).is_empty());
}
