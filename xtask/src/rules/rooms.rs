//! Functions of a type that lie outside of its room: the folder of its definition and, where a room's `mod.rs` defines it, those below.
//! Who reads the type can't tell then what may change it.

use std::collections::HashMap;

use crate::rule::{Finding, Rule};
use crate::source::{find_words, line_at, name_at};
use crate::tree::{RustFile, Tree};

const DEFINES: [&str; 3] = ["struct ", "enum ", "union "];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &tree.rows {
        let files: Vec<&RustFile> = tree.rust.iter().filter(|file| file.owner == row.folder && file.is_shipped).collect();
        let mut homes: HashMap<&str, Vec<&str>> = HashMap::new();
        for file in &files {
            for name in defined(&file.source.shipped) {
                homes.entry(name).or_default().push(&file.path);
            }
        }
        for file in &files {
            for (at, name) in implemented(&file.source.shipped) {
                let is_outside = |homes: &Vec<&str>| !homes.iter().any(|home| is_in_room(home, &file.path));
                if homes.get(name).is_some_and(is_outside) {
                    findings.push(Finding {
                        rule: Rule::Rooms,
                        owner: row.folder.clone(),
                        path: file.path.clone(),
                        line: line_at(&file.source.shipped, at),
                        weight: 1,
                        what: format!("functions of `{name}`, which is defined in another room"),
                    });
                }
            }
        }
    }
    findings
}

/// The types that are defined in a file.
fn defined(code: &str) -> Vec<&str> {
    let of = |word: &'static str| find_words(code, word).map(move |at| name_at(&code[at + word.len()..]));
    DEFINES.into_iter().flat_map(of).collect()
}

/// The types that a file has functions of which no trait asks for, and where.
fn implemented(code: &str) -> Vec<(usize, &str)> {
    let blocks = find_words(code, "impl").filter(|&at| ["", "unsafe"].contains(&line_before(code, at)));
    blocks.filter_map(|at| Some((at, own_type(&code[at + "impl".len()..])?))).collect()
}

/// What stands before a place on its line.
fn line_before(code: &str, at: usize) -> &str {
    code[..at].rsplit('\n').next().unwrap_or_default().trim()
}

/// The type of an `impl` block, from behind that word; none for one of a trait.
fn own_type(rest: &str) -> Option<&str> {
    let head = &rest[..rest.find('{')?];
    let path = head[generics(head)..].trim_start();
    let is_of_trait = find_words(path, "for ").next().is_some();
    let path = path.split(|sign: char| sign == '<' || sign.is_whitespace()).next()?;
    let name = path.rsplit("::").next()?;
    (!is_of_trait && !name.is_empty()).then_some(name)
}

/// The bytes of a list in angle brackets that the text begins with.
fn generics(text: &str) -> usize {
    if !text.starts_with('<') {
        return 0;
    }
    let mut depth = 0usize;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // Not that of an arrow.
            b'>' if before != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        before = byte;
    }
    text.len()
}

fn is_in_room(home: &str, path: &str) -> bool {
    let (room, name) = home.rsplit_once('/').unwrap_or(("", home));
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder == room || name == "mod.rs" && folder.starts_with(&format!("{room}/"))
}
