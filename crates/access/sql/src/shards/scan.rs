//! What the engine runs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, apply_expression_roots,
};
use forebay_shard_store::Condition;
use forebay_shards::Shards;
use forebay_trace::{TraceContext, current, within};
use futures::stream::{self, Stream, StreamExt};
use serde_json::Value as Json;

use super::conditions::Asked;
use super::joined;
use super::pages::{Counts, Of, Pages};

/// Shards that a partition of all of them asks at once.
const SHARDS_AT_ONCE: usize = 8;

/// One partition a shard that is asked: its records by key, or those that a search finds, a page at a time.
pub(super) struct ShardScan {
    pub(super) shards: Shards,
    pub(super) asked: Asked,
    /// What the conditions are in the language of shards.
    condition: Arc<Json>,
    pub(super) schema: SchemaRef,
    pub(super) limit: Option<usize>,
    /// The shards that are asked, by their numbers.
    pub(super) places: Arc<[usize]>,
    /// What runs above may come to name the keys of the rows that it wants.
    filters: Arc<[Arc<dyn PhysicalExpr>]>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
    /// Where in a trace it was planned: what runs it may not know.
    trace: Option<TraceContext>,
    /// No planner has made it: the statement was planned before.
    was_planned_before: bool,
}

impl ShardScan {
    pub(super) fn new(shards: Shards, asked: Asked, schema: SchemaRef, limit: Option<usize>) -> Self {
        let places = places(&shards, &asked);
        Self::at(shards, asked, places, schema, limit)
    }

    /// The same of these shards, of which the others have nothing that is asked.
    pub(super) fn at(shards: Shards, asked: Asked, places: Arc<[usize]>, schema: SchemaRef, limit: Option<usize>) -> Self {
        let partitions = Partitioning::UnknownPartitioning(places.len());
        let equivalences = EquivalenceProperties::new(Arc::clone(&schema));
        debug_assert!(!places.is_empty(), "a dataset has shards, and a plan parts");
        debug_assert!(places.is_sorted(), "each is asked once, in order");
        let properties = PlanProperties::new(equivalences, partitions, EmissionType::Incremental, Boundedness::Bounded);
        let condition = Arc::new(Condition::And(asked.conditions.clone()).to_json());
        let (filters, metrics) = (Arc::default(), ExecutionPlanMetricsSet::new());
        let (properties, trace) = (Arc::new(properties), current());
        Self { shards, asked, condition, schema, limit, places, filters, metrics, properties, trace, was_planned_before: false }
    }

    /// The same, with these filters to look at when it begins.
    fn with_filters(&self, filters: Arc<[Arc<dyn PhysicalExpr>]>) -> Self {
        Self {
            shards: self.shards.clone(),
            asked: self.asked.clone(),
            condition: Arc::clone(&self.condition),
            schema: Arc::clone(&self.schema),
            limit: self.limit,
            places: Arc::clone(&self.places),
            filters,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::clone(&self.properties),
            trace: self.trace,
            was_planned_before: self.was_planned_before,
        }
    }

    /// The same of a query that is there in a trace.
    pub(super) fn in_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// The same of a statement that was planned before.
    pub(super) fn planned_before(self) -> Self {
        Self { was_planned_before: true, ..self }
    }

    /// The same with all shards in one partition. Where Ballista cuts a plan into tasks it gives each its part of a scan of files;
    /// of any other scan each task has all partitions.
    pub(super) fn in_one_partition(self) -> Self {
        let properties = PlanProperties::clone(&self.properties).with_partitioning(Partitioning::UnknownPartitioning(1));
        Self { properties: Arc::new(properties), ..self }
    }

    /// The shards of a partition.
    fn shards_of(&self, partition: usize) -> &[usize] {
        match self.properties.output_partitioning().partition_count() == self.places.len() {
            true => &self.places[partition..=partition],
            false => &self.places,
        }
    }

