//! Regular expressions, with the literal text that a match must have, so that only records with it are looked at.

use std::ops::Range;

use forebay_types::{Error, Result};
use regex::bytes::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::interval::{Suffixes, rows_with};

/// A regular expression, and strings of which one of each group must occur wherever it matches.
pub(crate) struct Expression {
    pub(crate) regex: Regex,
    /// Of each group every match contains one string; no group where nothing is known of matches.
    required: Vec<Vec<Vec<u8>>>,
}

/// Compiled expressions take at most this much memory: what the crate takes where nothing is said, and so SQL, which asks for what it
/// takes itself.
const REGEX_BYTES_MAX: usize = 10 << 20;
/// Strings of a group: five letters in either case.
const STRINGS_MAX: usize = 32;
/// A class of more letters is not taken apart; one letter in all its cases has as many.
const LETTERS_MAX: u64 = 4;
/// Groups that are looked up, of which one is used.
const GROUPS_MAX: usize = 8;

impl Expression {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        let invalid =
            |error: &dyn std::fmt::Display| Error::invalid(format!("the expression {pattern:?} can't be used: {error}"));
        let regex =
            regex::bytes::RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| invalid(&error))?;
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).map_err(|error| invalid(&error))?;
        let mut required = Required::new();
        required.visit(&hir);
        required.close();
        Ok(Self { regex, required: required.groups })
    }

    /// The rows of the group with the rarest strings: each match has one of these strings. `None` when it may match anywhere.
    pub(crate) fn rows(&self, base: &impl Suffixes) -> Option<Vec<Range<u32>>> {
        let of_group = |group: &Vec<Vec<u8>>| {
            let rows = group.iter().map(|string| rows_with(base, string));
            rows.filter(|rows| !rows.is_empty()).collect::<Vec<_>>()
        };
        self.required.iter().map(of_group).min_by_key(|rows| rows.iter().map(|rows| rows.len()).sum::<usize>())
    }
}

/// Collects runs of literals that every match must contain.
struct Required {
    /// The strings of which one stands where the run is.
    run: Vec<Vec<u8>>,
    groups: Vec<Vec<Vec<u8>>>,
}

impl Required {
    fn new() -> Self {
        Self { run: vec![Vec::new()], groups: Vec::new() }
    }

    fn close(&mut self) {
        let run = std::mem::replace(&mut self.run, vec![Vec::new()]);
        if self.groups.len() < GROUPS_MAX && run.iter().all(|string| !string.is_empty()) {
            self.groups.push(run);
        }
    }

    fn append(&mut self, strings: &[Vec<u8>]) {
        if self.run.len() * strings.len() > STRINGS_MAX {
            self.close();
        }
        self.run = product(&self.run, strings);
    }

    fn visit(&mut self, hir: &Hir) {
        if let Some(strings) = strings_of(hir) {
            return self.append(&strings);
        }
        match hir.kind() {
            HirKind::Capture(capture) => self.visit(&capture.sub),
            HirKind::Concat(pieces) => pieces.iter().for_each(|piece| self.visit(piece)),
            HirKind::Repetition(repetition) if repetition.min > 0 => {
                self.visit(&repetition.sub);
                self.close();
            }
            _ => self.close(),
        }
    }
}

/// All that an expression matches, if these are a few strings.
fn strings_of(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Class(class) => letters_of(class),
        HirKind::Capture(capture) => strings_of(&capture.sub),
        HirKind::Concat(pieces) => pieces.iter().try_fold(vec![Vec::new()], |before, piece| {
            let strings = strings_of(piece)?;
            (before.len() * strings.len() <= STRINGS_MAX).then(|| product(&before, &strings))
        }),
        HirKind::Alternation(pieces) => pieces.iter().try_fold(Vec::new(), |mut all, piece| {
            all.append(&mut strings_of(piece)?);
            (all.len() <= STRINGS_MAX).then_some(all)
        }),
        HirKind::Repetition(_) => None,
    }
}

fn letters_of(class: &Class) -> Option<Vec<Vec<u8>>> {
    let is_few = |letters: u64| (1..=LETTERS_MAX).contains(&letters);
    match class {
        Class::Unicode(class) => {
            let ranges = class.ranges();
            let count = ranges.iter().map(|range| u64::from(u32::from(range.end()) - u32::from(range.start())) + 1).sum();
            let letters = ranges.iter().flat_map(|range| range.start()..=range.end());
            is_few(count).then(|| letters.map(|letter| letter.to_string().into_bytes()).collect())
        }
        Class::Bytes(class) => {
            let ranges = class.ranges();
            let count = ranges.iter().map(|range| u64::from(range.end() - range.start()) + 1).sum();
            let bytes = ranges.iter().flat_map(|range| range.start()..=range.end());
            is_few(count).then(|| bytes.map(|byte| vec![byte]).collect())
        }
    }
}

/// Each of these with each of those behind it.
fn product(before: &[Vec<u8>], after: &[Vec<u8>]) -> Vec<Vec<u8>> {
    before.iter().flat_map(|one| after.iter().map(move |other| [one.as_slice(), other.as_slice()].concat())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(pattern: &str) -> Vec<Vec<String>> {
        let text = |string: Vec<u8>| String::from_utf8(string).unwrap();
        let groups = Expression::new(pattern).unwrap().required.into_iter();
        groups
            .map(|group| {
                let mut group: Vec<String> = group.into_iter().map(text).collect();
                group.sort();
                group
            })
            .collect()
    }

    #[test]
    fn strings_of_every_match_are_found() {
        assert_eq!(required("special.*requests"), [["special"], ["requests"]]);
        assert_eq!(required("^abc(de)+f"), [["abcde"], ["f"]]);
        assert_eq!(required("x?yz"), [["yz"]]);
        assert_eq!(required("(ab|cd)e$"), [["abe", "cde"]]);
        assert_eq!(required("[ab]c"), [["ac", "bc"]]);
        assert_eq!(required(".|a"), [[""; 0]; 0]);
        assert_eq!(required("(a|)"), [[""; 0]; 0]);
        assert_eq!(required(r"a\bc"), [["ac"]]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "compiles megabytes")]
    fn what_sql_compiles_a_shard_does() {
        for letters in [100, 190, 200, 250] {
            let pattern = format!(r"\w{{{letters}}}");
            assert_eq!(Expression::new(&pattern).is_ok(), Regex::new(&pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn of_what_ignores_case_there_are_all_cases_of_a_few_letters() {
        assert_eq!(required("(?i)ab1"), [["AB1", "Ab1", "aB1", "ab1"]]);
        let groups = required("(?i)quarantine");
        assert!(groups.iter().all(|group| group.len() <= STRINGS_MAX), "{groups:?}");
        let has = |group: usize, text: &str| groups[group].iter().any(|string| string == text);
        assert!(has(0, "quara") && has(0, "QuArA") && has(1, "ntine") && has(1, "NTINE"), "{groups:?}");
    }
}
