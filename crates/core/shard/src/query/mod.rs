//! Answers: gets, searches, counts.

pub(crate) mod chains;
pub(crate) mod first;
pub(crate) mod locate;
#[cfg(test)]
mod paged;
pub(crate) mod predicate;
pub(crate) mod regex;
pub(crate) mod rows;
pub(crate) mod test;
pub(crate) mod waited;
pub(crate) mod work;

use std::ops::Range;

use forebay_types::Result;

use self::test::Test;
use crate::base::Base;
use crate::layers::LayerSet;
use crate::model::value::Value;
use crate::record::Record;
use crate::sampling::Sampler;
use crate::window::Window;
use predicate::Query;
use rows::RowSet;
use waited::Waited;

/// Reads some attributes of a record.
pub(crate) type ReadColumns<'r> = dyn Fn(u32, &[usize], &mut Record) -> Result<()> + 'r;

/// A search over one set of layers.
pub(crate) struct Searcher<'s> {
    pub(crate) base: &'s Base,
    pub(crate) set: &'s LayerSet,
    pub(crate) sampler: &'s Sampler,
    /// Reads the columns of a record by the fastest layer.
    pub(crate) read: &'s ReadColumns<'s>,
    pub(crate) waited: Waited<'s>,
}

/// Checking a candidate costs about as much as finding this many rows.
const CHECK_COST: usize = 4;

