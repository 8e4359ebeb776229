//! Each rule finds what breaks it, where it is, and nothing else.

use xtask::Rule;

use crate::tree::Checkout;

const DOOR: &str = "crates/access/door";

#[test]
fn a_checkout_that_meets_every_rule_is_tidy() {
    let outcome = Checkout::new().tidy();
    assert!(outcome.is_tidy(), "{outcome}");
}

#[test]
fn a_crate_depends_only_on_rows_above_its_own() {
    let manifest = "[package]\nname = \"inner\"\n[dependencies]\nprocess.workspace = true\nserde = \"1\"\n";
    let checkout = Checkout::new().file("crates/core/inner/Cargo.toml", manifest);
    assert_eq!(checkout.places(Rule::Rings), ["crates/core/inner/Cargo.toml:4"]);
    assert!(!checkout.tidy().is_tidy());
}

#[test]
fn a_way_in_does_not_depend_on_a_process() {
    let manifest = "[package]\nname = \"door\"\n[dependencies]\ninner = { path = \"..\" }\nprocess = { path = \"..\" }\n";
    let checkout = Checkout::new().file("crates/access/door/Cargo.toml", manifest);
    assert_eq!(checkout.places(Rule::Rings), ["crates/access/door/Cargo.toml:5"]);
}

#[test]
fn members_on_one_line_stand_in_its_order() {
    let workspace = "[workspace]\nmembers = [\n    # ring 0: decisions\n    \"crates/core/inner\", \"crates/core/outer\",\n    # ring 2b: ways in\n    \"crates/access/door\",\n]\n";
    let manifest = |name: &str, on: &str| format!("[package]\nname = \"{name}\"\n[dependencies]\n{on}.workspace = true\n");
    let checkout = |inner: &str, outer: &str| {
        Checkout::new()
            .file("Cargo.toml", workspace)
            .file("crates/core/inner/Cargo.toml", &manifest("inner", inner))
            .file("crates/core/outer/Cargo.toml", &manifest("outer", outer))
    };
    assert!(checkout("serde", "inner").found(Rule::Rings).is_empty());
    assert_eq!(checkout("outer", "serde").places(Rule::Rings), ["crates/core/inner/Cargo.toml:4"]);
}

#[test]
fn tests_may_depend_on_any_row() {
    let manifest = "[package]\nname = \"inner\"\n[dev-dependencies]\ntesting.workspace = true\n";
    assert!(Checkout::new().file("crates/core/inner/Cargo.toml", manifest).found(Rule::Rings).is_empty());
}

#[test]
fn a_long_file_weighs_what_is_past_the_limit() {
    let checkout = Checkout::new().file("crates/access/door/src/a.rs", &format!("//! Long.\n{}", "\n".repeat(409)));
    let found = checkout.found(Rule::FileLines);
    assert_eq!((found[0].path.as_str(), found[0].weight), ("crates/access/door/src/a.rs", 10));
}

#[test]
fn a_long_function_is_found_by_its_braces_and_not_by_those_in_strings() {
    let long = format!("//! A.\nfn short() {{ say(\"{{\"); }}\nfn long(of: [u8; 4]) {{\n{}}}\n", "    a('{');\n".repeat(120));
    let found = Checkout::new().file("crates/access/door/src/a.rs", &long).found(Rule::FunctionLines);
    assert_eq!(found.iter().map(|finding| (finding.line, finding.weight)).collect::<Vec<_>>(), [(3, 22)]);
}

#[test]
fn a_crowded_folder_weighs_the_files_past_the_limit() {
    let mut checkout = Checkout::new();
    for index in 0..16 {
        checkout = checkout.file(&format!("{DOOR}/src/part/f{index}.rs"), "//! A part.\n");
    }
    let found = checkout.found(Rule::FolderFiles);
    assert_eq!((found[0].path.as_str(), found[0].weight), ("crates/access/door/src/part", 2));
}

