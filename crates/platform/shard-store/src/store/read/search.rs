//! The keys of the records that meet a condition, in the order that people count in.

use std::sync::Arc;

use forebay_shard::{Key, Query};
use forebay_types::{ErrorKind, Result};

use super::view_search::ViewSearch;
use crate::columns::ColumnKind;
use crate::question::Condition;
use crate::store::{Mapped, Store, View};
use crate::waited::go_on;

/// The last key that is not below zero: keys are kept in the order of numbers without sign.
const LAST: Key = Key::U64(i64::MAX as u64);

impl Store {
    /// The keys of the records that meet a condition, ascending: those above `after`, at most `limit`.
    pub fn search(&self, condition: &Condition, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let columns = self.records()?;
        let query = condition.query(columns)?;
        let view = self.view.load();
        let keys = match columns.key().kind {
            ColumnKind::Int => search_numbers(&view, &query, after, limit),
            _ => search(&view, &query, after, limit),
        };
        self.named(keys)
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

    /// Steps that finding the records that meet a condition is estimated to take, or counting them, in those that are compressed.
    pub(in crate::store) fn condition_steps(&self, condition: &Condition, limit: Option<usize>, is_count: bool) -> Result<u64> {
        let query = condition.query(self.records()?)?;
        let view = self.view.load();
        // What has updates on top is found to be counted.
        let is_counted = is_count && view.only_shards()?.is_some();
        let of = |mapped: &Arc<Mapped>| match is_counted {
            true => mapped.shard.count_steps(&query),
            false => mapped.shard.search_steps(&query, limit),
        };
        view.shards.iter().map(of).sum()
    }

    /// The same for a query that is prepared.
    fn count_query(&self, query: &Query) -> Result<u64> {
        let view = self.view.load();
        let count = match view.only_shards() {
            Ok(Some(all)) => all.iter().map(|mapped| mapped.shard.count_while(query, &go_on)).sum(),
            Err(error) => Err(error),
            Ok(None) => search(&view, query, None, None).map(|keys| keys.len() as u64),
        };
        self.named(count)
    }

    /// With the shard's folder where its files are at fault: a condition that can't be asked is none of theirs, and who asks a worker
    /// has no use for the worker's folders.
    fn named<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| match error.kind() {
            ErrorKind::Invalid => error,
            _ => error.context(self.path.display()),
        })
    }
}

/// The keys of updates alone that meet a condition, of a view that has no files.
pub(super) fn search_updates(view: &View, query: &Query) -> Result<Vec<Key>> {
    debug_assert!(view.shards.is_empty(), "the files are elsewhere");
    ViewSearch::new(view, query)?.keys(None, None)
}

/// The keys in the order that they are kept in.
pub(super) fn search(view: &View, query: &Query, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
    match view.only_shards()? {
        Some(all) => search_each(all, query, after, limit),
        None => ViewSearch::new(view, query)?.keys(after, limit),
    }
}

/// The same of compressed shards one after the other, none of which has keys between another one's.
fn search_each(all: &[Arc<Mapped>], query: &Query, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    for mapped in all {
        let left = limit.map(|limit| limit - keys.len());
        if left == Some(0) && !keys.is_empty() {
            break;
        }
        keys.extend(mapped.shard.search_while(query, left, after, &go_on)?.keys.iter());
    }
    Ok(keys)
}

/// Keys of whole numbers: those below zero stand behind all others, and come first. One view answers for both.
fn search_numbers(view: &View, query: &Query, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
    if view.last_key()?.is_none_or(|last| !is_negative(&last)) {
        return search(view, query, after.filter(|key| !is_negative(key)), limit);
    }
    let from_below_zero = after.is_none_or(is_negative);
    let mut keys = if from_below_zero { search(view, query, Some(after.unwrap_or(&LAST)), limit)? } else { Vec::new() };
    let rest = limit.map(|limit| limit - keys.len());
    if rest != Some(0) {
        let mut others = search(view, query, after.filter(|_| !from_below_zero), rest)?;
        others.retain(|key| !is_negative(key));
        keys.append(&mut others);
    }
    Ok(keys)
}

fn is_negative(key: &Key) -> bool {
    matches!((key, &LAST), (Key::U64(key), Key::U64(last)) if key > last)
}
