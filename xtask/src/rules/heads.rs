//! Each file says first what it is for.

use crate::rule::{Finding, Rule};
use crate::tree::Tree;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let has_head = |text: &str| text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//!"));
    let headless = tree.rust.iter().filter(|file| !has_head(&file.source.text));
    let finding = |file: &crate::tree::RustFile| Finding {
        rule: Rule::Heads,
        owner: file.owner.clone(),
        path: file.path.clone(),
        line: 1,
        weight: 1,
        what: "does not begin with `//!`".to_owned(),
    };
    headless.map(finding).collect()
}
