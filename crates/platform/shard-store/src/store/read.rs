use std::collections::BTreeSet;

use forebay_shard::{Key, Query, Value};
use forebay_types::{Result, ResultExt};
use serde_json::Value as Json;

use super::{Store, View};
use crate::columns::ColumnKind;
use crate::question::Condition;
use crate::update::Matcher;

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
            return values.map(|values| known.record_json(key, &values, None)).transpose();
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

    /// The keys of the records that meet a condition, ascending: those above `after`, at most `limit`.
    pub fn search(&self, condition: &Condition, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let columns = self.records()?;
        let query = condition.query(columns)?;
        if columns.key().kind != ColumnKind::Int {
            return self.search_query(&query, after, limit);
        }
        // Keys are kept in the order of numbers without sign: those below zero stand behind all others.
        if !self.has_negative_keys()? {
            return self.search_query(&query, after.filter(|key| number(key) >= 0), limit);
        }
        let last = Key::U64(i64::MAX as u64);
        let from_below_zero = after.is_none_or(|after| number(after) < 0);
        let mut keys = match from_below_zero {
            true => self.search_query(&query, Some(after.unwrap_or(&last)), limit)?,
            false => Vec::new(),
        };
        let rest = limit.map(|limit| limit - keys.len());
        if rest != Some(0) {
            let mut others = self.search_query(&query, after.filter(|_| !from_below_zero), rest)?;
            others.retain(|key| number(key) >= 0);
            keys.append(&mut others);
        }
        Ok(keys)
    }

    fn has_negative_keys(&self) -> Result<bool> {
        let (view, last) = (self.view.load(), Key::U64(i64::MAX as u64));
        let mut found = view.runs.iter().any(|run| run.iter().next_back().is_some_and(|(key, _)| *key > last))
            || view.suffixes.iter().any(|store| !store.is_empty() && *store.key(store.len() - 1) > last);
        for mapped in &view.shards {
            mapped.shard.scan(Some(&last), |_, _| {
                found = true;
                Ok(false)
            })?;
        }
        Ok(found)
    }

    /// The same for a query that is prepared.
    pub fn search_query(&self, query: &Query, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let view = self.view.load();
        if let Some(mapped) = view.only_shard() {
            let page = mapped.shard.search(query, limit, after).context(|| self.path.display())?;
            return Ok(page.keys.iter().collect());
        }
        self.search_view(&view, query, after, limit)
    }

    fn search_view(&self, view: &View, query: &Query, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let matcher = Matcher::new(query)?;
        let mut found = BTreeSet::new();
        for run in &view.runs {
            for (key, update) in run.iter() {
                let newest = || view.newest(key).is_some_and(|newest| newest.number == update.number);
                if update.values.is_some_and(|values| matcher.matches(values)) && newest() {
                    found.insert(key.clone());
                }
            }
        }
        for (place, store) in view.suffixes.iter().enumerate() {
            let keys = store.search(query).context(|| self.path.display())?.into_iter();
            found.extend(keys.filter(|key| !view.hides_in_suffixes(place, key)).cloned());
        }
        for (place, mapped) in view.shards.iter().enumerate() {
            let mut from = after.cloned();
            // Hits that an update hides leave room below the limit for others.
            let mut kept = 0;
            loop {
                let page = mapped.shard.search(query, limit, from.as_ref()).context(|| self.path.display())?;
                for key in page.keys.iter() {
                    if !view.hides_in_shard(place, &key) {
                        found.insert(key);
                        kept += 1;
                    }
                }
                match page.next {
                    Some(next) if limit.is_some_and(|limit| kept < limit) => from = Some(next),
                    _ => break,
                }
            }
        }
        let above = found.into_iter().filter(|key| after.is_none_or(|after| key > after));
        Ok(above.take(limit.unwrap_or(usize::MAX)).collect())
    }

    /// How many records meet a condition.
    pub fn count(&self, condition: &Condition) -> Result<u64> {
        self.count_query(&condition.query(self.records()?)?)
    }

    /// How many records there are.
    pub fn count_all(&self) -> Result<u64> {
        self.records()?;
        self.count_query(&Query::All)
    }

    /// The same for a query that is prepared.
    pub fn count_query(&self, query: &Query) -> Result<u64> {
        let view = self.view.load();
        match view.only_shard() {
            Some(mapped) => mapped.shard.count(query).context(|| self.path.display()),
            None => self.search_view(&view, query, None, None).map(|keys| keys.len() as u64),
        }
    }
}

/// The number that a key of whole numbers stands for.
fn number(key: &Key) -> i64 {
    match key {
        Key::U64(key) => *key as i64,
        Key::Bytes(_) => 0,
    }
}
