//! Inside of a crate a module uses only those on floors below its own, where ARCHITECTURE.md has a row of them: the crate's
//! `lib.rs` as a link, then the names of modules from the ground up with `<` between the floors. What a row does not name is free.

use std::collections::HashMap;

use super::arrows::arrows;
use crate::manifest::Row;
use crate::rule::{Finding, Rule};
use crate::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.pages.iter().find(|page| page.path == PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let Some((row, floors)) = floors(tree, line) else { continue };
        let finding = |what: String| Finding {
            rule: Rule::Floors,
            owner: row.folder.clone(),
            path: PAGE.to_owned(),
            line: index + 1,
            weight: 1,
            what,
        };
        findings.extend(broken(tree, row, &floors).into_iter().map(finding));
    }
    findings
}

/// The crate that a line of the page is about, and the floor of each module that it names.
fn floors<'a>(tree: &'a Tree, line: &'a str) -> Option<(&'a Row, HashMap<&'a str, usize>)> {
    let mut cells = line.strip_prefix('|')?.split('|');
    let (name, floors) = (cells.next()?, cells.next()?);
    let row = tree.rows.iter().find(|row| name.contains(&format!("({}/src/lib.rs)", row.folder)))?;
    // Every other piece stands between two back quotes.
    let names = |floor: &'a str| floor.split('`').skip(1).step_by(2);
    Some((row, floors.split('<').enumerate().flat_map(|(at, floor)| names(floor).map(move |name| (name, at))).collect()))
}

fn broken(tree: &Tree, row: &Row, floors: &HashMap<&str, usize>) -> Vec<String> {
    let arrows = arrows(tree, &row.folder).remove([].as_slice()).unwrap_or_default();
    let mut strange: Vec<&&str> = floors.keys().filter(|name| !arrows.contains_key(**name)).collect();
    strange.sort();
    let mut broken: Vec<String> = strange.into_iter().map(|name| format!("`{name}` is no module of {}", row.folder)).collect();
    for (from, to) in arrows.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        if let (Some(from_floor), Some(to_floor)) = (floors.get(from.as_str()), floors.get(to.as_str()))
            && to_floor >= from_floor
        {
            broken.push(format!("in {} `{from}` uses `{to}`, which is not on a floor below its own", row.folder));
        }
    }
    broken
}
