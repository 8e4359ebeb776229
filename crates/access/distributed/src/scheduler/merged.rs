//! Which small partitions of a stage are one task, by what the stages before it have left, or by what it reads of files: that is
//! known when it begins.
//!
//! The partitions stay what they are, in plans and in outputs: a task that is lost, or a stage that runs again, passes on what it did before.

use std::ops::Range;
use std::sync::Arc;

use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec};
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use forebay_jobs::Cut;
use forebay_scheduling::{TaskInput, together};

/// What passes between stages is so many times as long as the same in a file.
const COMPRESSED: u64 = 4;

/// Partitions of a task, at most: it has all of them under way at once, and a sort of each keeps 10 MiB for what it may spill, however
/// little it sorts.
const PARTITIONS_MAX: usize = 16;

/// How a stage that reads nothing but what others have left is cut into tasks, which read at least so many bytes each.
pub(super) fn cut(plan: &Arc<dyn ExecutionPlan>, partitions: usize, least: u64) -> Cut {
    let bytes = plan.children().first().and_then(|rows| bytes_passed_on(rows));
    bytes.filter(|bytes| bytes.len() == partitions).map_or(Cut::Each, |bytes| runs(&bytes, least))
}

/// The same for a stage that reads files, by what each partition reads of them, and nothing else that others have left for it alone.
pub(super) fn cut_of_files(plan: &Arc<dyn ExecutionPlan>, inputs: &[Vec<TaskInput>], least: u64) -> Cut {
    let is_more = |node: &Arc<dyn ExecutionPlan>| {
        is_of_all_pairs(node) || node.downcast_ref::<ShuffleReaderExec>().is_some_and(|reader| !reader.broadcast)
    };
    let of_partition = |inputs: &Vec<TaskInput>| inputs.iter().map(|input| input.range.len_bytes()).sum::<u64>();
    let bytes: Vec<u64> = inputs.iter().map(of_partition).collect();
    // Nothing is known of what can't be told, as of files that other rooms read.
    match bytes.contains(&0) || plan.exists(|node| Ok(is_more(node))).unwrap_or(true) {
        true => Cut::Each,
        false => runs(&bytes, least / COMPRESSED),
    }
}

fn runs(bytes: &[u64], least: u64) -> Cut {
    let (runs, partitions) = (together(bytes, least), bytes.len());
    if runs.len() == partitions {
        return Cut::Each;
    }
    let firsts: Arc<[u32]> = runs.into_iter().flat_map(parted).collect();
    assert_eq!(firsts.len(), partitions, "each partition is of one task");
    debug_assert!(firsts.iter().zip(0..).all(|(first, partition)| *first <= partition), "a task begins with its first partition");
    let tasks = firsts.iter().enumerate().filter(|(partition, first)| *partition == **first as usize).count();
    tracing::debug!(partitions, tasks, "small partitions go together");
    Cut::Runs(firsts)
}

/// For each partition of a run the first of its task: of one that is too long, as few tasks of the same length as there can be.
fn parted(run: Range<usize>) -> impl Iterator<Item = u32> {
    let tasks = run.len().div_ceil(PARTITIONS_MAX).max(1);
    let (start, each) = (run.start, run.len().div_ceil(tasks).max(1));
    run.map(move |partition| (partition - (partition - start) % each) as u32)
}

/// The bytes that each partition of a part of a plan reads of what other stages have left. None where it reads something else, where they are not
/// known, and where bytes say little of the work.
fn bytes_passed_on(node: &Arc<dyn ExecutionPlan>) -> Option<Vec<u64>> {
    let partitions = node.output_partitioning().partition_count();
    if let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() {
        if reader.broadcast {
            // All tasks read all of it.
            return Some(vec![0; partitions]);
        }
        let of_partition = |locations: &Vec<PartitionLocation>| locations.iter().try_fold(0, bytes_with);
        return reader.partition.iter().map(of_partition).collect();
    }
    let children = node.children();
    if children.is_empty() || is_of_all_pairs(node) {
        return None;
    }
    let of_children = children.into_iter().map(bytes_passed_on).collect::<Option<Vec<_>>>()?;
    if node.is::<UnionExec>() {
        return Some(of_children.concat());
    }
    let mut bytes = vec![0_u64; partitions];
    // What is brought together is read by each task, however many there are.
    for child in of_children.iter().filter(|child| child.len() == partitions) {
        bytes.iter_mut().zip(child).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }
    debug_assert_eq!(bytes.len(), partitions, "each partition reads something, or nothing");
    Some(bytes)
}

