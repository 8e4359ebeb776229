//! What is let stand, and that it only becomes less.

use xtask::{RATCHET_PATH, tidy};

use crate::tree::Checkout;

/// A checkout with so many files without a head, and a ratchet that lets so many stand.
fn checkout(headless: usize, ratchet: &str) -> Checkout {
    let mut checkout = Checkout::new().file(RATCHET_PATH, ratchet);
    for index in 0..headless {
        checkout = checkout.file(&format!("crates/access/door/src/f{index}.rs"), "struct F;\n");
    }
    checkout
}

#[test]
fn what_the_table_lets_stand_is_tidy_and_one_more_is_not() {
    assert!(checkout(2, "heads crates/access/door 2\n").tidy().is_tidy());
    let worse = checkout(3, "heads crates/access/door 2\n").tidy();
    assert!(!worse.is_tidy());
    let said = worse.to_string();
    assert!(said.contains("crates/access/door: heads: 3, and 2 is the most"), "{said}");
    assert!(said.contains("crates/access/door/src/f0.rs:1: heads: does not begin with `//!`"), "{said}");
    assert!(said.contains("remedy: begin the file"), "{said}");
}

#[test]
fn an_update_lowers_a_number_and_raises_none() {
    let better = checkout(1, "heads crates/access/door 2\nheads crates/access/gone 7\n");
    assert!(better.tidy().to_string().contains("may be tightened"));
    assert!(tidy(better.root(), true).unwrap().is_tidy());
    assert_eq!(better.ratchet(), "heads crates/access/door 1");

    let worse = checkout(3, "heads crates/access/door 2\n");
    assert!(!tidy(worse.root(), true).unwrap().is_tidy());
    assert_eq!(worse.ratchet(), "heads crates/access/door 2");
}

#[test]
fn assertions_may_only_become_more() {
    let least = "assertions crates/access/door 500\n";
    let code = |count: usize| format!("//! A.\nfn a() {{\n{}}}\n", "    assert!(true);\n".repeat(count));
    let file = "crates/access/door/src/lib.rs";
    assert!(!Checkout::new().file(RATCHET_PATH, least).tidy().is_tidy());
    let more = Checkout::new().file(RATCHET_PATH, least).file(file, &code(1));
    assert!(tidy(more.root(), true).unwrap().is_tidy());
    assert_eq!(more.ratchet(), "assertions crates/access/door 2500");
}

#[test]
fn without_a_table_an_update_begins_with_what_is_there() {
    let checkout = checkout(2, "");
    std::fs::remove_file(checkout.root().join(RATCHET_PATH)).unwrap();
    assert!(!checkout.tidy().is_tidy());
    assert!(tidy(checkout.root(), true).unwrap().is_tidy());
    assert_eq!(checkout.ratchet(), "heads crates/access/door 2");
}

#[test]
fn a_line_that_says_nothing_or_says_it_twice_is_an_error_with_its_place() {
    for (ratchet, place) in [("heads crates/a\n", ":1"), ("heads a 1\nfeet a 1\n", ":2"), ("heads a 1\n\nheads a 2\n", ":3")] {
        let error = tidy(checkout(0, ratchet).root(), false).err().unwrap().to_string();
        assert!(error.contains(&format!("{RATCHET_PATH}{place} ")), "{error}");
    }
}
