//! Relative links of pages lead to files that are there, and to headings that are in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::rule::{Finding, Rule};
use crate::tree::{Page, Tree};

/// What a link names.
pub(super) struct Target {
    /// The file, from the page's folder; empty for the page itself.
    pub(super) file: String,
    /// The heading in it; empty for its beginning.
    heading: String,
}

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let pages = || tree.pages.iter().filter(|page| page.path.ends_with(".md"));
    let headings: BTreeMap<&str, BTreeSet<String>> = pages().map(|page| (page.path.as_str(), anchors(page))).collect();
    pages().flat_map(|page| dead_links(tree, page, &headings)).collect()
}

fn dead_links(tree: &Tree, page: &Page, headings: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Finding> {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for (index, line) in prose(page) {
        for Target { file, heading } in targets(line) {
            let path = if file.is_empty() { page.path.clone() } else { plain(&folder.join(&file)) };
            let what = if !tree.root.join(&path).exists() {
                format!("the link to `{file}` leads nowhere")
            } else if !heading.is_empty() && headings.get(path.as_str()).is_some_and(|there| !there.contains(&heading)) {
                format!("the link to `{file}#{heading}` names a heading that is not there")
            } else {
                continue;
            };
            let (owner, path) = (page.owner.clone(), page.path.clone());
            findings.push(Finding { rule: Rule::Links, owner, path, line: index + 1, weight: 1, what });
        }
    }
    findings
}

/// The lines outside of blocks of code, with their places from 0 on.
fn prose(page: &Page) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    page.text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// What a line links to in this checkout.
pub(super) fn targets(line: &str) -> Vec<Target> {
    let mut found = Vec::new();
    let spoken: Vec<&str> = line.split('`').collect();
    for (at, _) in line.match_indices("](") {
        // Between two back quotes it is an example.
        let quoted = line[..at].matches('`').count() % 2 == 1 && spoken.len() % 2 == 1;
        let Some(target) = line[at + 2..].split([')', ' ']).next().filter(|_| !quoted) else { continue };
        let target = target.trim_matches(['<', '>']);
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let is_elsewhere = file.contains(':') || file.starts_with('/');
        if !target.is_empty() && !is_elsewhere {
            found.push(Target { file: file.replace("%20", " "), heading: heading.to_owned() });
        }
    }
    found
}

/// The names that a page's headings have in links: small letters and digits, `-` for spaces, a number behind what was there before.
fn anchors(page: &Page) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(page) {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let kept = text.trim().chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        let name: String = kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect();
        let again = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// The path without `.` and `..`, as pages are named.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain.to_string_lossy().into_owned()
}
