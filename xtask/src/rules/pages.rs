//! Every page below docs/ stands in the table of contents, once.

use crate::rule::{Finding, Rule};
use crate::tree::{Page, Tree};

use super::links::targets;

const FOLDER: &str = "docs/";
const CONTENTS: &str = "docs/SUMMARY.md";

/// A checkout without a table of contents has no book, and nothing to be found.
pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let Some(contents) = tree.pages.iter().find(|page| page.path == CONTENTS) else { return Vec::new() };
    let lines = contents.text.lines().enumerate();
    let listed: Vec<(usize, String)> =
        lines.flat_map(|(at, line)| targets(line).into_iter().map(move |target| (at + 1, target.file))).collect();
    let is_listed = |page: &&Page| page.path.strip_prefix(FOLDER).is_none_or(|name| listed.iter().any(|(_, file)| file == name));
    let pages = tree.pages.iter().filter(|page| page.path.starts_with(FOLDER) && page.path.ends_with(".md"));
    let missing = pages.filter(|page| page.path != CONTENTS && !is_listed(page));
    let missing = missing.map(|page| finding(page, 0, format!("the page is not in {CONTENTS}")));
    let again = listed.iter().enumerate().filter(|(at, (_, file))| listed[..*at].iter().any(|(_, before)| before == file));
    let again = again.map(|(_, (line, file))| finding(contents, *line, format!("`{file}` stands there twice")));
    missing.chain(again).collect()
}

fn finding(page: &Page, line: usize, what: String) -> Finding {
    Finding { rule: Rule::Pages, owner: page.owner.clone(), path: page.path.clone(), line, weight: 1, what }
}
