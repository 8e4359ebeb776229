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

impl Shards {
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
