//! A stage's plan as one of its tasks needs it: with the files of its partitions alone.
//!
//! Ballista cuts the plan of a stage down to the partitions of each task, and copies the list of all files of the stage to take a few of them. What
//! is handed to it here has them taken already, in a node that it leaves as it is.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use ballista_core::JobId;
use ballista_core::execution_plans::plan_algebra::as_partition_sliceable;
use ballista_scheduler::state::execution_graph::TaskDescription;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::proto::ExecutionPlanEncodeCtx;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties, replace_children_if_necessary,
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use parking_lot::Mutex;

type Plan = Arc<dyn ExecutionPlan>;

/// Fewer partitions of a stage are copied in less time than the way around it takes.
const PARTITIONS_LEAST: usize = 32;
/// Stages of which the scan is kept without its files. Beyond so many that run it is made again.
const STAGES_MAX: usize = 1_024;

/// The scans of stages, without their files.
#[derive(Default)]
pub(crate) struct Scans(Mutex<HashMap<(JobId, usize), Bare>>);

struct Bare {
    /// The plan whose scan it is, as the stage has it.
    of: Weak<dyn ExecutionPlan>,
    scan: Arc<FileScanConfig>,
}

impl Scans {
    /// The plan to hand to Ballista for a task: what it makes of it for the task's partitions is what it makes of the plan of the stage.
    pub(crate) fn given(&self, task: &TaskDescription) -> Plan {
        let plan = &task.plan;
        let whole = || Arc::clone(plan);
        let Some(scan) = parted_scan(plan).filter(|scan| scan.file_groups.len() >= PARTITIONS_LEAST) else { return whole() };
        let groups = task.global_input_partition_ids.iter().filter_map(|partition| scan.file_groups.get(*partition).cloned());
        let groups: Vec<FileGroup> = groups.collect();
        let bare = self.bare((task.key.job_id.clone(), task.key.stage_id), plan, scan);
        debug_assert!(bare.file_groups.is_empty(), "what is kept of a stage's scan has no files");
        let scan = FileScanConfigBuilder::from(FileScanConfig::clone(&bare)).with_file_groups(groups).build();
        let given = Arc::new(Given { scan: DataSourceExec::from_data_source(scan) });
        with_scan(plan, given).unwrap_or_else(|error| {
            tracing::debug!(%error, "a task's plan is made of all of its stage's");
            whole()
        })
    }

    /// The scan of a stage's plan without its files, made once.
    fn bare(&self, stage: (JobId, usize), plan: &Plan, scan: &FileScanConfig) -> Arc<FileScanConfig> {
        let mut all = self.0.lock();
        // A stage that is resolved again has another plan, which can't lie where the old one lay: what is pointed at weakly keeps its place.
        let known = all.get(&stage).filter(|bare| std::ptr::addr_eq(bare.of.as_ptr(), Arc::as_ptr(plan)));
        if let Some(bare) = known {
            return Arc::clone(&bare.scan);
        }
        // Its schema and statistics may be large: those of stages that are gone go with the next stage.
        all.retain(|_, bare| bare.of.strong_count() > 0);
        if all.len() >= STAGES_MAX {
            all.clear();
        }
        let scan = Arc::new(FileScanConfigBuilder::from(scan.clone()).with_file_groups(Vec::new()).build());
        all.insert(stage, Bare { of: Arc::downgrade(plan), scan: Arc::clone(&scan) });
        assert!(all.len() <= STAGES_MAX, "scans of {} stages are kept", all.len());
        scan
    }
}

/// The one scan of files in a plan of which a task reads its partitions alone. None where other nodes have parts too, which are left to Ballista.
fn parted_scan(plan: &Plan) -> Option<&FileScanConfig> {
    let mut node = plan;
    loop {
        if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
            return scan.data_source().downcast_ref::<FileScanConfig>();
        }
        node = node.children().into_iter().nth(parted_child(node)?)?;
    }
}

