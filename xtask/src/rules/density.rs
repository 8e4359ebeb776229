//! How many assertions a crate has for what it is: who changes state says what must hold.

use std::collections::BTreeMap;

use crate::rule::{Finding, Rule};
use crate::source::find_words;
use crate::tree::Tree;

/// Rooms that change state.
const ROOMS: [&str; 3] = ["crates/core/", "crates/cluster/", "crates/access/"];
const ASSERTIONS: [&str; 6] = ["assert!", "assert_eq!", "assert_ne!", "debug_assert!", "debug_assert_eq!", "debug_assert_ne!"];
/// Tenths for each thousand lines.
const SCALE: usize = 10_000;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in tree.rust.iter().filter(|file| file.is_shipped && ROOMS.iter().any(|room| file.owner.starts_with(room))) {
        let (assertions, lines) = crates.entry(&file.owner).or_default();
        *assertions += ASSERTIONS.iter().map(|word| find_words(&file.source.shipped, word).count()).sum::<usize>();
        *lines += file.source.lines();
    }
    let finding = |(owner, (assertions, lines)): (&str, (usize, usize))| Finding {
        rule: Rule::Assertions,
        owner: owner.to_owned(),
        path: owner.to_owned(),
        line: 0,
        weight: assertions * SCALE / lines.max(1),
        what: format!("{assertions} assertions in {lines} lines"),
    };
    crates.into_iter().map(finding).collect()
}