    /// The rows of a partition.
    pub(super) fn rows(&self, partition: usize) -> SendableRecordBatchStream {
        let counts = Counts::new(&self.metrics, partition);
        let pages: Vec<_> = self.shards_of(partition).iter().map(|shard| self.pages(*shard, counts.clone())).collect();
        let trace = current().or(self.trace);
        let batches = stream::iter(pages).flat_map_unordered(SHARDS_AT_ONCE, move |pages| Box::pin(batches(pages, trace)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }

    fn pages(&self, shard: usize, counts: Counts) -> Pages {
        let keys = self.asked.keys.as_ref().map(|keys| {
            let here = keys.iter().filter(|key| self.shards.dataset().shard_of(key) == shard);
            here.cloned().collect()
        });
        let of = Of {
            shards: self.shards.clone(),
            shard,
            condition: Arc::clone(&self.condition),
            is_search: !self.asked.conditions.is_empty(),
            schema: Arc::clone(&self.schema),
        };
        Pages::new(of, keys, Arc::clone(&self.filters), self.limit, counts)
    }
}

/// The shards that have what is asked: for keys, or ranges of them, those that these are in, one at least.
fn places(shards: &Shards, asked: &Asked) -> Arc<[usize]> {
    let dataset = shards.dataset();
    let mut places: BTreeSet<usize> = match (&asked.keys, &asked.ranges) {
        (Some(keys), _) => keys.iter().map(|key| dataset.shard_of(key)).collect(),
        (None, Some(ranges)) => dataset.map().meeting_any(ranges),
        (None, None) => (0..dataset.shards.len()).collect(),
    };
    if places.is_empty() {
        places.insert(0);
    }
    places.into_iter().collect()
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
        if self.asked.ranges.is_some() && self.shards.dataset().splits.is_some() {
            write!(f, ", {} of {} shards", self.places.len(), self.shards.dataset().shards.len())?;
        }
        if !self.filters.is_empty() {
            write!(f, ", or by {} where what runs above names few", self.shards.columns().key().name)?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit {limit}")?;
        }
        f.write_str(if self.was_planned_before { ", planned before" } else { "" })
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

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.filters.iter(), f)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    /// Of joins that begin anew what they filtered by before says nothing.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_filters(Arc::default())))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        given: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let columns = self.shards.columns();
        let filters = given.parent_filters.iter().map(|given| &given.filter);
        let more: Vec<_> = filters.filter(|filter| joined::may_name(filter, columns)).cloned().collect();
        let left_to_others = FilterPushdownPropagation::all_unsupported(given);
        // A limit takes its rows before what runs above leaves some out.
        if more.is_empty() || self.limit.is_some() {
            return Ok(left_to_others);
        }
        let all = self.filters.iter().cloned().chain(more).collect();
        Ok(left_to_others.with_updated_node(Arc::new(self.with_filters(all))))
    }

    /// As many rows as the manifest has records, which changes since then make more or less: enough to tell which side of a join is small.
    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let shards = &self.shards.dataset().shards;
        let places = args.partition().map_or(&*self.places, |partition| self.shards_of(partition));
        let records = places.iter().map(|place| shards[*place].records).sum::<u64>();
        let keys = self.asked.keys.as_ref().map(|keys| keys.len());
        let rows = joined::presumed(records, keys, !self.asked.conditions.is_empty());
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(self.limit.unwrap_or(usize::MAX));
        Ok(Arc::new(Statistics { num_rows: Precision::Inexact(rows), ..Statistics::new_unknown(&self.schema) }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(self.rows(partition))
    }
}

/// Whether a plan has scans that look at what joins above them hand down.
pub(crate) fn takes_keys(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|node| Ok(node.downcast_ref::<ShardScan>().is_some_and(|scan| !scan.filters.is_empty()))).unwrap_or(false)
}

/// What a plan runs in: where it has scans that take keys from what runs above them, joins hand down more values.
pub(crate) fn with_keys(plan: &Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Arc<TaskContext> {
    if !takes_keys(plan) {
        return context;
    }
    let config = joined::with_room(context.session_config().clone());
    match Arc::try_unwrap(context) {
        Ok(context) => Arc::new(context.with_session_config(config)),
        Err(shared) => shared,
    }
}

fn batches(pages: Pages, trace: Option<TraceContext>) -> impl Stream<Item = Result<RecordBatch>> {
    stream::try_unfold(pages, move |mut pages| async move {
        let batch = within(trace, pages.next()).await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(batch.map(|batch| (batch, pages)))
    })
}
