//! How much stands together: lines of a file, lines of a function, files of a folder.

use std::collections::BTreeMap;

use crate::rule::{Finding, Rule};
use crate::source::{Source, end_of_block, find_words, is_name, line_at};
use crate::tree::{RustFile, Tree};

/// Past this one file usually holds two things.
const FILE_LINES_MAX: usize = 400;
/// More than two screens.
const FUNCTION_LINES_MAX: usize = 100;
/// What is taken in at one look.
const FOLDER_FILES_MAX: usize = 14;

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for file in &tree.rust {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry((&file.owner, folder)).or_default() += 1;
        findings.extend(long_file(file));
        findings.extend(long_functions(file));
    }
    for ((owner, folder), files) in folders {
        if files > FOLDER_FILES_MAX {
            findings.push(Finding {
                rule: Rule::FolderFiles,
                owner: owner.to_owned(),
                path: folder.to_owned(),
                line: 0,
                weight: files - FOLDER_FILES_MAX,
                what: format!("{files} source files, {FOLDER_FILES_MAX} are the most"),
            });
        }
    }
    findings
}

fn long_file(file: &RustFile) -> Option<Finding> {
    let lines = file.source.lines();
    (lines > FILE_LINES_MAX).then(|| Finding {
        rule: Rule::FileLines,
        owner: file.owner.clone(),
        path: file.path.clone(),
        line: 0,
        weight: lines - FILE_LINES_MAX,
        what: format!("{lines} lines, {FILE_LINES_MAX} are the most"),
    })
}

fn long_functions(file: &RustFile) -> Vec<Finding> {
    functions(&file.source)
        .into_iter()
        .filter(|(_, lines)| *lines > FUNCTION_LINES_MAX)
        .map(|(line, lines)| Finding {
            rule: Rule::FunctionLines,
            owner: file.owner.clone(),
            path: file.path.clone(),
            line,
            weight: lines - FUNCTION_LINES_MAX,
            what: format!("a function of {lines} lines, {FUNCTION_LINES_MAX} are the most"),
        })
        .collect()
}

/// First line and number of lines of each function that has a body.
fn functions(source: &Source) -> Vec<(usize, usize)> {
    let code = &source.code;
    let mut found = Vec::new();
    for at in find_words(code, "fn ") {
        // A function has a name; the type of one has none.
        if !code[at + 3..].trim_start().bytes().next().is_some_and(is_name) {
            continue;
        }
        let Some(open) = code[at..].find(['{', ';']).map(|offset| at + offset) else { continue };
        // The length of an array is the one `;` that stands in a signature.
        let open = if in_brackets(&code[at..open]) { code[open..].find('{').map(|offset| open + offset) } else { Some(open) };
        let Some(open) = open.filter(|&open| code.as_bytes()[open] == b'{') else { continue };
        let body = &code[at..end_of_block(code, open)];
        found.push((line_at(code, at), body.bytes().filter(|&byte| byte == b'\n').count() + 1));
    }
    found
}

fn in_brackets(signature: &str) -> bool {
    signature.matches('[').count() > signature.matches(']').count()
}
