//! The circles of a graph: sets of boxes in which each one is reached from each other one.

use std::collections::BTreeSet;

use crate::rules::arrows::Arrows;

/// The circles, each one sorted. Graphs are of a folder's size, so that one walk a box is cheap.
pub(super) fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    for from in arrows.keys() {
        if found.iter().any(|circle| circle.contains(from)) {
            continue;
        }
        let ahead = reached(arrows, from);
        if ahead.contains(from.as_str()) {
            let back = |other: &&&str| reached(arrows, other).contains(from.as_str());
            found.push(ahead.iter().filter(back).map(|name| (*name).to_owned()).collect());
        }
    }
    found
}

/// What is reached by at least one arrow.
fn reached<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = arrows.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(name) = next.pop() {
        if reached.insert(name) {
            next.extend(arrows.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}
