//! The rules, one file a kind: each takes the tree and says the places that do not meet it.

mod arrows;
mod circles;
mod density;
mod doors;
mod fields;
mod files;
mod floors;
mod links;
mod pages;
mod rings;
mod rooms;
mod sizes;
mod words;

use crate::rule::Finding;
use crate::tree::Tree;

/// The findings of all rules.
pub(crate) fn run(tree: &Tree) -> Vec<Finding> {
    let rules = [
        rings::find,
        sizes::find,
        fields::find,
        files::find,
        words::find,
        circles::find,
        floors::find,
        rooms::find,
        links::find,
        pages::find,
        density::find,
        doors::find,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}
