//! The keys of the records that meet a condition, in the order that people count in.

use std::sync::Arc;

use forebay_shard::{Key, Query};
use forebay_types::{ErrorKind, Result};

use super::view_search::ViewSearch;
use crate::columns::ColumnKind;
use crate::question::Condition;
use crate::store::{Mapped, Store, View};
use crate::update::{Matcher, Values};
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
        if is_count && let Some(steps) = count_steps(&view, &query)? {
            return Ok(steps);
        }
        view.shards.iter().map(|mapped| mapped.shard.search_steps(&query, limit)).sum()
    }

    /// The same for a query that is prepared.
    fn count_query(&self, query: &Query) -> Result<u64> {
        self.named(count(&self.view.load(), query))
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

/// How many records there are that meet a condition. Updates on top of compressed shards are counted beside these where they are few; else
/// all records are found.
fn count(view: &View, query: &Query) -> Result<u64> {
    let found = || search(view, query, None, None).map(|keys| keys.len() as u64);
    let Some(all) = view.shards_below()? else { return found() };
    if !view.runs.is_empty() && count_steps(view, query)?.is_none() {
        return found();
    }
    let compressed: u64 = all.iter().map(|mapped| mapped.shard.count_while(query, &go_on)).sum::<Result<u64>>()?;
    let (gone, come) = changed(view, query)?;
    debug_assert!(gone <= compressed, "of {compressed} records {gone} are gone");
    Ok((compressed + come).saturating_sub(gone))
}

/// Steps that a count takes that does not find what it counts; none where finding is sooner done, or nothing else can be.
fn count_steps(view: &View, query: &Query) -> Result<Option<u64>> {
    let Some(all) = view.shards_below()? else { return Ok(None) };
    let compressed: u64 = all.iter().map(|mapped| mapped.shard.count_steps(query)).sum::<Result<u64>>()?;
    if view.runs.is_empty() {
        return Ok(Some(compressed));
    }
    let found: u64 = all.iter().map(|mapped| mapped.shard.search_steps(query, None)).sum::<Result<u64>>()?;
    let a_get = all.iter().map(|mapped| mapped.shard.get_steps()).max().unwrap_or(0);
    let updates: u64 = view.runs.iter().map(|run| run.len() as u64).sum();
    let steps = compressed.saturating_add(updates.saturating_mul(a_get));
    Ok((steps < found).then_some(steps))
}

/// How many records that meet a condition the newest updates have taken away, and how many they have brought.
fn changed(view: &View, query: &Query) -> Result<(u64, u64)> {
    let (mut gone, mut come) = (0, 0);
    if view.runs.is_empty() {
        return Ok((gone, come));
    }
    let matcher = Matcher::new(query)?;
    for (place, run) in view.runs.iter().enumerate() {
        for (key, update) in run.iter().filter(|(key, update)| view.is_newest(place, key, update.number)) {
            go_on()?;
            let before = view.get_compressed(key, None)?;
            gone += u64::from(before.is_some_and(|values| matcher.matches(&Values::new(&values))));
            come += u64::from(update.values.is_some_and(|values| matcher.matches(values)));
        }
    }
    Ok((gone, come))
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
