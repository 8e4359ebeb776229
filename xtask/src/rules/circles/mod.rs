//! Modules of a crate that can be understood only together, since each one leads back to itself through the others.
//!
//! At every folder the modules in it are boxes, and a path from inside one into another is an arrow. What a crate's number
//! counts are the boxes on a circle. Arrows between a module and what lies inside it are not counted: that is one thing.

mod modules;
mod paths;
mod round;

use std::collections::{BTreeMap, BTreeSet};

use crate::rule::{Finding, Rule};
use crate::tree::{RustFile, Tree};
use modules::Modules;

/// Which box has an arrow to which, in one folder.
type Arrows = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &tree.rows {
        let files: Vec<&RustFile> = tree.rust.iter().filter(|file| file.owner == row.folder && file.is_shipped).collect();
        let modules = Modules::new(&row.folder, &files);
        for (folder, arrows) in arrows(&modules) {
            for circle in round::circles(&arrows) {
                let inside = if folder.is_empty() { String::new() } else { format!("/{}", folder.join("/")) };
                findings.push(Finding {
                    rule: Rule::Circles,
                    owner: row.folder.clone(),
                    path: format!("{}/src{inside}", row.folder),
                    line: 0,
                    weight: circle.len(),
                    what: format!("{} modules in a circle: {}", circle.len(), circle.join(", ")),
                });
            }
        }
    }
    findings
}

fn arrows(modules: &Modules) -> BTreeMap<Vec<String>, Arrows> {
    let mut folders: BTreeMap<Vec<String>, Arrows> = BTreeMap::new();
    for (from, code) in modules.iter() {
        for path in paths::paths(code) {
            let Some(to) = modules.resolve(from, &path) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                folders.entry(from[..shared].to_vec()).or_default().entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    folders
}
