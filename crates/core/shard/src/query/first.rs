//! The first records of an answer, without finding the others.
//!
//! Rows are in the order of values, records in that of keys, so the first records of many rows are not the first rows. Where
//! rows are many, looking at one record after the other soon comes upon enough of them; where they are few, all are found.

use forebay_types::Result;

use super::chains;
use super::predicate::Query;
use super::search::{CHECK_COST, Searcher};
use super::test::{Test, What};
use crate::record::output::Record;
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
        let tests = Test::all_of(self.base, query)?;
        let Some(fewest) = tests.first() else {
            return Ok((window.from..self.base.records()).take(window.count).collect());
        };
        let mut found = Vec::new();
        if fewest.rows > 0
            && let Some(from) = self.look(&tests, window, &mut found)?
        {
            self.find_rest(&tests, Window { from, count: window.count - found.len() }, &mut found)?;
        }
        debug_assert!(found.is_sorted() && found.len() <= window.count);
        Ok(found)
    }

    /// Looks at one record after the other. Says where it gave up, if finding all rows promises to cost less.
    fn look(&self, tests: &[Test<'_>], window: Window, found: &mut Vec<u32>) -> Result<Option<u32>> {
        let rows = tests[0].rows;
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
            if self.passes(record, tests, &mut scratch)? {
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
        match test.what {
            What::Rows(_) => self.sampler.search(test.attribute, hits),
            What::Contains(_) | What::Matches(_) => self.sampler.substring(hits),
        }
    }

    /// Finds all that passes the first test, and looks at those until there are enough.
    fn find_rest(&self, tests: &[Test<'_>], window: Window, found: &mut Vec<u32>) -> Result<()> {
        let [first, others @ ..] = tests else { return Ok(()) };
        let (mut records, others) = match &first.what {
            What::Rows(rows) => (self.records_of(first.attribute, rows.clone()), others),
            What::Contains(bytes) => (self.containing(first.attribute, bytes), others),
            // What it requires is there, the rest of it has to be looked at.
            What::Matches(expression) => (self.containing(first.attribute, &expression.required), tests),
        };
        Window { count: usize::MAX, ..window }.cut(&mut records);
        let (mut scratch, enough) = (Record::new(), found.len() + window.count);
        for record in records {
            if found.len() == enough {
                break;
            }
            if self.passes(record, others, &mut scratch)? {
                found.push(record);
            }
        }
        Ok(())
    }

    fn passes(&self, record: u32, tests: &[Test<'_>], scratch: &mut Record) -> Result<bool> {
        for test in tests {
            let passes = if let What::Rows(rows) = &test.what {
                rows.contains(&chains::row_of(self.base, self.set, record, test.attribute))
            } else {
                (self.read)(record, &[test.attribute], scratch)?;
                scratch.bytes(0).is_some_and(|value| test.holds(value))
            };
            if !passes {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
