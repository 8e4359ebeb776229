//! How many fields a struct has: past a dozen nobody keeps in mind which of them go together.

use crate::rule::{Finding, Rule};
use crate::source::{find_words, line_at, name_at};
use crate::tree::{RustFile, Tree};

/// What is taken in as one thing.
const FIELDS_MAX: usize = 12;
const WORD: &str = "struct ";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(wide_structs).collect()
}

fn wide_structs(file: &RustFile) -> Vec<Finding> {
    let code = &file.source.code;
    let structs = find_words(code, WORD).map(|at| (at, fields(&code[at..])));
    structs
        .filter(|(_, fields)| *fields > FIELDS_MAX)
        .map(|(at, fields)| Finding {
            rule: Rule::StructFields,
            owner: file.owner.clone(),
            path: file.path.clone(),
            line: line_at(code, at),
            weight: fields - FIELDS_MAX,
            what: format!("`{}` has {fields} fields, {FIELDS_MAX} are the most", name_at(&code[at + WORD.len()..])),
        })
        .collect()
}

/// The fields of a struct that have names, from its word on. Each has one colon that stands in no brackets and in no path.
fn fields(item: &str) -> usize {
    let Some(open) = item.find(['{', ';']).filter(|&open| item.as_bytes()[open] == b'{') else { return 0 };
    let (mut depth, mut fields) = (0usize, 0);
    for signs in item.as_bytes()[open..].windows(3) {
        match signs[1] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => break,
            b')' | b']' | b'}' => depth -= 1,
            b':' if depth == 0 && signs[0] != b':' && signs[2] != b':' => fields += 1,
            _ => {}
        }
    }
    fields
}
