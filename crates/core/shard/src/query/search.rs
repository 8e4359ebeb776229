//! Searches: the records where a query holds, in the order of their keys.

use std::ops::Range;

use forebay_types::Result;

use super::chains;
use super::locate;
use super::predicate::Query;
use super::regex::Expression;
use crate::base::Base;
use crate::interval::Suffixes;
use crate::layers::set::LayerSet;
use crate::model::value::Value;
use crate::record::output::Record;
use crate::sampling::Sampler;
use crate::window::Window;

/// Reads some attributes of a record.
pub(crate) type ReadColumns<'r> = dyn Fn(u32, &[usize], &mut Record) -> Result<()> + 'r;

/// A search over one set of layers.
pub(crate) struct Searcher<'s> {
    pub(crate) base: &'s Base,
    pub(crate) set: &'s LayerSet,
    pub(crate) sampler: &'s Sampler,
    /// Reads the columns of a record by the fastest layer.
    pub(crate) read: &'s ReadColumns<'s>,
}

/// Checking a candidate costs about as much as finding this many rows.
pub(super) const CHECK_COST: usize = 4;

impl Searcher<'_> {
    /// The records where `query` holds, sorted.
    pub(crate) fn records(&self, query: &Query) -> Result<Vec<u32>> {
        if let Query::Eq { attribute, value } = query
            && let Some(records) = self.posted(*attribute, value, Window::ALL)?
        {
            return Ok(records);
        }
        if let Some(rows) = query.rows(self.base)? {
            return Ok(self.records_of(query.attribute().unwrap_or(0), rows));
        }
        match query {
            Query::Contains { attribute, bytes } => Ok(self.containing(*attribute, bytes)),
            Query::Regex { attribute, pattern } => self.matching(*attribute, pattern),
            Query::And(queries) => self.all_of(queries),
            _ => Ok(Vec::new()),
        }
    }

    /// How many records there are where `query` holds, without finding them if their rows tell.
    pub(crate) fn count(&self, query: &Query) -> Result<u64> {
        match query.rows(self.base)? {
            Some(rows) => Ok(rows.len() as u64),
            None => Ok(self.records(query)?.len() as u64),
        }
    }

    pub(super) fn records_of(&self, attribute: usize, rows: Range<u32>) -> Vec<u32> {
        let column = self.base.delimiter_column(attribute);
        if rows.is_empty() {
            return Vec::new();
        }
        if rows.len() == column.count as usize {
            return (0..self.base.records()).collect();
        }
        self.sampler.search(attribute, rows.len() as u64);
        let mut records = Vec::with_capacity(rows.len());
        if self.set.postings[attribute].rows(rows.start - column.start..rows.end - column.start, &mut records) {
            if !records.is_sorted() {
                records.sort_unstable();
            }
            return records;
        }
        locate::records(self.base, self.set, attribute, rows, &mut records);
        records.sort_unstable();
        records
    }

    /// The records of a window that have a value, by the postings of its attribute, if they are there.
    pub(super) fn posted(&self, attribute: usize, value: &Value, window: Window) -> Result<Option<Vec<u32>>> {
        let Some(postings) = self.set.postings.get(attribute).filter(|postings| postings.whole) else { return Ok(None) };
        let (mut bytes, mut symbols) = (Vec::new(), Vec::new());
        if !self.base.schema.attributes[attribute].value_type.encode(value, &mut bytes)? {
            return Ok(None);
        }
        let mut records = Vec::new();
        if self.base.alphabet.encode(&bytes, &mut symbols) {
            postings.equal(self.base, self.base.delimiter_column(attribute).start, &bytes, &symbols, window, &mut records);
        }
        self.sampler.search(attribute, records.len() as u64);
        Ok(Some(records))
    }

    /// Records whose value of `attribute` has `bytes` somewhere.
    pub(super) fn containing(&self, attribute: usize, bytes: &[u8]) -> Vec<u32> {
        let mut symbols = Vec::new();
        if !self.base.alphabet.encode(bytes, &mut symbols) {
            return Vec::new();
        }
        let rows = self.base.prefix(&symbols);
        self.sampler.substring(rows.len() as u64);
        let mut records = Vec::new();
        locate::anywhere(self.base, self.set, rows, |_, found| {
            if found.attribute as usize == attribute {
                records.push(found.record);
            }
        });
        records.sort_unstable();
        records.dedup();
        records
    }

    fn matching(&self, attribute: usize, pattern: &str) -> Result<Vec<u32>> {
        let expression = Expression::new(pattern)?;
        let candidates = if expression.required.is_empty() {
            (0..self.base.records()).collect()
        } else {
            self.containing(attribute, &expression.required)
        };
        self.filter(candidates, attribute, |value| value.is_some_and(|value| expression.regex.is_match(value)))
    }

    /// Keeps the candidates whose value satisfies `holds`.
    fn filter(&self, mut candidates: Vec<u32>, attribute: usize, holds: impl Fn(Option<&[u8]>) -> bool) -> Result<Vec<u32>> {
        let mut record = Record::new();
        let mut kept = 0;
        for at in 0..candidates.len() {
            (self.read)(candidates[at], &[attribute], &mut record)?;
            if holds(record.bytes(0)) {
                candidates[kept] = candidates[at];
                kept += 1;
            }
        }
        candidates.truncate(kept);
        Ok(candidates)
    }

    /// The fewest first; others either are found too and intersected, or checked on each candidate.
    fn all_of(&self, queries: &[Query]) -> Result<Vec<u32>> {
        let mut intervals = Vec::new();
        let mut others = Vec::new();
        for query in queries {
            match query.rows(self.base)? {
                Some(rows) => intervals.push((query.attribute().unwrap_or(0), rows)),
                None => others.push(query),
            }
        }
        intervals.sort_by_key(|(_, rows)| rows.len());
        let mut intervals = intervals.into_iter();
        let mut records = match intervals.next() {
            Some((attribute, rows)) => self.records_of(attribute, rows),
            None => match others.pop() {
                Some(query) => self.records(query)?,
                None => (0..self.base.records()).collect(),
            },
        };
        for (attribute, rows) in intervals {
            if records.is_empty() {
                return Ok(records);
            }
            if rows.len() == self.base.records() as usize {
                continue;
            }
            if rows.len() <= records.len().saturating_mul(CHECK_COST) {
                let other = self.records_of(attribute, rows);
                records.retain(|record| other.binary_search(record).is_ok());
            } else {
                self.check_rows(&mut records, attribute, &rows);
            }
        }
        for query in others {
            if records.is_empty() {
                return Ok(records);
            }
            records = match query {
                Query::Contains { attribute, bytes } => {
                    self.filter(records, *attribute, |value| value.is_some_and(|value| find(value, bytes)))?
                }
                Query::Regex { attribute, pattern } => {
                    let expression = Expression::new(pattern)?;
                    self.filter(records, *attribute, |value| value.is_some_and(|value| expression.regex.is_match(value)))?
                }
                query => {
                    let other = self.records(query)?;
                    records.retain(|record| other.binary_search(record).is_ok());
                    records
                }
            };
        }
        Ok(records)
    }

    /// Keeps the records whose row in the attribute's column lies in `rows`.
    fn check_rows(&self, records: &mut Vec<u32>, attribute: usize, rows: &Range<u32>) {
        records.retain(|record| rows.contains(&chains::row_of(self.base, self.set, *record, attribute)));
    }
}

/// Whether `value` has `bytes` somewhere.
pub(crate) fn find(value: &[u8], bytes: &[u8]) -> bool {
    bytes.is_empty() || value.windows(bytes.len()).any(|window| window == bytes)
}
