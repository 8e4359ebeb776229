//! What a dataset is asked.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use forebay_shard::{Key, KeyMap};
use forebay_shard_store::{ColumnKind, Condition, Literal};
use forebay_types::{Error, Result};
use futures::future::try_join_all;
use serde_json::{Value as Json, json};

use crate::Shards;
use crate::follow::at_present;

/// Hits that a worker gives at once at most.
const PAGE_HITS: usize = 100_000;

/// Keys that a shard of those of a map has.
struct Part {
    shard: usize,
    of: KeyMap,
}

impl Part {
    /// Which of the shards of another map have some of them.
    fn targets(&self, to: &KeyMap) -> Result<Vec<usize>> {
        assert!(self.shard < self.of.shards(), "shards are numbered from 0");
        let from = self.of.recut(to)?;
        let has = |target: &usize| from[*target].iter().any(|share| share.shard as usize == self.shard);
        Ok((0..from.len()).filter(has).collect())
    }
}

impl Shards {
    /// The keys of the records that meet a condition, ascending: those above `after`, at most `limit`.
    pub async fn search(&self, condition: &Json, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        // What is wrong with it is known without asking anyone.
        Condition::from_json(condition)?.query(self.columns())?;
        at_present!(self, at => at.search_all(condition, after, limit))
    }

    async fn search_all(&self, condition: &Json, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let (kind, shards) = (self.columns().key().kind, self.in_order(after));
        // By hash the lowest keys may be in any of them; of ranges those of the first ones may be enough.
        let mut at_once = if self.dataset.splits.is_some() && limit.is_some() { 1 } else { shards.len() };
        let (mut hits, mut done) = (Vec::new(), 0);
        while done < shards.len() {
            let end = (done + at_once).min(shards.len());
            let pages = (done..end).map(|place| self.search_one(shards[place].0, condition, after, limit));
            let mut all = try_join_all(pages).await?;
            all.push(hits);
            hits = lowest(kind, all, limit);
            (done, at_once) = (end, at_once * 2);
            let is_below = |least: &Key| hits.last().is_some_and(|last| order(kind, last, least) == Ordering::Less);
            let next = shards.get(done).and_then(|(_, least)| least.as_ref());
            if limit.is_some_and(|limit| hits.len() >= limit) && next.is_some_and(is_below) {
                break;
            }
        }
        Ok(hits)
    }

    /// The shards that may have keys behind one, in the order of the least such keys that they may have, with these where they are known.
    fn in_order(&self, after: Option<&Key>) -> Vec<(usize, Option<Key>)> {
        let (map, mut seen, mut shards) = (self.dataset.map(), BTreeSet::new(), Vec::new());
        for range in self.columns().keys_after(after) {
            for shard in map.meeting(&range).filter(|shard| seen.insert(*shard)) {
                let least = match map.range_of(shard).and(&range).from {
                    Bound::Included(key) | Bound::Excluded(key) => Some(key),
                    Bound::Unbounded => None,
                };
                shards.push((shard, least));
            }
        }
        debug_assert!(shards.len() <= map.shards(), "each is asked once");
        shards
    }

