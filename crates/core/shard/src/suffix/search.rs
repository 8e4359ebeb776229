//! Queries over the updates: intervals of the suffix array, a look at each record only where that is not enough.

use std::ops::Range;

use forebay_types::Result;

use super::store::SuffixStore;
use crate::interval::Suffixes;
use crate::model::key::Key;
use crate::query::predicate::Query;
use crate::query::regex::Expression;
use crate::record::output::Record;

impl SuffixStore {
    /// The keys of the records where `query` holds, in order.
    pub fn search(&self, query: &Query) -> Result<Vec<&Key>> {
        Ok(self.places(query)?.into_iter().map(|place| &self.keys[place as usize]).collect())
    }

    /// Places of records, sorted.
    fn places(&self, query: &Query) -> Result<Vec<u32>> {
        if let Some(rows) = query.rows(self)? {
            return Ok(self.places_of(rows, |_| true));
        }
        match query {
            Query::Contains { attribute, bytes } => Ok(self.containing(*attribute, bytes)),
            Query::Regex { attribute, pattern } => {
                let expression = Expression::new(pattern)?;
                let candidates = if expression.required.is_empty() {
                    self.places(&Query::All)?
                } else {
                    self.containing(*attribute, &expression.required)
                };
                let mut record = Record::new();
                let matches = |place: &u32| {
                    self.read(*place as usize, Some(&[*attribute]), &mut record);
                    record.bytes(0).is_some_and(|value| expression.regex.is_match(value))
                };
                Ok(candidates.into_iter().filter(matches).collect())
            }
            Query::And(queries) => {
                let mut all: Option<Vec<u32>> = None;
                for query in queries {
                    let one = self.places(query)?;
                    all = Some(match all {
                        None => one,
                        Some(mut all) => {
                            all.retain(|place| one.binary_search(place).is_ok());
                            all
                        }
                    });
                }
                all.map_or_else(|| self.places(&Query::All), Ok)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Records whose value of `attribute` has `bytes` somewhere.
    fn containing(&self, attribute: usize, bytes: &[u8]) -> Vec<u32> {
        let mut symbols = Vec::new();
        if !self.alphabet.encode(bytes, &mut symbols) {
            return Vec::new();
        }
        self.places_of(self.prefix(&symbols), |other| other == attribute)
    }

    fn places_of(&self, rows: Range<u32>, wanted: impl Fn(usize) -> bool) -> Vec<u32> {
        let positions = &self.array[rows.start as usize..rows.end as usize];
        let places = positions.iter().map(|position| self.place_of(*position as usize));
        let mut places: Vec<u32> = places.filter(|(_, attribute)| wanted(*attribute)).map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
