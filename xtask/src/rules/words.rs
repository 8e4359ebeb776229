//! Names of modules that say nothing, work that is left undone, and paths of one machine.

use crate::rule::{Finding, Rule};
use crate::source::{find_words, line_at};
use crate::tree::{RustFile, Tree};

/// What such a module holds is known only when it has another name.
const EMPTY_NAMES: [&str; 7] = ["common", "helper", "helpers", "misc", "util", "utils", "v2"];
const UNDONE: [&str; 2] = ["todo!", "unimplemented!"];
/// How a path into somebody's home begins, and a name that stands for anybody's.
const HOMES: [&str; 3] = ["/home/", "/Users/", "/root/"];
const ANYBODY: [&str; 3] = ["user", "you", "me"];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.rust {
        findings.extend(empty_name(file));
        for word in UNDONE {
            findings.extend(find_words(&file.source.code, word).map(|at| {
                let line = line_at(&file.source.code, at);
                finding(&file.owner, &file.path, line, format!("`{word}` is work that is left undone"))
            }));
        }
        findings.extend(homes(&file.owner, &file.path, &file.source.text));
    }
    for page in &tree.pages {
        findings.extend(homes(&page.owner, &page.path, &page.text));
    }
    findings
}

fn empty_name(file: &RustFile) -> Option<Finding> {
    let mut parts = file.path.strip_prefix(&file.owner)?.split('/').map(|part| part.trim_end_matches(".rs"));
    let name = parts.find(|part| EMPTY_NAMES.contains(part))?;
    Some(finding(&file.owner, &file.path, 0, format!("`{name}` does not say what is in it")))
}

fn homes(owner: &str, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for home in HOMES {
            let names =
                line.match_indices(home).filter(|(at, _)| begins_path(&line[..*at])).map(|(at, _)| &line[at + home.len()..]);
            let mut whose = names.map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default());
            if whose.any(|name| !name.is_empty() && !ANYBODY.contains(&name)) {
                findings.push(finding(owner, path, index + 1, format!("a path below `{home}` is one machine's")));
            }
        }
    }
    findings
}

fn begins_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || "._-~/}".contains(c))
}

fn finding(owner: &str, path: &str, line: usize, what: String) -> Finding {
    Finding { rule: Rule::Words, owner: owner.to_owned(), path: path.to_owned(), line, weight: 1, what }
}
