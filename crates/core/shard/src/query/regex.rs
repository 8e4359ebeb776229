//! Regular expressions, with the literal text that a match must have, so that only records with it are looked at.

use forebay_types::{Error, Result};
use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

/// A regular expression, and strings of which one of each group must occur wherever it matches.
pub(crate) struct Expression {
    pub(crate) regex: Regex,
    /// The longest string that every match contains; empty if there is none.
    pub(crate) required: Vec<u8>,
}

/// Compiled expressions take at most this much memory.
const REGEX_BYTES_MAX: usize = 8 << 20;

impl Expression {
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        let invalid =
            |error: &dyn std::fmt::Display| Error::invalid(format!("the expression {pattern:?} can't be used: {error}"));
        let regex =
            regex::bytes::RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build().map_err(|error| invalid(&error))?;
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(pattern).map_err(|error| invalid(&error))?;
        let mut required = Required::default();
        required.visit(&hir);
        required.close();
        Ok(Self { regex, required: required.longest })
    }
}

/// Collects runs of literals that every match must contain.
#[derive(Default)]
struct Required {
    run: Vec<u8>,
    longest: Vec<u8>,
}

impl Required {
    fn close(&mut self) {
        if self.run.len() > self.longest.len() {
            self.longest = std::mem::take(&mut self.run);
        }
        self.run.clear();
    }

    fn visit(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(Look::Start | Look::End | Look::WordAscii | Look::WordUnicode) => {}
            HirKind::Literal(literal) => self.run.extend_from_slice(&literal.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_string_of_every_match_is_found() {
        let required = |pattern: &str| String::from_utf8(Expression::new(pattern).unwrap().required).unwrap();
        assert_eq!(required("special.*requests"), "requests");
        assert_eq!(required("^abc(de)+f"), "abcde");
        assert_eq!(required("a|b"), "");
        assert_eq!(required("(?i)abc"), "");
        assert_eq!(required("x?yz"), "yz");
    }
}