/// Whether a node has work for each pair of its sides' rows.
fn is_of_all_pairs(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<CrossJoinExec>() || node.is::<NestedLoopJoinExec>() || node.is::<PiecewiseMergeJoinExec>()
}

fn bytes_with(sum: u64, location: &PartitionLocation) -> Option<u64> {
    Some(sum.saturating_add(location.partition_stats.num_bytes()?))
}

#[cfg(test)]
mod tests {
    use ballista_core::JobId;
    use ballista_core::execution_plans::ShuffleWriterExec;
    use ballista_core::serde::scheduler::PartitionStats;
    use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
    use datafusion::common::{JoinType, NullEquality};
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::Partitioning;
    use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
    use forebay_scheduling::BlockRange;
    use forebay_types::{MountId, PageRun, SegmentId};

    use super::*;

    type Plan = Arc<dyn ExecutionPlan>;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
    }

    fn output(bytes: Option<u64>) -> PartitionLocation {
        crate::shuffle::output(1, 0, PartitionStats::new(Some(1), Some(1), bytes))
    }

    /// What reads outputs of so many bytes, those of each partition.
    fn reader(partitions: &[&[u64]]) -> Plan {
        let outputs = partitions.iter().map(|bytes| bytes.iter().map(|bytes| output(Some(*bytes))).collect()).collect();
        let keys = Partitioning::Hash(vec![col("n", &schema()).unwrap()], partitions.len());
        Arc::new(ShuffleReaderExec::try_new(1, outputs, schema(), keys).unwrap())
    }

    /// What reads small outputs whole.
    fn broadcast(outputs: usize) -> Plan {
        let outputs = vec![output(Some(1_000)); outputs];
        Arc::new(ShuffleReaderExec::try_new_broadcast(2, outputs, schema(), 1).unwrap())
    }

    fn joined(left: Plan, right: Plan, mode: PartitionMode) -> Plan {
        let on = vec![(col("n", &schema()).unwrap(), col("n", &schema()).unwrap())];
        let kind = (&JoinType::Inner, NullEquality::NullEqualsNothing);
        Arc::new(HashJoinExec::try_new(left, right, on, None, kind.0, None, mode, kind.1, false).unwrap())
    }

    fn cut_of(rows: Plan, least: u64) -> Cut {
        let partitions = rows.output_partitioning().partition_count();
        let stage = ShuffleWriterExec::try_new(JobId::from("j".to_string()), 3, rows, String::new()).unwrap();
        cut(&(Arc::new(stage) as Plan), partitions, least)
    }

    fn as_runs(firsts: &[u32]) -> Cut {
        Cut::Runs(Arc::from(firsts))
    }

    #[test]
    fn small_partitions_of_what_others_left_are_one_task() {
        let of = |least| cut_of(reader(&[&[1, 2], &[], &[5], &[9, 1], &[1], &[1]]), least);
        assert_eq!(of(0), Cut::Each);
        assert_eq!(of(3), as_runs(&[0, 1, 1, 3, 3, 3]), "what is left over goes with the one before");
        assert_eq!(of(6), as_runs(&[0, 0, 0, 3, 3, 3]));
        assert_eq!(of(1_000), as_runs(&[0; 6]));
        assert_eq!(cut_of(reader(&[&[4], &[4]]), 4), Cut::Each, "large enough");
    }

    #[test]
    fn a_task_has_so_many_partitions_at_most() {
        let one: &[u64] = &[1];
        let small = |partitions: usize| cut_of(reader(&vec![one; partitions]), 1_000);
        assert_eq!(small(PARTITIONS_MAX), as_runs(&[0; PARTITIONS_MAX]));
        let firsts = [[0; 14].as_slice(), &[14; 14], &[28; 12]].concat();
        assert_eq!(small(40), as_runs(&firsts), "three of the same length, nearly");
    }

    #[test]
    fn both_sides_of_a_join_count_and_what_is_read_whole_does_not() {
        let (left, right) = (|| reader(&[&[1], &[1], &[4], &[1]]), || reader(&[&[3], &[1], &[4], &[9]]));
        assert_eq!(cut_of(joined(left(), right(), PartitionMode::Partitioned), 4), as_runs(&[0, 1, 1, 3]));
        assert_eq!(cut_of(joined(broadcast(7), left(), PartitionMode::CollectLeft), 4), as_runs(&[0, 0, 0, 0]));
        let together = Arc::new(CoalescePartitionsExec::new(right()));
        assert_eq!(cut_of(joined(together, left(), PartitionMode::CollectLeft), 2), as_runs(&[0, 0, 2, 2]));
        let union = UnionExec::try_new(vec![left(), right()]).unwrap();
        assert_eq!(cut_of(union, 4), as_runs(&[0, 0, 0, 3, 3, 5, 5, 7]), "its partitions are those of its parts");
    }

    #[test]
    fn what_reads_files_or_whose_work_bytes_do_not_tell_is_not_put_together() {
        let small = || reader(&[&[1], &[1], &[1]]);
        let scan = Arc::new(EmptyExec::new(schema()).with_partitions(3));
        assert_eq!(cut_of(joined(scan, small(), PartitionMode::Partitioned), 4), Cut::Each);
        assert_eq!(cut_of(Arc::new(CrossJoinExec::new(broadcast(1), small())), 4), Cut::Each);
        let outputs = vec![vec![output(Some(1))], vec![output(None)]];
        let keys = Partitioning::UnknownPartitioning(2);
        let untold = ShuffleReaderExec::try_new(1, outputs, schema(), keys).unwrap();
        assert_eq!(cut_of(Arc::new(untold), 4), Cut::Each);
    }

    #[test]
    fn small_parts_of_files_are_one_task_where_nothing_else_is_read() {
        let page = PageRun::new(0, 1).bytes();
        let page = page.end - page.start;
        let input = |pages: u32| TaskInput {
            range: BlockRange { segment: SegmentId(1), pages: PageRun::new(0, pages) },
            storage: MountId(1),
            holders: Vec::new(),
            routed: Vec::new(),
        };
        let inputs: Vec<Vec<TaskInput>> = [1, 1, 4, 1, 2].map(|pages| vec![input(pages)]).to_vec();
        let of = |plan: &Plan, inputs: &[Vec<TaskInput>], pages: u64| cut_of_files(plan, inputs, pages * page * COMPRESSED);
        let scan: Plan = Arc::new(EmptyExec::new(schema()).with_partitions(5));
        assert_eq!(of(&scan, &inputs, 2), as_runs(&[0, 0, 2, 3, 3]));
        assert_eq!(of(&scan, &inputs, 1), Cut::Each);
        assert_eq!(of(&scan, &inputs, 0), Cut::Each);
        assert_eq!(of(&joined(broadcast(3), Arc::clone(&scan), PartitionMode::CollectLeft), &inputs, 9), as_runs(&[0; 5]));
        let beside = joined(reader(&[&[1], &[1], &[1], &[1], &[1]]), Arc::clone(&scan), PartitionMode::Partitioned);
        assert_eq!(of(&beside, &inputs, 9), Cut::Each, "it reads what is large, perhaps");
        let untold = [inputs[..4].to_vec(), vec![Vec::new()]].concat();
        assert_eq!(of(&scan, &untold, 9), Cut::Each);
        assert_eq!(of(&scan, &[], 9), Cut::Each);
    }
}
