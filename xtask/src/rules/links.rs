//! Relative links of pages lead to files that are there.

use crate::rule::{Finding, Rule};
use crate::tree::{Page, Tree};

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let pages = tree.pages.iter().filter(|page| page.path.ends_with(".md"));
    pages.flat_map(|page| dead_links(tree, page)).collect()
}

fn dead_links(tree: &Tree, page: &Page) -> Vec<Finding> {
    let folder = tree.root.join(&page.path).parent().map(ToOwned::to_owned).unwrap_or_default();
    let mut findings = Vec::new();
    let mut in_block = false;
    for (index, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        for target in targets(line) {
            if !folder.join(&target).exists() {
                findings.push(Finding {
                    rule: Rule::Links,
                    owner: page.owner.clone(),
                    path: page.path.clone(),
                    line: index + 1,
                    weight: 1,
                    what: format!("the link to `{target}` leads nowhere"),
                });
            }
        }
    }
    findings
}

/// The files that a line links to, without what follows `#`.
fn targets(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let spoken: Vec<&str> = line.split('`').collect();
    for (at, _) in line.match_indices("](") {
        // Between two back quotes it is an example.
        let quoted = line[..at].matches('`').count() % 2 == 1 && spoken.len() % 2 == 1;
        let Some(target) = line[at + 2..].split([')', ' ']).next().filter(|_| !quoted) else { continue };
        let target = target.trim_matches(['<', '>']).split('#').next().unwrap_or_default();
        let is_elsewhere = target.contains(':') || target.starts_with('/');
        if !target.is_empty() && !is_elsewhere {
            found.push(target.replace("%20", " "));
        }
    }
    found
}
