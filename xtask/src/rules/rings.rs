//! A crate depends only on members that stand before it, and the ways in do not depend on the processes.

use std::collections::HashMap;

use crate::manifest::{dependencies, package_name};
use crate::rule::{Finding, Rule};
use crate::tree::Tree;

/// It has no code: only what the engine's features are, for crates of any ring.
const BESIDE: &str = "forebay-features";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let names: HashMap<&str, usize> = tree
        .rows
        .iter()
        .enumerate()
        .filter_map(|(index, row)| Some((package_name(&tree.manifests[&row.folder])?, index)))
        .collect();
    let mut findings = Vec::new();
    for (index, row) in tree.rows.iter().enumerate() {
        for (line, name) in dependencies(&tree.manifests[&row.folder]) {
            let Some(&on) = names.get(name).filter(|_| name != BESIDE) else { continue };
            let what = if on >= index {
                format!("depends on {name}, which does not stand before it in Cargo.toml's members")
            } else if row.ring == "2b" && tree.rows[on].ring == "2a" {
                format!("depends on {name}: rings 2a and 2b meet only through core/protocol")
            } else {
                continue;
            };
            let path = format!("{}/Cargo.toml", row.folder);
            findings.push(Finding { rule: Rule::Rings, owner: row.folder.clone(), path, line, weight: 1, what });
        }
    }
    findings
}
