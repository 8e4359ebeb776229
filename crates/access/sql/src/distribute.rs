//! The trait by which a cluster runs an engine's plans, and the decision which plans can travel and how much they read.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, JsonSource};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::prelude::SessionConfig;
use forebay_types::{ObjectInfo, OperationId, Result};

use crate::drafts;
use crate::location::SCHEME;
use crate::scans::config;
use crate::shards::is_shard_scan;

/// What runs an engine's plans on many machines. The engine plans and pins; this sends the plan where it runs.
#[async_trait]
pub trait Distribute: Send + Sync {
    /// The session that plans for it: its settings and its rules.
    fn prepare(&self, config: SessionConfig) -> SessionStateBuilder;

    /// Runs a query; none when its plan can't travel, so that it runs here.
    async fn run(&self, query: DistributedQuery) -> Result<Option<DistributedRun>>;

    /// Why a plan can't travel; none when it can.
    fn stays(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<String>;

    /// Waits until nothing of what was begun runs there any more, or it was told to end.
    async fn settle(&self) {}
}

/// A query for a cluster.
pub struct DistributedQuery {
    /// The operation that all of its reads carry, wherever they are made.
    pub operation: OperationId,
    /// The statement.
    pub sql: String,
    /// What to run.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The session's settings.
    pub config: SessionConfig,
    /// The version of each object that it reads.
    pub pins: Vec<ObjectInfo>,
    /// Whose statement it is, as the audit log names them.
    pub who: Arc<str>,
}

/// A query that runs on a cluster; dropping it ends it there.
pub struct DistributedRun {
    /// Its rows.
    pub stream: SendableRecordBatchStream,
    /// How far it is.
    pub progress: Arc<dyn Fn() -> Progress + Send + Sync>,
}

/// How far a query is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that its plan has told it will read, as far as that is known yet.
    pub bytes_planned: u64,
    /// Bytes that it has read, from wherever they came, footers among them.
    pub bytes_read: u64,
    /// Tasks that are known of, where it runs on many machines.
    pub tasks: u64,
    /// Of these, how many are done.
    pub tasks_done: u64,
}

/// Why a query runs in the process that asks.
pub(crate) struct Stays {
    pub(crate) why: String,
    /// It reads files below mounts, so that whoever asked may take it for one that is distributed.
    pub(crate) surprises: bool,
}

/// What the serialised form of a scan does not say of how its files are read: it has no word for the end of a line, takes Arrow
/// streams for files, and cuts large numbers off.
fn untold(scan: &FileScanConfig) -> Option<&'static str> {
    let source = scan.file_source();
    let csv = (source.as_ref() as &dyn Any).downcast_ref::<CsvSource>();
    match () {
        () if csv.is_some_and(|csv| csv.terminator().is_some()) => {
            Some("executors can't be told what ends a line (`terminator`)")
        }
        () if source.file_type() == "arrow_stream" => Some("executors can't be told that an Arrow file is a stream"),
        // The engine's own source is one of lines.
        () if source.file_type() == "json" && !(source.as_ref() as &dyn Any).is::<JsonSource>() => {
            Some("executors can't be told that a JSON file is one array")
        }
        () if scan.limit.is_some_and(|limit| u32::try_from(limit).is_err()) => {
            Some("executors can't be told of so large a LIMIT")
        }
        () => None,
    }
}

/// What the serialised form of windows does not say of them, and why they stay. The engine has no way to ask for it but to print them.
const UNTOLD_OF_WINDOWS: [(&str, &str); 3] = [
    ("ignore_nulls: true", "executors can't be told that a window ignores nulls (IGNORE NULLS)"),
    ("filter: Some(", "executors can't be told which rows an aggregate over a window is of (FILTER)"),
    ("is_reversed: true", "executors can't be told that a window runs backwards, as one of two orders of windows does"),
];

fn untold_of_windows(node: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let windows = match (node.downcast_ref::<BoundedWindowAggExec>(), node.downcast_ref::<WindowAggExec>()) {
        (Some(node), _) => node.window_expr(),
        (None, Some(node)) => node.window_expr(),
        (None, None) => return None,
    };
    let text = format!("{windows:?}");
    UNTOLD_OF_WINDOWS.iter().find(|(mark, _)| text.contains(mark)).map(|(_, why)| (*why).to_string())
}

/// Steps of the deepest expression that executors compute: the threads of theirs have 2 MiB of stack, of which one takes up to 0.9 KiB.
const STEPS_MAX: usize = 1000;

fn too_deep(node: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let mut deepest = 0;
    let _ = node.apply_expressions(&mut |expr| {
        deepest = deepest.max(steps_of(expr));
        Ok(TreeNodeRecursion::Continue)
    });
    (deepest > STEPS_MAX).then(|| format!("{deepest} operators stand in a row in it, for which executors' threads are too small"))
}

