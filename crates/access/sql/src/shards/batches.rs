//! Records of a dataset as batches, for who asks for them without a statement.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use forebay_shard::Key;
use forebay_shard_store::{Condition, Literal};
use forebay_shards::Shards;
use forebay_types::{Error, Result};
use serde_json::{Value as Json, json};

use super::records::{batch_of, schema_of};

/// Rows of a batch at most.
const ROWS: usize = 4096;

/// Records that come a page at a time, as columns of the types that SQL has them in.
pub struct ShardBatches {
    shards: Shards,
    schema: SchemaRef,
    names: Vec<String>,
    condition: Json,
    rest: Rest,
    /// Rows that may still be given.
    left: usize,
    /// Records that are read at once.
    at_once: usize,
}

/// What is still to be read.
enum Rest {
    /// Records of these keys.
    Keys(VecDeque<Key>),
    /// What is found behind this key.
    Found(Option<Key>),
}

impl ShardBatches {
    /// The records of keys, in their order, with all columns or those that are asked for. A key without a record has no row.
    pub fn of_keys(shards: Shards, keys: &[Literal], columns: Option<&[String]>) -> Result<Self> {
        let keys = keys.iter().map(|key| shards.columns().key_of(key)).collect::<Result<_>>()?;
        Self::new(shards, json!({"and": []}), Rest::Keys(keys), None, columns)
    }

    /// The records that meet a condition, ascending by their keys: those above `after`, at most `limit`.
    pub fn found(
        shards: Shards,
        condition: &Condition,
        after: Option<&Literal>,
        limit: Option<usize>,
        columns: Option<&[String]>,
    ) -> Result<Self> {
        // What is wrong with it is known without asking anyone.
        condition.query(shards.columns())?;
        let after = after.map(|after| shards.columns().key_of(after)).transpose()?;
        Self::new(shards, condition.to_json(), Rest::Found(after), limit, columns)
    }

    fn new(shards: Shards, condition: Json, rest: Rest, limit: Option<usize>, columns: Option<&[String]>) -> Result<Self> {
        let all = schema_of(shards.columns());
        let places = match columns {
            Some(names) => names.iter().map(|name| shards.columns().place(name)).collect::<Result<_>>()?,
            None => (0..all.fields().len()).collect::<Vec<_>>(),
        };
        let schema = all.project(&places).map_err(|error| Error::internal(error.to_string()))?;
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let left = limit.unwrap_or(usize::MAX);
        Ok(Self { shards, schema: Arc::new(schema), names, condition, rest, left, at_once: ROWS })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next rows, some at least; none at the end.
    pub async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let (keys, are_last) = self.page().await?;
            if keys.is_empty() {
                break;
            }
            let (read, records) = self.records(&keys).await?;
            assert!(read <= keys.len() && records.len() <= read, "{} records of {read} keys", records.len());
            match &mut self.rest {
                Rest::Keys(rest) => drop(rest.drain(..read)),
                Rest::Found(after) => *after = keys[..read].last().cloned(),
            }
            // Smaller ones may come behind large ones.
            self.at_once = if read < keys.len() { read } else { (2 * self.at_once).min(ROWS) };
            self.left = if are_last && read == keys.len() { 0 } else { self.left.saturating_sub(records.len()) };
            if !records.is_empty() {
                return batch_of(&records, self.shards.columns(), &self.schema).map(Some);
            }
        }
        self.left = 0;
        Ok(None)
    }

    /// The keys to read next, and whether there are none behind them.
    async fn page(&self) -> Result<(Vec<Key>, bool)> {
        let wanted = self.left.min(self.at_once);
        Ok(match &self.rest {
            Rest::Keys(keys) => (keys.iter().take(wanted).cloned().collect(), keys.len() <= wanted),
            Rest::Found(after) => {
                let keys = self.shards.search(&self.condition, after.as_ref(), Some(wanted)).await?;
                let are_last = keys.len() < wanted;
                (keys, are_last)
            }
        })
    }

    /// Of how many keys, the first ones, records were read, and those that meet the condition.
    async fn records(&self, keys: &[Key]) -> Result<(usize, Vec<Json>)> {
        let columns = self.shards.columns();
        // A key that a search gave is there; of a key that was asked for only the record says so.
        if matches!(self.rest, Rest::Found(_)) && self.names.iter().all(|name| *name == columns.key().name) {
            let record = |key: &Key| Json::Object([(columns.key().name.clone(), columns.key_json(key))].into_iter().collect());
            return Ok((keys.len(), keys.iter().map(record).collect()));
        }
        self.shards.get_found(keys, &self.condition, &self.names).await
    }
}
