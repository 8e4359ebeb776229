//! The first records of an answer, without finding the others.
//!
//! Rows are in the order of values, records in that of keys, so the first records of many rows are not the first rows. Where
//! rows are many, looking at one record after the other soon comes upon enough of them; where they are few, all are found.

use forebay_types::Result;

use super::predicate::Query;
use super::test::Test;
use super::{CHECK_COST, Searcher, work};
use crate::record::Record;
use crate::window::Window;

impl Searcher<'_> {
    /// The records of a window where `query` holds, sorted.
    pub(crate) fn first(&self, query: &Query, window: Window) -> Result<Vec<u32>> {
        if window.count == usize::MAX {
            let mut records = self.records(query)?;
            window.cut(&mut records);
            return Ok(records);
        }
        if let Query::Eq { attribute, value } = query
            && let Some(records) = self.posted(*attribute, value, window)?
        {
            return Ok(records);
        }
        let test = Test::of(self.base, query)?;
        work::begins(work::of_search(self.base, &test, window.count));
        let tests = test.parts();
        let Some(fewest) = tests.first() else { return Ok((window.from..self.base.records()).take(window.count).collect()) };
        let mut found = Vec::new();
        if fewest.rows() > 0
            && let Some(from) = self.look(tests, fewest.rows(), window, &mut found)?
        {
            self.find_rest(tests, Window { from, count: window.count - found.len() }, &mut found)?;
        }
        assert!(found.len() <= window.count, "no more are found than {}", window.count);
        debug_assert!(found.is_sorted(), "records are found in order");
        Ok(found)
    }

    /// Looks at one record after the other. Says where it gave up, if finding all `rows` of the first test promises to cost less.
    fn look(&self, tests: &[Test<'_>], rows: usize, window: Window, found: &mut Vec<u32>) -> Result<Option<u32>> {
        let left = self.base.records().saturating_sub(window.from) as usize;
        // Without rows there is nothing else to go by.
        let budget = if rows == usize::MAX { left } else { left.min(rows / CHECK_COST) };
        let expected = window.count as f64 * f64::from(self.base.records()) / rows as f64;
        if expected > budget as f64 && budget < left {
            return Ok(Some(window.from));
        }
        let mut scratch = Record::new();
        for record in (window.from..).take(budget) {
            if found.len() == window.count {
                break;
            }
            if self.pass_all(record, tests, &mut scratch)? {
                found.push(record);
            }
        }
        if found.len() < window.count && budget < left {
            return Ok(Some(window.from + budget as u32));
        }
        tests.iter().for_each(|test| self.count_hits(test, found.len() as u64));
        Ok(None)
    }

    fn count_hits(&self, test: &Test<'_>, hits: u64) {
        match test {
            Test::Rows { attribute, .. } => self.sampler.search(*attribute, hits),
            Test::Ends { .. } | Test::Contains { .. } | Test::Matches { .. } => self.sampler.substring(hits),
            Test::All(tests) | Test::Any(tests) => tests.iter().for_each(|test| self.count_hits(test, hits)),
            // Nothing is found for it.
            Test::Not(_) => {}
        }
    }

    /// Finds what may pass the first test, and looks at those until there are enough.
    fn find_rest(&self, tests: &[Test<'_>], window: Window, found: &mut Vec<u32>) -> Result<()> {
        let [first, others @ ..] = tests else { return Ok(()) };
        let (mut records, is_exact) = self.candidates(first)?;
        let tests = if is_exact { others } else { tests };
        Window { count: usize::MAX, ..window }.cut(&mut records);
        let (mut scratch, enough) = (Record::new(), found.len() + window.count);
        for record in records {
            if found.len() == enough {
                break;
            }
            if self.pass_all(record, tests, &mut scratch)? {
                found.push(record);
            }
        }
        Ok(())
    }

    fn pass_all(&self, record: u32, tests: &[Test<'_>], scratch: &mut Record) -> Result<bool> {
        for test in tests {
            if !self.passes(record, test, scratch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