#[test]
fn a_wide_struct_weighs_its_fields_past_the_limit() {
    let rows = |count: usize| (0..count).map(|index| format!("    f{index}: [u8; 1 << 2],\n")).collect::<String>();
    let odd = "    #[arg(value_parser = a::b(1..=1 << 53), long = \"a: b\")]\n    g: Map<a::B, fn(c: u8) -> u8>, // d: e\n";
    let code = format!(
        "//! A.\nstruct Marker;\nstruct Pair(u8, u8);\nstruct Most<T: Fn(u8)> {{\n{}{odd}}}\n\npub struct More {{\n{}{odd}}}\nenum One {{ A {{ {} }} }}\n",
        rows(11),
        rows(13),
        rows(13),
    );
    let found = Checkout::new().file("crates/access/door/src/a.rs", &code).found(Rule::StructFields);
    let found: Vec<_> = found.iter().map(|finding| (finding.line, finding.weight, finding.what.as_str())).collect();
    assert_eq!(found, [(20, 2, "`More` has 14 fields, 12 are the most")]);
}

#[test]
fn a_file_of_a_few_lines_is_found_unless_it_has_a_type_or_is_where_a_room_begins() {
    let few = "//! A struct of words alone.\nfn a() {}\n";
    let checkout = Checkout::new()
        .file("crates/access/door/src/a.rs", few)
        .file("crates/access/door/src/b.rs", "//! B.\ntrait B {}\n")
        .file("crates/access/door/src/c.rs", &format!("//! C.\n{}", "\n".repeat(29)))
        .file("crates/access/door/src/room/mod.rs", few)
        .file("crates/access/door/src/bin/door.rs", few)
        .file("crates/access/door/src/lib.rs", "//! A.\n#[cfg(test)]\nmod tests;\n")
        .file("crates/access/door/src/tests.rs", few)
        .file("crates/access/door/tests/suite/d.rs", few);
    assert_eq!(checkout.places(Rule::SmallFiles), ["crates/access/door/src/a.rs:0"]);
}

#[test]
fn a_file_without_a_head_is_found() {
    let checkout = Checkout::new().file("crates/access/door/src/a.rs", "// Not a head.\n");
    assert_eq!(checkout.places(Rule::Heads), ["crates/access/door/src/a.rs:1"]);
}

#[test]
fn names_that_say_nothing_and_work_left_undone_are_found() {
    let checkout = Checkout::new()
        .file("crates/access/door/src/utils/mod.rs", "//! What?\n")
        .file("crates/access/door/src/a.rs", "//! A `todo!` in words is none.\nfn a() {\n    todo!()\n}\n");
    assert_eq!(checkout.places(Rule::Words), ["crates/access/door/src/a.rs:3", "crates/access/door/src/utils/mod.rs:0"]);
}

#[test]
fn a_path_into_somebodys_home_is_found_and_one_into_anybodys_is_not() {
    let homes = ["/home/", "jane/notes, but ", "/home/", "user/notes and https://a.b/home/", "page are for all\n"].concat();
    let checkout = Checkout::new().file("docs/a.md", &format!("# A\n\n{homes}")).file("docs/b.md", &homes[18..]);
    assert_eq!(checkout.places(Rule::Words), ["docs/a.md:3"]);
}