    /// The same of one shard: of those keys that were in it when the dataset was opened, whichever shards have them now.
    pub async fn search_shard(
        &self,
        shard: usize,
        condition: &Json,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Result<Vec<Key>> {
        let of = Part { shard, of: self.dataset.map() };
        at_present!(self, at => at.search_part(&of, std::ptr::eq(self, at), condition, after, limit))
    }

    /// Searches for keys that are in a shard of a map, which is this one's or was that of before.
    async fn search_part(
        &self,
        part: &Part,
        is_own: bool,
        condition: &Json,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Result<Vec<Key>> {
        if is_own {
            return self.search_one(part.shard, condition, after, limit).await;
        }
        let targets = part.targets(&self.dataset.map())?;
        let wanted = limit.map_or(PAGE_HITS, |limit| limit.saturating_mul(2).clamp(PAGE_HITS / 100, PAGE_HITS));
        let (mut hits, mut last) = (Vec::new(), after.cloned());
        loop {
            let pages = (0..targets.len()).map(|place| self.search_one(targets[place], condition, last.as_ref(), Some(wanted)));
            let page = lowest(self.columns().key().kind, try_join_all(pages).await?, Some(wanted));
            let came = page.len();
            last = page.last().cloned().or(last);
            hits.extend(page.into_iter().filter(|key| part.of.shard_of(key) == part.shard));
            if came < wanted || limit.is_some_and(|limit| hits.len() >= limit) {
                hits.truncate(limit.unwrap_or(usize::MAX));
                return Ok(hits);
            }
        }
    }

    async fn search_one(&self, shard: usize, condition: &Json, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        let mut hits: Vec<Key> = Vec::new();
        loop {
            let wanted = limit.map_or(PAGE_HITS, |limit| limit - hits.len()).min(PAGE_HITS);
            if wanted == 0 {
                return Ok(hits);
            }
            let after = hits.last().or(after).map(|key| self.columns().key_json(key));
            let question = json!({"search": condition, "after": after, "limit": wanted});
            let Json::Array(page) = self.ask_one(shard, question).await? else {
                return Err(Error::internal(format!("{}: the answer to a search is no array", self.path)));
            };
            let came = page.len();
            for key in &page {
                hits.push(self.columns().key_of(&Literal::from_json(key)?)?);
            }
            if came < wanted {
                return Ok(hits);
            }
        }
    }

    /// How many records meet a condition; all of them without one.
    pub async fn count(&self, condition: Option<&Json>) -> Result<u64> {
        if let Some(condition) = condition {
            Condition::from_json(condition)?.query(self.columns())?;
        }
        at_present!(self, at => at.count_all(condition))
    }

    async fn count_all(&self, condition: Option<&Json>) -> Result<u64> {
        let counts = (0..self.dataset.shards.len()).map(|shard| self.count_one(shard, condition));
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    /// The same of one shard, as [`Self::search_shard`] has it.
    pub async fn count_shard(&self, shard: usize, condition: Option<&Json>) -> Result<u64> {
        let of = Part { shard, of: self.dataset.map() };
        at_present!(self, at => at.count_part(&of, std::ptr::eq(self, at), condition))
    }

    async fn count_part(&self, part: &Part, is_own: bool, condition: Option<&Json>) -> Result<u64> {
        if is_own {
            return self.count_one(part.shard, condition).await;
        }
        let all = json!({"and": []});
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.search_part(part, false, condition.unwrap_or(&all), after.as_ref(), Some(PAGE_HITS)).await?;
            count += page.len() as u64;
            if page.len() < PAGE_HITS {
                return Ok(count);
            }
            after = page.last().cloned();
        }
    }

    async fn count_one(&self, shard: usize, condition: Option<&Json>) -> Result<u64> {
        let count = self.ask_one(shard, json!({"count": condition})).await?;
        count.as_u64().ok_or_else(|| Error::internal(format!("{}: {count} is no count", self.path)))
    }
}

/// The order in which keys of a column are printed and paged: numbers by their value, all else by its bytes.
fn order(kind: ColumnKind, a: &Key, b: &Key) -> Ordering {
    match (a, b) {
        // Numbers are kept without sign.
        (Key::U64(a), Key::U64(b)) if kind == ColumnKind::Int => (*a as i64).cmp(&(*b as i64)),
        _ => a.cmp(b),
    }
}

/// The lowest `limit` of ascending lists.
fn lowest(kind: ColumnKind, lists: Vec<Vec<Key>>, limit: Option<usize>) -> Vec<Key> {
    let mut all: Vec<Key> = lists.into_iter().flatten().collect();
    all.sort_by(|a, b| order(kind, a, b));
    all.truncate(limit.unwrap_or(usize::MAX));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_zero_come_first() {
        let keys = |numbers: &[i64]| numbers.iter().map(|number| Key::U64(*number as u64)).collect::<Vec<_>>();
        let lists = vec![keys(&[-5, 3]), keys(&[-7, 9]), vec![]];
        assert_eq!(lowest(ColumnKind::Int, lists.clone(), Some(3)), keys(&[-7, -5, 3]));
        assert_eq!(lowest(ColumnKind::Uint, lists, None), keys(&[3, 9, -7, -5]), "without sign they are the largest");
    }

    #[test]
    fn text_is_in_the_order_of_its_bytes() {
        let lists = vec![vec![Key::from("b")], vec![Key::from("a"), Key::from("ab")]];
        assert_eq!(lowest(ColumnKind::Text, lists, None), ["a", "ab", "b"].map(Key::from));
    }
}
