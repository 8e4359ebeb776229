use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::prelude::SessionConfig;
use forebay_types::{ObjectInfo, OperationId, Result};

use crate::paths::SCHEME;
use crate::query::Progress;
use crate::shards::is_shard_scan;

/// What runs an engine's plans on many machines. The engine plans and pins; this sends the plan where it runs.
#[async_trait]
pub trait Distribute: Send + Sync {
    /// The session that plans for it: its settings and its rules.
    fn prepare(&self, config: SessionConfig) -> SessionStateBuilder;

    /// Runs a query; none when its plan can't travel, so that it runs here.
    async fn run(&self, query: DistributedQuery) -> Result<Option<DistributedRun>>;
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

/// Whether the serialised form of a scan says all of how its files are read: it has no word for the end of a line, and takes
/// Arrow streams for files.
fn is_told_whole(scan: &FileScanConfig) -> bool {
    let source = scan.file_source();
    let csv = (source.as_ref() as &dyn Any).downcast_ref::<CsvSource>();
    csv.is_none_or(|csv| csv.terminator().is_none()) && source.file_type() != "arrow_stream"
}

fn joins(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<HashJoinExec>() || node.is::<SortMergeJoinExec>() || node.is::<NestedLoopJoinExec>() || node.is::<CrossJoinExec>()
}

/// Whether a plan reads files below mounts and nothing that only this process has, and gives rows. Of datasets of shards alone it
/// stays here: workers do what there is to do, so that tasks would win nothing.
pub(crate) fn can_travel(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let (mut files, mut others, mut shards, mut unions) = (0, 0, 0, 0);
    let _ = plan.apply(|node| {
        let stays = ["DataSinkExec", "AnalyzeExec", "ExplainExec"].contains(&node.name());
        if stays {
            others += 1;
        }
        if node.children().len() > 1 && !joins(node) {
            unions += 1;
        }
        if node.children().is_empty() {
            let scan = node.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
            match scan {
                Some(scan) if scan.object_store_url.as_str().starts_with(SCHEME) && is_told_whole(scan) => files += 1,
                _ if node.downcast_ref::<EmptyExec>().is_some() || node.downcast_ref::<PlaceholderRowExec>().is_some() => {}
                _ if is_shard_scan(node) => shards += 1,
                _ => others += 1,
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // Of a union each task would have all of a dataset beside its part of the files.
    files > 0 && others == 0 && (shards == 0 || unions == 0)
}

/// Bytes that a plan's scans read, by what is known without reading: of files in columns the share of the columns that are
/// asked for, taken as equally wide; of others all.
pub(crate) fn scan_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes = 0u64;
    let _ = plan.apply(|node| {
        let scan = node.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        if let Some(scan) = scan {
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
