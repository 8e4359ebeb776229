//! What the engine runs.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use forebay_shard::Key;
use forebay_shard_store::Condition;
use forebay_shards::Shards;
use forebay_trace::{TraceContext, current, within};
use forebay_types::Result as Answer;
use futures::stream::{self, Stream, StreamExt};
use serde_json::Value as Json;

use super::conditions::Asked;
use super::records::batch_of;

/// Records that are asked of a shard at once, and in a batch.
const PAGE: usize = 1000;

/// Shards that a partition of all of them asks at once.
const SHARDS_AT_ONCE: usize = 8;

/// One partition a shard: its records by key, or those that a search finds, a page at a time.
pub(super) struct ShardScan {
    pub(super) shards: Shards,
    pub(super) asked: Asked,
    /// What the conditions are in the language of shards.
    condition: Arc<Json>,
    pub(super) schema: SchemaRef,
    pub(super) limit: Option<usize>,
    properties: Arc<PlanProperties>,
    /// Where in a trace it was planned: what runs it may not know.
    trace: Option<TraceContext>,
}

impl ShardScan {
    pub(super) fn new(shards: Shards, asked: Asked, schema: SchemaRef, limit: Option<usize>) -> Self {
        let partitions = Partitioning::UnknownPartitioning(shards.dataset().shards.len());
        let equivalences = EquivalenceProperties::new(Arc::clone(&schema));
        let properties = PlanProperties::new(equivalences, partitions, EmissionType::Incremental, Boundedness::Bounded);
        let condition = Arc::new(Condition::And(asked.conditions.clone()).to_json());
        Self { shards, asked, condition, schema, limit, properties: Arc::new(properties), trace: current() }
    }

    /// The same of a query that is there in a trace.
    pub(super) fn in_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The same with all shards in one partition. Where Ballista cuts a plan into tasks it gives each its part of a scan of files;
    /// of any other scan each task has all partitions.
    pub(super) fn in_one_partition(self) -> Self {
        let properties = PlanProperties::clone(&self.properties).with_partitioning(Partitioning::UnknownPartitioning(1));
        Self { properties: Arc::new(properties), ..self }
    }

    /// The shards of a partition.
    fn shards_of(&self, partition: usize) -> std::ops::Range<usize> {
        match (self.properties.output_partitioning().partition_count(), self.shards.dataset().shards.len()) {
            (partitions, shards) if partitions == shards => partition..partition + 1,
            (_, shards) => 0..shards,
        }
    }

    fn pages(&self, shard: usize) -> Pages {
        let keys = self.asked.keys.as_ref().map(|keys| {
            let here = keys.iter().filter(|key| self.shards.dataset().shard_of(key) == shard);
            here.cloned().collect::<Vec<_>>().into_iter()
        });
        Pages {
            shards: self.shards.clone(),
            shard,
            condition: Arc::clone(&self.condition),
            schema: Arc::clone(&self.schema),
            left: self.limit.unwrap_or(usize::MAX),
            keys,
            at_once: PAGE,
            after: None,
            is_over: false,
        }
    }
}

impl fmt::Debug for ShardScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardScan").field("path", self.shards.path()).field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl DisplayAs for ShardScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardScan: {}, manifest {}", self.shards.path(), self.shards.manifest())?;
        match &self.asked.keys {
            Some(keys) => write!(f, ", {} keys", keys.len())?,
            None if self.asked.conditions.is_empty() => f.write_str(", all records")?,
            None => write!(f, ", search {}", self.condition)?,
        }
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit {limit}"))
    }
}

impl ExecutionPlan for ShardScan {
    fn name(&self) -> &str {
        "ShardScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    crate::no_expressions!();

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let pages: Vec<_> = self.shards_of(partition).map(|shard| self.pages(shard)).collect();
        let trace = current().or(self.trace);
        let batches = stream::iter(pages).flat_map_unordered(SHARDS_AT_ONCE, move |pages| Box::pin(batches(pages, trace)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}

fn batches(pages: Pages, trace: Option<TraceContext>) -> impl Stream<Item = Result<RecordBatch>> {
    stream::try_unfold(pages, move |mut pages| async move {
        let batch = within(trace, pages.next()).await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(batch.map(|batch| (batch, pages)))
    })
}

/// What is still to come of one shard.
struct Pages {
    shards: Shards,
    shard: usize,
    condition: Arc<Json>,
    schema: SchemaRef,
    /// Rows that may still be given.
    left: usize,
    /// Keys that are still to be read; none for a search.
    keys: Option<std::vec::IntoIter<Key>>,
    /// Records that are read at once.
    at_once: usize,
    /// The last key that was found.
    after: Option<Key>,
    is_over: bool,
}

impl Pages {
    async fn next(&mut self) -> Answer<Option<RecordBatch>> {
        loop {
            if self.is_over || self.left == 0 {
                return Ok(None);
            }
            // A search knows how many there are without finding each.
            let rows = match (&self.keys, self.schema.fields().is_empty()) {
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

    async fn counted(&mut self) -> Answer<RecordBatch> {
        self.is_over = true;
        let count = self.shards.count_shard(self.shard, Some(&self.condition)).await?;
        let rows = usize::try_from(count).unwrap_or(usize::MAX).min(self.left);
        let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), Vec::new(), &options)
            .map_err(|error| forebay_types::Error::internal(error.to_string()))
    }

    async fn read(&mut self) -> Answer<RecordBatch> {
        let keys = self.page().await?;
        let names: Vec<String> = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        let columns = self.shards.columns();
        // A key that a search gave is there; of a key that was asked for only the record says so.
        let is_key_alone = names.iter().all(|name| *name == columns.key().name);
        let records: Vec<Json> = if self.keys.is_some() {
            let columns = if names.is_empty() { vec![columns.key().name.clone()] } else { names };
            self.shards.get_many(&keys, Some(&columns)).await?.into_iter().flatten().collect()
        } else if is_key_alone {
            keys.iter()
                .map(|key| Json::Object([(columns.key().name.clone(), columns.key_json(key))].into_iter().collect()))
                .collect()
        } else {
            // Of what was changed since it was found no row is given that does not meet the conditions.
            let (read, records) = self.shards.get_found(&keys, &self.condition, &names).await?;
            if read < keys.len() {
                // The others are found again.
                (self.at_once, self.after, self.is_over) = (read, Some(keys[read - 1].clone()), false);
            } else {
                // Smaller ones may come behind large ones.
                self.at_once = (2 * self.at_once).min(PAGE);
            }
            records
        };
        let rows = records.len().min(self.left);
        batch_of(&records[..rows], columns, &self.schema)
    }

    /// The keys to read next.
    async fn page(&mut self) -> Answer<Vec<Key>> {
        let wanted = self.left.min(self.at_once);
        if let Some(keys) = &mut self.keys {
            // Keys without a record count for no row: a whole page at a time.
            let page: Vec<_> = keys.take(PAGE).collect();
            self.is_over = keys.len() == 0;
            return Ok(page);
        }
        let page = self.shards.search_shard(self.shard, &self.condition, self.after.as_ref(), Some(wanted)).await?;
        self.is_over = page.len() < wanted;
        self.after = page.last().cloned();
        Ok(page)
    }
}
