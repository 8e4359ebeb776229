//! What a dataset is asked.

use forebay_shard::Key;
use forebay_shard_store::{Condition, Literal};
use forebay_types::{Error, Result};
use futures::future::try_join_all;
use serde_json::{Value as Json, json};

use crate::Shards;
use crate::merge::lowest;

/// Hits that a worker gives at once at most.
const PAGE_HITS: usize = 100_000;
/// Records that are asked of a shard with one call.
const GETS_AT_ONCE: usize = 1000;

impl Shards {
    /// A record as a JSON object: the columns asked for by name, or all; none where the key has no record.
    pub async fn get(&self, key: &Literal, columns: Option<&[String]>) -> Result<Option<Json>> {
        let key = self.columns().key_of(key)?;
        Ok(self.get_many(&[key], columns).await?.pop().flatten())
    }

    /// Records in the order of the keys: one call for those of a shard.
    pub async fn get_many(&self, keys: &[Key], columns: Option<&[String]>) -> Result<Vec<Option<Json>>> {
        if let Some(columns) = columns {
            columns.iter().try_for_each(|name| self.columns().place(name).map(drop))?;
        }
        let mut by_shard = vec![Vec::new(); self.dataset.shards.len()];
        for (place, key) in keys.iter().enumerate() {
            by_shard[self.dataset.shard_of(key)].push(place);
        }
        let calls = by_shard.iter().enumerate().flat_map(|(shard, places)| {
            places.chunks(GETS_AT_ONCE).map(move |places| async move {
                let question = |place: &usize| json!({"get": self.columns().key_json(&keys[*place]), "columns": columns});
                let questions: Vec<Json> = places.iter().map(question).collect();
                Ok::<_, Error>((places, self.ask(shard, &questions).await?))
            })
        });
        let mut records = vec![None; keys.len()];
        for (places, answers) in try_join_all(calls).await? {
            debug_assert_eq!(answers.len(), places.len(), "each question has its answer");
            for (place, answer) in places.iter().zip(answers) {
                let answer = answer.into_result()?;
                records[*place] = (!answer.is_null()).then_some(answer);
            }
        }
        Ok(records)
    }

    /// The keys of the records that meet a condition, ascending: those above `after`, at most `limit`.
    pub async fn search(&self, condition: &Json, after: Option<&Key>, limit: Option<usize>) -> Result<Vec<Key>> {
        // What is wrong with it is known without asking anyone.
        Condition::from_json(condition)?.query(self.columns())?;
        let shards = (0..self.dataset.shards.len()).map(|shard| self.search_shard(shard, condition, after, limit));
        Ok(lowest(self.columns().key().kind, try_join_all(shards).await?, limit))
    }

    /// The same of one shard.
    pub async fn search_shard(
        &self,
        shard: usize,
        condition: &Json,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Result<Vec<Key>> {
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
        let counts = (0..self.dataset.shards.len()).map(|shard| self.count_shard(shard, condition));
        Ok(try_join_all(counts).await?.into_iter().sum())
    }

    /// The same of one shard.
    pub async fn count_shard(&self, shard: usize, condition: Option<&Json>) -> Result<u64> {
        let count = self.ask_one(shard, json!({"count": condition})).await?;
        count.as_u64().ok_or_else(|| Error::internal(format!("{}: {count} is no count", self.path)))
    }
}
