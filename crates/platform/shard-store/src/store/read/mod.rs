//! Answers: records by key, and keys by what their records hold.

mod far;
mod search;
mod sent;
mod view_search;

use std::collections::BTreeSet;

use forebay_shard::{Key, Value};
use forebay_types::{Result, ResultExt};
use serde_json::Value as Json;

use crate::store::Store;

pub use far::{FarAnswer, FarQuestion};
pub use sent::{SentRecord, Wanted, read_keys, read_records, write_keys};

impl Store {
    /// The values of a record: all attributes, or those at `columns`.
    pub fn get(&self, key: &Key, columns: Option<&[usize]>) -> Result<Option<Vec<Value>>> {
        self.view.load().get(key, columns).context(|| self.path.display())
    }

    /// A record as a JSON object: the columns asked for by name, or all.
    pub fn get_json(&self, key: &Key, columns: Option<&[String]>) -> Result<Option<Json>> {
        let known = self.records()?;
        let Some(names) = columns else {
            let values = self.get(key, None)?;
            return Ok(values.map(|values| known.whole_json(key, values)));
        };
        // Only the attributes that were asked for are read; the others are null and are not printed.
        let places = names.iter().map(|name| known.place(name)).collect::<Result<Vec<_>>>()?;
        let wanted: BTreeSet<usize> = places
            .iter()
            .filter(|&&place| place != known.key_place())
            .map(|&place| place - usize::from(place > known.key_place()))
            .collect();
        let wanted: Vec<usize> = wanted.into_iter().collect();
        // A shard needs an attribute to read, also where only the key was asked for.
        let asked = if wanted.is_empty() { &[0][..] } else { &wanted[..] };
        let Some(read) = self.get(key, Some(asked))? else { return Ok(None) };
        let mut values = vec![Value::Null; known.attributes().count()];
        for (&place, value) in asked.iter().zip(read) {
            values[place] = value;
        }
        known.record_json(key, &values, Some(names)).map(Some)
    }
}
