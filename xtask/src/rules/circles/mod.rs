//! Modules of a crate that can be understood only together, since each one leads back to itself through the others. What a
//! crate's number counts are the boxes on a circle.

mod round;

use super::arrows::arrows;
use crate::rule::{Finding, Rule};
use crate::tree::Tree;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &tree.rows {
        for (folder, arrows) in arrows(tree, &row.folder) {
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
