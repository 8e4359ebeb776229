//! A query taken apart: what each of its records passes.

use std::ops::Range;

use forebay_types::Result;

use super::predicate::Query;
use super::regex::Expression;
use super::search::find;
use crate::base::Base;
use crate::interval::Suffixes;

/// One of the things that must hold of a record.
pub(crate) struct Test<'q> {
    pub(crate) attribute: usize,
    /// No more rows than this have to be found for all records that pass it.
    pub(crate) rows: usize,
    pub(crate) what: What<'q>,
}

/// What must hold of the attribute.
pub(crate) enum What<'q> {
    /// Its row is one of these.
    Rows(Range<u32>),
    /// Its value has these bytes somewhere.
    Contains(&'q [u8]),
    /// Its value has a match.
    Matches(Expression),
}

impl<'q> Test<'q> {
    /// All that must hold where `query` does, the one with the fewest rows first.
    pub(crate) fn all_of(base: &Base, query: &'q Query) -> Result<Vec<Self>> {
        let mut tests = Vec::new();
        append(base, query, &mut tests)?;
        tests.sort_by_key(|test| test.rows);
        Ok(tests)
    }

    /// Whether a value passes it; a row is no value.
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        match &self.what {
            What::Rows(_) => false,
            What::Contains(bytes) => find(value, bytes),
            What::Matches(expression) => expression.regex.is_match(value),
        }
    }
}

fn append<'q>(base: &Base, query: &'q Query, tests: &mut Vec<Test<'q>>) -> Result<()> {
    let attribute = query.attribute().unwrap_or(0);
    if let Some(rows) = query.rows(base)? {
        // What holds of every record needs no test.
        if rows.len() < base.records() as usize {
            tests.push(Test { attribute, rows: rows.len(), what: What::Rows(rows) });
        }
        return Ok(());
    }
    match query {
        Query::Contains { bytes, .. } => {
            tests.push(Test { attribute, rows: rows_with(base, bytes), what: What::Contains(bytes) });
        }
        Query::Regex { pattern, .. } => {
            let expression = Expression::new(pattern)?;
            let rows = if expression.required.is_empty() { usize::MAX } else { rows_with(base, &expression.required) };
            tests.push(Test { attribute, rows, what: What::Matches(expression) });
        }
        Query::And(queries) => queries.iter().try_for_each(|query| append(base, query, tests))?,
        _ => debug_assert!(false, "{query:?} has rows"),
    }
    Ok(())
}

/// How many rows begin with these bytes, in whatever attribute.
fn rows_with(base: &Base, bytes: &[u8]) -> usize {
    let mut symbols = Vec::new();
    if base.alphabet.encode(bytes, &mut symbols) { base.prefix(&symbols).len() } else { 0 }
}