/// The one child of a node of which a task reads its partitions alone, by Ballista's own test (`child_scopes` in its `state/task_builder.rs`, which is
/// private). None of a node that numbers the partitions of its children anew, or has something for each of its own.
fn parted_child(node: &Plan) -> Option<usize> {
    let is_other = node.is::<UnionExec>() || node.is::<CoalescePartitionsExec>() || node.is::<SortPreservingMergeExec>();
    if is_other || as_partition_sliceable(node).is_some() {
        return None;
    }
    let asked = node.input_distribution_requirements();
    if asked.per_child_distributions().len() != node.children().len() {
        return None;
    }
    let is_parted = |at: &usize| !matches!(asked.child_distribution(*at), Some(Distribution::SinglePartition));
    let mut parted = (0..node.children().len()).filter(is_parted);
    let only = parted.next()?;
    parted.next().is_none().then_some(only)
}

/// A plan with another scan in the place of its [`parted_scan`].
fn with_scan(node: &Plan, scan: Plan) -> Result<Plan> {
    let Some(at) = parted_child(node) else {
        debug_assert!(node.is::<DataSourceExec>(), "{} is no scan", node.name());
        return Ok(scan);
    };
    let mut children: Vec<Plan> = node.children().into_iter().cloned().collect();
    children[at] = with_scan(&children[at], scan)?;
    replace_children_if_necessary(Arc::clone(node), children)
}

/// A scan of what a task reads, which Ballista takes for nothing that it knows to cut down. It is written as the scan.
#[derive(Debug)]
struct Given {
    scan: Plan,
}

impl DisplayAs for Given {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.scan.fmt_as(kind, f)
    }
}

impl ExecutionPlan for Given {
    fn name(&self) -> &str {
        "Given"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        Vec::new()
    }

