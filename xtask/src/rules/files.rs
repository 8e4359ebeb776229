//! What a file is: it says first what it is for, and has a type of its own or more than a few lines.

use crate::rule::{Finding, Rule};
use crate::source::find_words;
use crate::tree::{RustFile, Tree};

/// Fewer are read sooner where they are used than looked for in a file of their own.
const LINES_MIN: usize = 30;
/// A crate and a room have one, however little it holds.
const ROOTS: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];
const TYPES: [&str; 5] = ["struct ", "enum ", "union ", "trait ", "type "];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.rust {
        if !has_head(file) {
            findings.push(finding(file, Rule::Heads, 1, "does not begin with `//!`".to_owned()));
        }
        let lines = file.source.lines();
        if lines < LINES_MIN && file.is_shipped && !is_root(&file.path) && !has_type(file) {
            findings.push(finding(file, Rule::SmallFiles, 0, format!("{lines} lines without a type, {LINES_MIN} are the least")));
        }
    }
    findings
}

fn has_head(file: &RustFile) -> bool {
    let first = file.source.text.lines().find(|line| !line.trim().is_empty());
    first.is_some_and(|line| line.starts_with("//!"))
}

fn is_root(path: &str) -> bool {
    path.contains("/src/bin/") || ROOTS.contains(&path.rsplit('/').next().unwrap_or_default())
}

fn has_type(file: &RustFile) -> bool {
    TYPES.iter().any(|word| find_words(&file.source.code, word).next().is_some())
}

fn finding(file: &RustFile, rule: Rule, line: usize, what: String) -> Finding {
    Finding { rule, owner: file.owner.clone(), path: file.path.clone(), line, weight: 1, what }
}
