//! A query made ready for one shard: what each of its records passes.
//!
//! What a query says of one attribute by equality, prefix and range becomes one set of rows, whatever `and`, `or` and `not` stand
//! between; below the rest of them `not` stands before single tests alone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::slice;

use forebay_types::{Error, Result};

use super::predicate::Query;
use super::regex::Expression;
use super::rows::RowSet;
use crate::base::Base;
use crate::interval::{rows_ending, rows_with};

/// One of the things that must hold of a record.
pub(crate) enum Test<'q> {
    /// The row of the attribute's value is one of these.
    Rows { attribute: usize, rows: RowSet },
    /// The attribute's value ends with these bytes, which begin at these rows.
    Ends { attribute: usize, bytes: &'q [u8], rows: Range<u32> },
    /// The attribute's value has these bytes, which begin at these rows of all attributes.
    Contains { attribute: usize, bytes: &'q [u8], rows: Range<u32> },
    /// The attribute's value has a match; something of each begins at one of these rows.
    Matches { attribute: usize, expression: Expression, rows: Option<Vec<Range<u32>>> },
    /// All of these hold: the one with the fewest rows first, none of them an `All`.
    All(Vec<Test<'q>>),
    /// One of these holds; none of them is an `Any`.
    Any(Vec<Test<'q>>),
    /// A single test does not hold.
    Not(Box<Test<'q>>),
}

impl<'q> Test<'q> {
    /// What must hold where `query` does.
    pub(crate) fn of(base: &Base, query: &'q Query) -> Result<Self> {
        build(base, query, false)
    }

    /// What must hold one by one, the one with the fewest rows first.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::All(tests) => tests,
            test => slice::from_ref(test),
        }
    }

    /// No more rows than this have to be found for all records that pass it; `usize::MAX` where rows don't tell.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Rows { rows, .. } => rows.len(),
            Self::Ends { rows, .. } | Self::Contains { rows, .. } => rows.len(),
            Self::Matches { rows, .. } => rows.as_ref().map_or(usize::MAX, |rows| rows.iter().map(|rows| rows.len()).sum()),
            Self::All(tests) => tests.first().map_or(usize::MAX, Self::rows),
            Self::Any(tests) => tests.iter().fold(0, |all, test| all.saturating_add(test.rows())),
            Self::Not(_) => usize::MAX,
        }
    }

    /// How many of `records` records pass it, if its rows tell.
    pub(crate) fn count(&self, records: u32) -> Option<u64> {
        match self {
            Self::Rows { rows, .. } => Some(rows.len() as u64),
            Self::Ends { rows, .. } => Some(rows.len() as u64),
            Self::All(tests) => tests.is_empty().then_some(u64::from(records)),
            Self::Any(tests) => tests.is_empty().then_some(0),
            Self::Not(test) => test.count(records).map(|count| u64::from(records).saturating_sub(count)),
            Self::Contains { .. } | Self::Matches { .. } => None,
        }
    }

    /// Whether a value passes a test that reads it; null passes none.
    pub(crate) fn holds(&self, value: &[u8]) -> bool {
        match self {
            Self::Ends { bytes, .. } => value.ends_with(bytes),
            Self::Contains { bytes, .. } => find(value, bytes),
            Self::Matches { expression, .. } => expression.regex.is_match(value),
            Self::Rows { .. } | Self::All(_) | Self::Any(_) | Self::Not(_) => false,
        }
    }
}

fn build<'q>(base: &Base, query: &'q Query, is_not: bool) -> Result<Test<'q>> {
    if let Some(rows) = query.rows(base)? {
        let attribute = query.attribute().unwrap_or(0);
        let (rows, column) = (RowSet::union([rows]), base.delimiter_column(attribute));
        let rows = if is_not { rows.complement(column.start..column.end()) } else { rows };
        return Ok(of_rows(base, attribute, rows));
    }
    let test = match query {
        Query::And(queries) | Query::Or(queries) => {
            let tests = queries.iter().map(|query| build(base, query, is_not)).collect::<Result<Vec<_>>>()?;
            // Not all of them hold where one of them does not.
            let is_all = matches!(query, Query::And(_)) != is_not;
            return Ok(if is_all { all_of(base, tests) } else { any_of(base, tests) });
        }
        Query::Not(query) => return build(base, query, !is_not),
        Query::Suffix { attribute, suffix } => {
            Test::Ends { attribute: *attribute, bytes: suffix, rows: rows_ending(base, *attribute, suffix) }
        }
        Query::Contains { attribute, bytes } => Test::Contains { attribute: *attribute, bytes, rows: rows_with(base, bytes) },
        Query::Regex { attribute, pattern } => {
            let expression = Expression::new(pattern)?;
            let rows = expression.rows(base);
            Test::Matches { attribute: *attribute, expression, rows }
        }
        Query::All | Query::Eq { .. } | Query::Prefix { .. } | Query::Range { .. } => {
            return Err(Error::internal(format!("{query:?} has no rows")));
        }
    };
    Ok(if is_not { Test::Not(Box::new(test)) } else { test })
}

/// Rows of a column as a test; what holds of every record needs none.
fn of_rows<'q>(base: &Base, attribute: usize, rows: RowSet) -> Test<'q> {
    if rows.len() == base.records() as usize { Test::All(Vec::new()) } else { Test::Rows { attribute, rows } }
}

fn all_of<'q>(base: &Base, tests: Vec<Test<'q>>) -> Test<'q> {
    let (mut kept, mut columns) = (Vec::new(), BTreeMap::<usize, RowSet>::new());
    let flat = tests.into_iter().flat_map(|test| match test {
        Test::All(tests) => tests,
        test => vec![test],
    });
    for test in flat {
        match test {
            Test::Rows { attribute, rows } => {
                let both = columns.get(&attribute).map(|others| others.intersection(&rows));
                columns.insert(attribute, both.unwrap_or(rows));
            }
            test => kept.push(test),
        }
    }
    kept.extend(columns.into_iter().map(|(attribute, rows)| of_rows(base, attribute, rows)));
    kept.sort_by_key(Test::rows);
    one_or(kept, Test::All)
}

fn any_of<'q>(base: &Base, tests: Vec<Test<'q>>) -> Test<'q> {
    let (mut kept, mut columns) = (Vec::new(), BTreeMap::<usize, Vec<Range<u32>>>::new());
    let flat = tests.into_iter().flat_map(|test| match test {
        Test::Any(tests) => tests,
        test => vec![test],
    });
    for test in flat {
        match test {
            Test::Rows { attribute, rows } => columns.entry(attribute).or_default().extend_from_slice(&rows.intervals),
            Test::All(tests) if tests.is_empty() => return Test::All(tests),
            test => kept.push(test),
        }
    }
    for (attribute, intervals) in columns {
        match of_rows(base, attribute, RowSet::union(intervals)) {
            Test::All(tests) => return Test::All(tests),
            test => kept.push(test),
        }
    }
    one_or(kept, Test::Any)
}

/// A test by itself, or several of them put together.
fn one_or<'q>(mut tests: Vec<Test<'q>>, together: impl FnOnce(Vec<Test<'q>>) -> Test<'q>) -> Test<'q> {
    match tests.pop() {
        Some(test) if tests.is_empty() => test,
        last => {
            tests.extend(last);
            together(tests)
        }
    }
}

/// Whether `value` has `bytes` somewhere.
fn find(value: &[u8], bytes: &[u8]) -> bool {
    bytes.is_empty() || value.windows(bytes.len()).any(|window| window == bytes)
}