    forebay_sql::no_expressions!();

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        debug_assert!(children.is_empty(), "a scan has no children");
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.scan.execute(partition, context)
    }

    fn try_to_proto(&self, context: &ExecutionPlanEncodeCtx<'_>) -> Result<Option<PhysicalPlanNode>> {
        context.encode_child(&self.scan).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::execution_plans::{ShuffleReaderExec, ShuffleWriterExec, compute_global_output_partition_ids};
    use ballista_core::serde::scheduler::{PartitionStats, TaskKey};
    use ballista_scheduler::state::task_builder::restrict_plan_to_partitions;
    use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::common::tree_node::TreeNode;
    use datafusion::common::{JoinType, NullEquality};
    use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::ParquetSource;
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
    use datafusion::prelude::SessionConfig;
    use datafusion_proto::physical_plan::AsExecutionPlan;
    use prost::Message;

    use super::*;
    use crate::codec::Codec;
    use crate::compressed;

    const PARTITIONS: usize = 50;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
    }

    /// A file for each partition.
    fn scan_of(folder: &str, partitions: usize, compression: FileCompressionType) -> Plan {
        let source = Arc::new(ParquetSource::new(schema()));
        let mut scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
            .with_limit(Some(7))
            .with_batch_size(Some(99))
            .with_file_compression_type(compression);
        for number in 0..partitions {
            scan = scan.with_file(PartitionedFile::new(format!("{folder}/{number}.parquet"), 100));
        }
        DataSourceExec::from_data_source(scan.build())
    }

    fn scan(partitions: usize) -> Plan {
        scan_of("a", partitions, FileCompressionType::UNCOMPRESSED)
    }

    fn broadcast() -> Plan {
        let output = crate::shuffle::output(1, 0, PartitionStats::new(Some(1), Some(1), Some(9)));
        Arc::new(ShuffleReaderExec::try_new_broadcast(2, vec![output], schema(), 1).unwrap())
    }

    fn joined(left: Plan, right: Plan, mode: PartitionMode) -> Plan {
        let on = vec![(col("n", &schema()).unwrap(), col("n", &schema()).unwrap())];
        let nulls = NullEquality::NullEqualsNothing;
        Arc::new(HashJoinExec::try_new(left, right, on, None, &JoinType::Inner, None, mode, nulls, false).unwrap())
    }

    fn stage(rows: Plan) -> Plan {
        Arc::new(ShuffleWriterExec::try_new(JobId::from("j".to_string()), 3, rows, String::new()).unwrap())
    }

    fn task(stage_id: usize, plan: &Plan, partitions: &[usize]) -> TaskDescription {
        TaskDescription {
            session_id: "s".to_string(),
            key: TaskKey { job_id: JobId::from("j".to_string()), stage_id, task_id: 0 },
            stage_attempt_num: 0,
            task_attempt: 0,
            global_input_partition_ids: partitions.to_vec(),
            vcores_consumed: 1,
            plan: Arc::clone(plan),
            session_config: Arc::new(SessionConfig::new()),
        }
    }

    /// What an executor gets of a plan, by Ballista.
    fn sent(plan: &Plan, partitions: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let restricted = restrict_plan_to_partitions(Arc::clone(plan), partitions).unwrap();
        let node = PhysicalPlanNode::try_from_physical_plan(restricted, &Codec::default()).unwrap();
        (node.encode_to_vec(), compute_global_output_partition_ids(plan, partitions))
    }

    #[test]
    fn a_task_is_sent_what_is_made_of_the_whole_plan_and_no_list_of_all_files_is_copied_for_it() {
        let scans = Scans::default();
        let compressed = compressed::marked(scan_of("c", PARTITIONS, FileCompressionType::GZIP)).unwrap();
        let beside = joined(broadcast(), scan(PARTITIONS), PartitionMode::CollectLeft);
        // The left side of this one is read by each task, all of it.
        let collected = joined(scan_of("b", 40, FileCompressionType::UNCOMPRESSED), scan(PARTITIONS), PartitionMode::CollectLeft);
        let plans = [scan(PARTITIONS), compressed, beside, collected].map(stage);
        for (id, plan) in plans.iter().enumerate() {
            let each = (0..PARTITIONS).map(|partition| vec![partition]);
            for partitions in each.chain([vec![3, 9, 41], vec![0, 1], (0..PARTITIONS).collect()]) {
                let given = scans.given(&task(id, plan, &partitions));
                assert_eq!(sent(&given, &partitions), sent(plan, &partitions), "partitions {partitions:?} of {plan:?}");
                let restricted = restrict_plan_to_partitions(given, &partitions).unwrap();
                assert!(restricted.exists(|node| Ok(node.is::<Given>())).unwrap(), "Ballista cut a scan down: {restricted:?}");
            }
        }
        assert_eq!(scans.0.lock().len(), 4, "once a stage");
    }

    #[test]
    fn plans_with_parts_in_several_places_or_few_partitions_are_left_to_ballista() {
        let scans = Scans::default();
        let union = UnionExec::try_new(vec![scan(PARTITIONS), scan(PARTITIONS)]).unwrap();
        let both = joined(scan(PARTITIONS), scan(PARTITIONS), PartitionMode::Partitioned);
        let together: Plan = Arc::new(CoalescePartitionsExec::new(scan(PARTITIONS)));
        for rows in [union, both, together, broadcast(), scan(PARTITIONS_LEAST - 1)] {
            let plan = stage(rows);
            assert!(Arc::ptr_eq(&scans.given(&task(1, &plan, &[0])), &plan), "{plan:?}");
        }
        assert!(scans.0.lock().is_empty());
    }

    #[test]
    fn a_stage_that_runs_again_by_another_plan_reads_the_files_of_that_one_and_stages_that_are_gone_are_not_kept() {
        let scans = Scans::default();
        let plans = ["a", "b"].map(|folder| stage(scan_of(folder, PARTITIONS, FileCompressionType::UNCOMPRESSED)));
        for plan in &plans {
            assert_eq!(sent(&scans.given(&task(1, plan, &[7])), &[7]), sent(plan, &[7]));
        }
        for id in 0..STAGES_MAX + 9 {
            scans.given(&task(id, &plans[0], &[7]));
            assert!(scans.0.lock().len() <= STAGES_MAX);
        }
        drop(plans);
        let last = stage(scan(PARTITIONS));
        for id in 0..STAGES_MAX {
            scans.given(&task(2 * STAGES_MAX + id, &last, &[7]));
            assert_eq!(scans.0.lock().len(), id + 1, "those of stages that are gone are let go of");
        }
    }
}
