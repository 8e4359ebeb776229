//! What is asked of one shard, a page at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use forebay_shard::Key;
use forebay_shards::Shards;
use forebay_types::{Error, Result};
use serde_json::Value as Json;

use super::joined;
use super::records::batch_of;

/// Records that are asked of a shard at once, and in a batch.
const PAGE: usize = 1000;

/// What a partition asked.
#[derive(Clone)]
pub(super) struct Counts {
    /// Calls for records by their keys, and these keys.
    multi_gets: Count,
    keys_asked: Count,
    searches: Count,
}

impl Counts {
    pub(super) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self { multi_gets: count("multi_gets"), keys_asked: count("keys_asked"), searches: count("searches") }
    }
}

/// What is read of which shard.
pub(super) struct Of {
    pub(super) shards: Shards,
    pub(super) shard: usize,
    /// What its records are to meet, in the language of shards.
    pub(super) condition: Arc<Json>,
    /// Not all of them do.
    pub(super) is_search: bool,
    pub(super) schema: SchemaRef,
}

/// What is still to come of one shard.
pub(super) struct Pages {
    of: Of,
    /// Rows that may still be given.
    left: usize,
    /// Keys that are still to be read; none for a search.
    keys: Option<VecDeque<Key>>,
    /// What may name keys; none once it was looked at.
    filters: Option<Arc<[Arc<dyn PhysicalExpr>]>>,
    /// Keys were named by what runs above: their records are to meet the conditions, and may be too large for one answer.
    are_from_above: bool,
    /// Records that are read at once.
    at_once: usize,
    /// The last key that was found.
    after: Option<Key>,
    is_over: bool,
    counts: Counts,
}

impl Pages {
    /// All of them: records of these keys, or those that meet the conditions, at most so many.
    pub(super) fn new(
        of: Of,
        keys: Option<VecDeque<Key>>,
        filters: Arc<[Arc<dyn PhysicalExpr>]>,
        limit: Option<usize>,
        counts: Counts,
    ) -> Self {
        Self {
            of,
            left: limit.unwrap_or(usize::MAX),
            keys,
            filters: Some(filters),
            are_from_above: false,
            at_once: PAGE,
            after: None,
            is_over: false,
            counts,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(filters) = self.filters.take() {
            self.take_keys(&filters);
        }
        loop {
            if self.is_over || self.left == 0 {
                return Ok(None);
            }
            // A search knows how many there are without finding each.
            let rows = match (&self.keys, self.of.schema.fields().is_empty()) {
                (None, true) => self.counted().await?,
                _ => self.read().await?,
            };
            assert!(rows.num_rows() <= self.left, "{} rows of at most {}", rows.num_rows(), self.left);
            if rows.num_rows() > 0 {
                self.left = self.left.saturating_sub(rows.num_rows());
                return Ok(Some(rows));
            }
        }
    }

    /// Takes the keys that are named by now. Who asks for the first rows of a join has its other side; who asks earlier reads all.
    fn take_keys(&mut self, filters: &[Arc<dyn PhysicalExpr>]) {
        debug_assert!(self.after.is_none(), "nothing was read before");
        let Some(mut named) = joined::keys(filters, self.of.shards.columns()) else { return };
        if let Some(keys) = &mut self.keys {
            keys.retain(|key| named.contains(key));
            return;
        }
        let dataset = self.of.shards.dataset();
        named.retain(|key| dataset.shard_of(key) == self.of.shard);
        if joined::looks_up(named.len(), dataset.shards[self.of.shard].records, self.of.is_search) {
            (self.keys, self.are_from_above) = (Some(named.into_iter().collect()), true);
        }
    }

    async fn counted(&mut self) -> Result<RecordBatch> {
        self.is_over = true;
        self.counts.searches.add(1);
        let count = self.of.shards.count_shard(self.of.shard, Some(&self.of.condition)).await?;
        let rows = usize::try_from(count).unwrap_or(usize::MAX).min(self.left);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.of.schema), Vec::new(), &options)
            .map_err(|error| Error::internal(error.to_string()))
    }

    async fn read(&mut self) -> Result<RecordBatch> {
        let keys = self.page().await?;
        let names: Vec<String> = self.of.schema.fields().iter().map(|field| field.name().clone()).collect();
        let columns = self.of.shards.columns();
        // A key that a search gave is there; of a key that was asked for only the record says so.
        let is_key_alone = names.iter().all(|name| *name == columns.key().name);
        let records: Vec<Json> = if keys.is_empty() {
            Vec::new()
        } else if self.keys.is_some() && !self.are_from_above {
            let columns = if names.is_empty() { vec![columns.key().name.clone()] } else { names };
            self.of.shards.get_many(&keys, Some(&columns)).await?.into_iter().flatten().collect()
        } else if is_key_alone && self.keys.is_none() {
            keys.iter()
                .map(|key| Json::Object([(columns.key().name.clone(), columns.key_json(key))].into_iter().collect()))
                .collect()
        } else {
            // Of what was changed since it was found no row is given that does not meet the conditions.
            let (read, records) = self.of.shards.get_found(&keys, &self.of.condition, &names).await?;
            if read < keys.len() {
                self.at_once = read;
                self.again(&keys, read);
            } else {
                // Smaller ones may come behind large ones.
                self.at_once = (2 * self.at_once).min(PAGE);
            }
            records
        };
        let rows = records.len().min(self.left);
        batch_of(&records[..rows], self.of.shards.columns(), &self.of.schema)
    }

    /// The keys to read next.
    async fn page(&mut self) -> Result<Vec<Key>> {
        let wanted = self.left.min(self.at_once);
        if let Some(keys) = &mut self.keys {
            // Keys without a record count for no row: a whole page at a time.
            let page: Vec<_> = keys.drain(..self.at_once.min(keys.len())).collect();
            self.is_over = keys.is_empty();
            if !page.is_empty() {
                self.counts.multi_gets.add(1);
                self.counts.keys_asked.add(page.len());
            }
            return Ok(page);
        }
        self.counts.searches.add(1);
        let page = self.of.shards.search_shard(self.of.shard, &self.of.condition, self.after.as_ref(), Some(wanted)).await?;
        self.is_over = page.len() < wanted;
        self.after = page.last().cloned();
        Ok(page)
    }

    /// Has the keys of a page asked for again of which only the first ones were read.
    fn again(&mut self, keys: &[Key], read: usize) {
        assert!(0 < read && read < keys.len(), "{read} of {} keys were read", keys.len());
        self.is_over = false;
        match &mut self.keys {
            Some(left) => {
                for key in keys[read..].iter().rev() {
                    left.push_front(key.clone());
                }
            }
            // The others are found again.
            None => self.after = Some(keys[read - 1].clone()),
        }
    }
}