impl Searcher<'_> {
    /// The records where `query` holds, sorted.
    pub(crate) fn records(&self, query: &Query) -> Result<Vec<u32>> {
        if let Query::Eq { attribute, value } = query
            && let Some(records) = self.posted(*attribute, value, Window::ALL)?
        {
            return Ok(records);
        }
        let test = Test::of(self.base, query)?;
        work::begins(work::of_search(self.base, &test, usize::MAX));
        self.find(&test)
    }

    /// How many records there are where `query` holds, without finding them if their rows tell.
    pub(crate) fn count(&self, query: &Query) -> Result<u64> {
        let test = Test::of(self.base, query)?;
        work::begins(work::of_count(self.base, &test));
        if let Some(count) = test.count(self.base.records()) { Ok(count) } else { Ok(self.find(&test)?.len() as u64) }
    }

    /// The records that pass a test, sorted.
    fn find(&self, test: &Test<'_>) -> Result<Vec<u32>> {
        if let Test::Any(tests) = test {
            return self.any_of(tests.iter().map(|test| self.find(test)));
        }
        match self.candidates(test)? {
            (records, true) => Ok(records),
            (records, false) => self.filter(records, test),
        }
    }

    /// Records that all that pass a test are among, sorted, and whether they are just those.
    fn candidates(&self, test: &Test<'_>) -> Result<(Vec<u32>, bool)> {
        Ok(match test {
            Test::Rows { attribute, rows } => (self.records_of(*attribute, rows)?, true),
            // What stands in records again and again is found sooner by a look at each.
            Test::Contains { .. } | Test::Matches { .. } if test.rows() / CHECK_COST >= self.base.records() as usize => {
                ((0..self.base.records()).collect(), false)
            }
            Test::Ends { attribute, rows, .. } | Test::Contains { attribute, rows, .. } => {
                (self.with_rows(*attribute, std::slice::from_ref(rows))?, true)
            }
            Test::Matches { attribute, rows: Some(rows), .. } => (self.with_rows(*attribute, rows)?, false),
            Test::Matches { rows: None, .. } => ((0..self.base.records()).collect(), false),
            Test::All(tests) => (self.all_of(tests)?, true),
            Test::Any(tests) => {
                let mut are_exact = true;
                let found = tests.iter().map(|test| {
                    self.candidates(test).map(|(records, is_exact)| {
                        are_exact &= is_exact;
                        records
                    })
                });
                (self.any_of(found)?, are_exact)
            }
            Test::Not(test) => {
                let others = self.find(test)?;
                ((0..self.base.records()).filter(|record| others.binary_search(record).is_err()).collect(), true)
            }
        })
    }

    /// The records of rows of an attribute's column, sorted.
    fn records_of(&self, attribute: usize, rows: &RowSet) -> Result<Vec<u32>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        self.sampler.search(attribute, rows.len() as u64);
        let mut records = Vec::with_capacity(rows.len());
        let start = self.base.delimiter_column(attribute).start;
        let mut missing = Vec::new();
        for rows in &rows.intervals {
            if !self.set.postings[attribute].rows(rows.start - start..rows.end - start, &mut records) {
                missing.push(rows.clone());
            }
        }
        if !missing.is_empty() {
            let missing = missing.into_iter().flatten().take_while(|_| self.waited.step());
            locate::records(self.base, self.set, attribute, missing, &mut records);
            self.waited.check()?;
        }
        if !records.is_sorted() {
            records.sort_unstable();
        }
        Ok(records)
    }

    /// The records of a window that have a value, by the postings of its attribute, if they are there.
    fn posted(&self, attribute: usize, value: &Value, window: Window) -> Result<Option<Vec<u32>>> {
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
        work::begins(work::of_hits(self.base, records.len() as u64));
        Ok(Some(records))
    }

    /// The records with a value of `attribute` in one of these rows, sorted. The rows may be of other attributes too.
    fn with_rows(&self, attribute: usize, rows: &[Range<u32>]) -> Result<Vec<u32>> {
        self.sampler.substring(rows.iter().map(|rows| rows.len() as u64).sum());
        let mut records = Vec::new();
        let rows = rows.iter().cloned().flatten().take_while(|_| self.waited.step());
        locate::anywhere(self.base, self.set, rows, |_, found| {
            if found.attribute as usize == attribute {
                records.push(found.record);
            }
        });
        self.waited.check()?;
        records.sort_unstable();
        records.dedup();
        Ok(records)
    }

    /// What is in one of several answers, sorted. It never holds much more than two of them.
    fn any_of(&self, answers: impl Iterator<Item = Result<Vec<u32>>>) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for records in answers {
            all.append(&mut records?);
            if all.len() > self.base.records() as usize {
                sort(&mut all);
            }
        }
        sort(&mut all);
        debug_assert!(all.is_sorted_by(|one, next| one < next), "each record once");
        Ok(all)
    }

    /// The fewest first; others are either found too and intersected, or checked on each candidate.
    fn all_of(&self, tests: &[Test<'_>]) -> Result<Vec<u32>> {
        let (mut records, others) = match tests.split_first() {
            Some((first, others)) if first.rows() < usize::MAX => (self.find(first)?, others),
            _ => ((0..self.base.records()).collect(), tests),
        };
        for test in others {
            if records.is_empty() {
                break;
            }
            let (found, is_in) = match test {
                Test::Not(test) => (test.as_ref(), false),
                test => (test, true),
            };
            // Where something of a match is, the rest of it is still to be checked.
            let cost = found.rows().saturating_mul(if matches!(found, Test::Matches { .. }) { 1 + CHECK_COST } else { 1 });
            if cost <= records.len().saturating_mul(CHECK_COST) {
                let found = self.find(found)?;
                records.retain(|record| found.binary_search(record).is_ok() == is_in);
            } else {
                records = self.filter(records, test)?;
            }
        }
        debug_assert!(records.is_sorted(), "nothing changes their order");
        Ok(records)
    }

    /// Keeps the records that pass a test.
    fn filter(&self, mut records: Vec<u32>, test: &Test<'_>) -> Result<Vec<u32>> {
        let (mut scratch, mut kept) = (Record::new(), 0);
        for at in 0..records.len() {
            if self.passes(records[at], test, &mut scratch)? {
                records[kept] = records[at];
                kept += 1;
            }
        }
        records.truncate(kept);
        Ok(records)
    }

    /// Whether a record passes a test, by a look at it.
    fn passes(&self, record: u32, test: &Test<'_>, scratch: &mut Record) -> Result<bool> {
        if !self.waited.step() {
            self.waited.check()?;
        }
        Ok(match test {
            Test::Rows { attribute, rows } => rows.contains(chains::row_of(self.base, self.set, record, *attribute)),
            Test::Ends { attribute, .. } | Test::Contains { attribute, .. } | Test::Matches { attribute, .. } => {
                (self.read)(record, &[*attribute], scratch)?;
                scratch.bytes(0).is_some_and(|value| test.holds(value))
            }
            Test::All(tests) => {
                for test in tests {
                    if !self.passes(record, test, scratch)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Any(tests) => {
                for test in tests {
                    if self.passes(record, test, scratch)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Not(test) => !self.passes(record, test, scratch)?,
        })
    }
}

/// Sorts records that come in runs, each once.
fn sort(records: &mut Vec<u32>) {
    // Not `sort_unstable`, which makes nothing of the runs.
    records.sort();
    records.dedup();
}
