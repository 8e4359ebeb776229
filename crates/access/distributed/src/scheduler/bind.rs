//! The private parts of Ballista's task binding, made again: which partitions wait, and the entry of the one that was chosen.

use ballista_core::JobId;
use ballista_core::execution_plans::{RangeShuffleReaderExec, ShuffleReaderExec};
use ballista_core::serde::protobuf::AvailableVcores;
use ballista_core::serde::scheduler::TaskKey;
use ballista_scheduler::cluster::BoundTask;
use ballista_scheduler::state::execution_graph::{TaskDescription, create_task_info};
use ballista_scheduler::state::execution_stage::RunningStage;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// Whether a stage brings its input together into one partition, so that all of it must be one task: parts of it would give
/// parts of the result. The same test as Ballista's own (`stage_has_input_collapse` in its `cluster/mod.rs`), which is
/// private.
pub(super) fn collapses(root: &Arc<dyn ExecutionPlan>) -> bool {
    fn walk(node: &Arc<dyn ExecutionPlan>) -> bool {
        if node.downcast_ref::<ShuffleReaderExec>().is_some() || node.downcast_ref::<RangeShuffleReaderExec>().is_some() {
            return false;
        }
        if node.output_partitioning().partition_count() == 1 {
            return true;
        }
        match node.children().as_slice() {
            [child] => walk(child),
            _ => false,
        }
    }
    match root.children().as_slice() {
        [child] => walk(child),
        _ => false,
    }
}

/// The partitions of a stage that wait for a task, front first.
pub(super) fn pending(stage: &RunningStage) -> Vec<usize> {
    stage.pending.clone().next_slice(usize::MAX)
}

/// Takes these partitions out of those that wait, as many of them as do; none when none does. What waits gives its front only, so that
/// all are taken and the others put back, in their order.
pub(super) fn take(stage: &mut RunningStage, wanted: Option<&[usize]>) -> Option<Vec<usize>> {
    let all = stage.pending.next_slice(usize::MAX);
    let Some(wanted) = wanted else { return (!all.is_empty()).then_some(all) };
    let (mut taken, left): (Vec<usize>, Vec<usize>) = all.into_iter().partition(|partition| wanted.contains(partition));
    stage.pending.reschedule(left);
    // A union gives a task's partitions in this order.
    taken.sort_unstable();
    (!taken.is_empty()).then_some(taken)
}

/// Notes a task in the stage's books and describes it, as Ballista's own `bind_one` does, which is private.
pub(super) fn bind(
    stage: &mut RunningStage,
    session: &str,
    job: &JobId,
    budget: &mut AvailableVcores,
    partitions: Vec<usize>,
    config: Arc<SessionConfig>,
) -> BoundTask {
    assert!(budget.vcores > 0, "a task goes to {}, which has no slot free", budget.executor_id);
    assert!(!partitions.is_empty(), "a task of stage {} has nothing to do", stage.stage_id);
    let executor = budget.executor_id.clone();
    let task = stage.task_infos.len();
    let attempt = partitions.iter().map(|partition| stage.task_failure_numbers[*partition]).max().unwrap_or(0);
    let mut info = create_task_info(executor.clone(), task);
    info.global_input_partition_ids.clone_from(&partitions);
    // The partitions of a task are driven by one thread.
    info.vcores_consumed = 1;
    stage.task_infos.push(info);
    budget.vcores -= 1;
    let description = TaskDescription {
        session_id: session.to_string(),
        key: TaskKey { job_id: job.clone(), stage_id: stage.stage_id, task_id: task },
        stage_attempt_num: stage.stage_attempt_num,
        task_attempt: attempt,
        global_input_partition_ids: partitions,
        vcores_consumed: 1,
        plan: Arc::clone(&stage.plan),
        session_config: config,
    };
    (executor, description)
}