fn steps_of(expr: &Arc<dyn PhysicalExpr>) -> usize {
    let (mut deepest, mut open) = (0, vec![(expr, 1)]);
    while let Some((expr, steps)) = open.pop() {
        deepest = deepest.max(steps);
        open.extend(expr.children().into_iter().map(|within| (within, steps + 1)));
    }
    deepest
}

fn joins(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<HashJoinExec>() || node.is::<SortMergeJoinExec>() || node.is::<NestedLoopJoinExec>() || node.is::<CrossJoinExec>()
}

/// Why a plan is for this process; none for one that reads files below mounts and nothing that only this process has, and gives
/// rows. Of datasets of shards alone it stays here: workers do what there is to do, so that tasks would win nothing.
pub(crate) fn stays(plan: &Arc<dyn ExecutionPlan>) -> Option<Stays> {
    let (mut leaves, mut unions, mut why) = (Leaves::default(), 0, None);
    let _ = plan.apply(|node| {
        if node.children().len() > 1 && !joins(node) {
            unions += 1;
        }
        let keeps = match node.name() {
            "DataSinkExec" => drafts::keeps(node),
            "AnalyzeExec" => Some("EXPLAIN ANALYZE measures in this process".to_string()),
            "ExplainExec" => Some("EXPLAIN runs nothing".to_string()),
            _ if node.children().is_empty() => leaves.look_at(node),
            _ => untold_of_windows(node),
        };
        why = why.take().or(keeps).or_else(|| too_deep(node));
        Ok(TreeNodeRecursion::Continue)
    });
    let why = match why {
        _ if leaves.files == 0 && leaves.shards > 0 => "datasets of shards are answered by workers".to_string(),
        _ if leaves.files == 0 => "it reads no files below mounts".to_string(),
        Some(why) => why,
        None if leaves.shards > 0 && unions > 0 => {
            "of a union each task would have all of a dataset of shards beside its part of the files".to_string()
        }
        None => return None,
    };
    Some(Stays { why, surprises: leaves.files > 0 })
}

/// What a plan's leaves read.
#[derive(Default)]
struct Leaves {
    /// Scans of files below mounts.
    files: usize,
    /// Scans of datasets of shards.
    shards: usize,
}

impl Leaves {
    /// Counts one; says why it can be nowhere but here.
    fn look_at(&mut self, node: &Arc<dyn ExecutionPlan>) -> Option<String> {
        match config(node) {
            Some(scan) if scan.object_store_url.as_str().starts_with(SCHEME) => {
                self.files += 1;
                untold(scan).map(str::to_string)
            }
            Some(_) => Some("it reads files that are below no mount".to_string()),
            None if node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>() => None,
            None if is_shard_scan(node) => {
                self.shards += 1;
                None
            }
            None => Some(format!("what {} gives is in this process alone", node.name())),
        }
    }
}

/// Bytes that a plan's scans read, by what is known without reading: of files in columns the share of the columns that are
/// asked for, taken as equally wide; of others all.
pub(crate) fn scan_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes = 0u64;
    let _ = plan.apply(|node| {
        if let Some(scan) = config(node) {
            let files: u64 = scan.file_groups.iter().flat_map(|group| group.files()).map(file_bytes).sum();
            let columns = scan.file_source().table_schema().file_schema().fields().len().max(1) as u64;
            let asked = (node.schema().fields().len() as u64).clamp(1, columns);
            let in_columns = ["parquet", "albis"].contains(&scan.file_source().file_type());
            bytes += if in_columns { files / columns * asked } else { files };
        }
        Ok(TreeNodeRecursion::Continue)
    });
    bytes
}

/// Of a file that several tasks read, each has a range.
fn file_bytes(file: &PartitionedFile) -> u64 {
    file.range.as_ref().map_or(file.object_meta.size, |range| (range.end - range.start).max(0) as u64)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_expr::expressions::{lit, not};
    use datafusion::physical_plan::filter::FilterExec;

    use super::*;

    #[test]
    fn what_is_too_deep_for_executors_is_told() {
        let filter = |steps: usize| -> Arc<dyn ExecutionPlan> {
            let condition = (1..steps).fold(lit(true), |within, _| not(within).unwrap());
            assert_eq!(steps_of(&condition), steps);
            let nothing = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
            Arc::new(FilterExec::try_new(condition, nothing).unwrap())
        };
        assert_eq!(too_deep(&filter(STEPS_MAX)), None);
        let why = too_deep(&filter(STEPS_MAX + 1)).unwrap();
        assert!(why.starts_with("1001 operators"), "{why}");
    }
}