#[test]
fn functions_of_a_type_outside_of_its_room_are_found() {
    let hall = "//! A.\npub struct Hall<T>(T);\nimpl<T: Fn() -> u8> Hall<T> {}\nimpl Drop for Cellar {}\n";
    let up = "//! A.\nstruct Stair;\nimpl<T> super::super::Hall<T> {}\n";
    let down = "//! A.\nimpl Stair {}\n#[cfg(test)]\nmod tests {\n    impl Hall<u16> {}\n}\n";
    let cellar = "//! A.\nimpl<T: Fn() -> u8> crate::Hall<T> {}\nimpl Default for Hall<u8> {}\nfn a(of: impl Fn(Hall<u8>)) {}\n";
    let checkout = Checkout::new()
        .file("crates/access/door/src/hall/mod.rs", hall)
        .file("crates/access/door/src/hall/stairs/up.rs", up)
        .file("crates/access/door/src/hall/stairs/deep/down.rs", down)
        .file("crates/access/door/src/cellar.rs", cellar);
    let found = ["crates/access/door/src/cellar.rs:2", "crates/access/door/src/hall/stairs/deep/down.rs:2"];
    assert_eq!(checkout.places(Rule::Rooms), found);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = "[there](b.md#part) [gone](c.md)\n[web](https://a.b/c.md) `[code](d.md)`\n```\n[block](e.md)\n```\n";
    let checkout = Checkout::new().file("docs/a.md", page).file("docs/b.md", "# B\n\n## Part\n");
    assert_eq!(checkout.places(Rule::Links), ["docs/a.md:1"]);
}

#[test]
fn a_link_to_a_heading_that_is_not_there_is_found() {
    let page = "# A\n\n[it](#a) [there](b/c.md#its-name-by-hand) [second](b/c.md#its-name-by-hand-1)\n[gone](b/c.md#gone) [own](#gone)\n";
    let other = "# C\n\n## Its `name`, by hand\n\n## Its name by hand\n\n```\n# gone\n```\n[back](../a.md#a)\n";
    let checkout = Checkout::new().file("docs/a.md", page).file("docs/b/c.md", other);
    assert_eq!(checkout.places(Rule::Links), ["docs/a.md:4", "docs/a.md:4"]);
}

#[test]
fn a_page_that_is_not_in_the_contents_is_found_and_one_that_is_there_twice() {
    let contents = "# Contents\n\n- [A](a.md)\n  - [B](b/c.md)\n- [A again](a.md)\n";
    let checkout = Checkout::new().file("docs/a.md", "# A\n").file("docs/b/c.md", "# C\n").file("docs/b/d.md", "# D\n");
    assert!(checkout.places(Rule::Pages).is_empty(), "there is no book");
    let checkout =
        checkout.file("docs/SUMMARY.md", contents).file("docs/picture.svg", "").file("b/e.md", "# No page of the book\n");
    assert_eq!(checkout.places(Rule::Pages), ["docs/SUMMARY.md:5", "docs/b/d.md:0"]);
}

#[test]
fn assertions_count_where_state_is_changed_and_not_in_tests() {
    let code = "//! A.\nfn a() {\n    assert!(true);\n}\n#[cfg(test)]\nmod tests {\n    fn b() { assert_eq!(1, 1); }\n}\n";
    let found = Checkout::new().file("crates/access/door/src/lib.rs", code).found(Rule::Assertions);
    let door = found.iter().find(|finding| finding.owner == DOOR).unwrap();
    assert_eq!((door.weight, door.what.as_str()), (1250, "1 assertions in 8 lines"));
}

#[test]
fn clocks_chance_and_tasks_are_found_in_what_is_shipped_alone() {
    let code = "//! A.\nuse std::time::Instant;\nfn a() {\n    Instant::now(); // Instant::now\n    tokio::spawn(b());\n    strand::c();\n}\n";
    let checkout = Checkout::new()
        .file("crates/access/door/src/a.rs", code)
        .file("crates/access/door/src/lib.rs", "//! A.\nmod a;\n#[cfg(test)]\nmod steps;\n#[cfg(test)]\nmod tests;\n")
        .file("crates/access/door/src/steps.rs", code)
        .file("crates/access/door/src/tests/a.rs", code)
        .file("crates/access/door/tests/suite/main.rs", code)
        .file("testing/src/lib.rs", code);
    assert_eq!(checkout.places(Rule::Clocks), ["crates/access/door/src/a.rs:4"]);
    assert_eq!(checkout.places(Rule::Tasks), ["crates/access/door/src/a.rs:5"]);
    assert!(checkout.found(Rule::Chance).is_empty());
}
