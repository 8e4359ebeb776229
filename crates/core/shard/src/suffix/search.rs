//! Queries over the updates: intervals of the suffix array, a look at each record only where that is not enough.

use std::ops::Range;

use forebay_types::Result;

use super::SuffixStore;
use crate::interval::{rows_ending, rows_with};
use crate::model::key::Key;
use crate::query::predicate::Query;
use crate::query::regex::Expression;
use crate::record::Record;

impl SuffixStore {
    /// The keys of the records where `query` holds, in order.
    pub fn search(&self, query: &Query) -> Result<Vec<&Key>> {
        Ok(self.places(query)?.into_iter().map(|place| &self.keys[place as usize]).collect())
    }

    /// Places of records, sorted.
    fn places(&self, query: &Query) -> Result<Vec<u32>> {
        if let Some(rows) = query.rows(self)? {
            return Ok(self.places_of([rows], |_| true));
        }
        match query {
            Query::Suffix { attribute, suffix } => {
                Ok(self.places_of([rows_ending(self, *attribute, suffix)], |other| other == *attribute))
            }
            Query::Contains { attribute, bytes } => Ok(self.places_of([rows_with(self, bytes)], |other| other == *attribute)),
            Query::Regex { attribute, pattern } => {
                let expression = Expression::new(pattern)?;
                let candidates = match expression.rows(self) {
                    None => self.places(&Query::All)?,
                    Some(rows) => self.places_of(rows, |other| other == *attribute),
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
            Query::Or(queries) => {
                let mut all = Vec::new();
                for query in queries {
                    all.append(&mut self.places(query)?);
                    // Of many that say the same, no more is held than of two.
                    if all.len() > self.len() {
                        all.sort();
                        all.dedup();
                    }
                }
                all.sort();
                all.dedup();
                Ok(all)
            }
            Query::Not(query) => {
                let (mut others, not) = (self.places(&Query::All)?, self.places(query)?);
                others.retain(|place| not.binary_search(place).is_err());
                Ok(others)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn places_of(&self, rows: impl IntoIterator<Item = Range<u32>>, wanted: impl Fn(usize) -> bool) -> Vec<u32> {
        let positions = rows.into_iter().flat_map(|rows| &self.array[rows.start as usize..rows.end as usize]);
        let places = positions.map(|position| self.place_of(*position as usize));
        let mut places: Vec<u32> = places.filter(|(_, attribute)| wanted(*attribute)).map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
