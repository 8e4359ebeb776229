//! Our hand in Ballista's books: the private parts of its task binding, made again (which partitions wait, and the entry of the task that was
//! chosen), a task once more for its copy, and what it is told of who runs a task.

use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::execution_plans::{RangeShuffleReaderExec, ShuffleReaderExec};
use ballista_core::serde::protobuf::{AvailableVcores, RunningTask, TaskStatus, task_status};
use ballista_core::serde::scheduler::{ExecutorMetadata, ExecutorOperatingSystemSpecification, ExecutorSpecification, TaskKey};
use ballista_scheduler::cluster::BoundTask;
use ballista_scheduler::state::execution_graph::{ExecutionGraphBox, TaskDescription, create_task_info};
use ballista_scheduler::state::execution_stage::{ExecutionStage, RunningStage, TaskInfo};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use forebay_jobs::{Mark, TaskName};
use std::collections::BTreeSet;
use std::sync::Arc;

use super::words::{lost, status};
pub(super) use given::Scans;

mod given;

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

/// How far a stage has come. Ballista 55 numbers the attempts of a stage one after the other (`to_unresolved`, and `to_running` of a stage that
/// was done); within one `task_infos` only gets longer, with each task that is bound, and nothing but that takes out of `pending`:
/// `reset_task_info` and `reset_tasks` put back.
pub(super) fn mark(stage: &RunningStage) -> Mark {
    Mark { attempt: stage.stage_attempt_num, begun: stage.task_infos.len(), waiting: stage.pending.remaining() }
}

/// Takes these partitions out of those that wait, as many of them as do; none when none does. What waits gives its front only, so that
/// no more than has all of them is taken, and the others put back, in their order. One that waits twice, which only Ballista could say why, is
/// taken once as far as is looked, and counts as one.
pub(super) fn take(stage: &mut RunningStage, wanted: Option<&[usize]>) -> Option<Vec<usize>> {
    let Some(wanted) = wanted else { return in_order(stage.pending.next_slice(usize::MAX).into_iter().collect()) };
    let (mut taken, mut left, mut many) = (BTreeSet::new(), Vec::new(), wanted.len());
    while taken.len() < wanted.len() && !stage.pending.is_empty() {
        let front = stage.pending.next_slice(many);
        many = many.saturating_mul(2);
        let (these, others): (Vec<usize>, Vec<usize>) = front.into_iter().partition(|partition| wanted.contains(partition));
        taken.extend(these);
        left.extend(others);
    }
    debug_assert!(taken.len() <= wanted.len(), "{taken:?} are more than {wanted:?}");
    stage.pending.reschedule(left);
    in_order(taken)
}

/// As a union gives a task's partitions.
fn in_order(taken: BTreeSet<usize>) -> Option<Vec<usize>> {
    (!taken.is_empty()).then(|| taken.into_iter().collect())
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
    assert!(!partitions.is_empty(), "a task of stage {} has nothing to do", stage.stage_id);
    let task = stage.task_infos.len();
    let mut info = create_task_info(budget.executor_id.clone(), task);
    info.global_input_partition_ids.clone_from(&partitions);
    // The partitions of a task are driven by one thread.
    info.vcores_consumed = 1;
    stage.task_infos.push(info);
    described(stage, session, job, budget, (task, partitions), config)
}

/// Describes a task that runs once more, for its copy. None when it runs no more.
pub(super) fn bind_copy(
    graph: &ExecutionGraphBox,
    name: &TaskName,
    budget: &mut AvailableVcores,
    config: Arc<SessionConfig>,
) -> Option<BoundTask> {
    let (stage, task) = running_task(graph, name)?;
    let partitions = task.global_input_partition_ids.clone();
    Some(described(stage, graph.session_id(), &JobId::from(name.job.as_str()), budget, (name.task, partitions), config))
}

/// A task as it is sent.
fn described(
    stage: &RunningStage,
    session: &str,
    job: &JobId,
    budget: &mut AvailableVcores,
    (task, partitions): (usize, Vec<usize>),
    config: Arc<SessionConfig>,
) -> BoundTask {
    assert!(budget.vcores > 0, "a task goes to {}, which has no slot free", budget.executor_id);
    let attempt = partitions.iter().map(|partition| stage.task_failure_numbers[*partition]).max().unwrap_or(0);
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
    (budget.executor_id.clone(), description)
}

/// Tells Ballista who runs these tasks: one whose copy goes on alone is on another executor than it was given to.
pub(super) fn tell_moved(graph: &mut ExecutionGraphBox, moved: Vec<(TaskName, String)>) {
    for (name, executor) in moved {
        let runs_elsewhere = running_task(graph, &name).is_some_and(|(_, task)| match &task.task_status {
            task_status::Status::Running(running) => running.executor_id != executor,
            _ => false,
        });
        if !runs_elsewhere {
            continue;
        }
        let told_by = executor.clone();
        let status = status(&name, task_status::Status::Running(RunningTask { executor_id: executor }));
        if let Err(error) = tell(graph, told_by, vec![status]) {
            tracing::warn!(?name, %error, "who runs a task was not taken in");
        }
    }
}

/// What an executor runs of a job waits again, under other numbers. What it has done stays.
pub(super) fn waits_again(graph: &mut ExecutionGraphBox, job: &JobId, executor: &str) -> Result<()> {
    let mut waits = Vec::new();
    for stage in graph.stages().values() {
        let ExecutionStage::Running(stage) = stage else { continue };
        for (task, info) in stage.task_infos.iter().enumerate() {
            if let task_status::Status::Running(running) = &info.task_status
                && running.executor_id == executor
            {
                let (id, attempt) = (stage.stage_id, stage.stage_attempt_num);
                waits.push(lost(&TaskName { job: job.to_string(), stage: id, attempt, task }));
            }
        }
    }
    if waits.is_empty() { Ok(()) } else { tell(graph, executor.to_string(), waits) }
}

/// Tells Ballista of tasks. Who tells it counts for outputs, of which these have none.
fn tell(graph: &mut ExecutionGraphBox, id: String, told: Vec<TaskStatus>) -> Result<()> {
    let told_by = ExecutorMetadata {
        id,
        host: String::new(),
        port: 0,
        grpc_port: 0,
        specification: ExecutorSpecification::default(),
        os_info: ExecutorOperatingSystemSpecification::default(),
    };
    graph.update_task_status(&told_by, told, usize::MAX, usize::MAX).map(drop)
}

/// A task that runs, and its stage.
pub(super) fn running_task<'a>(graph: &'a ExecutionGraphBox, name: &TaskName) -> Option<(&'a RunningStage, &'a TaskInfo)> {
    let Some(ExecutionStage::Running(stage)) = graph.stages().get(&name.stage) else { return None };
    let task = stage.task_infos.get(name.task).filter(|_| stage.stage_attempt_num == name.attempt)?;
    matches!(task.task_status, task_status::Status::Running(_)).then_some((stage, task))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::empty::EmptyExec;
    use forebay_runtime::{random_range, repeat};

    use super::*;

    fn stage(partitions: usize) -> RunningStage {
        let plan = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
        RunningStage::new(1, 0, plan, partitions, Vec::new(), HashMap::new(), Arc::new(SessionConfig::new()))
    }

    /// A task of these partitions begins, if they wait.
    fn begins(stage: &mut RunningStage, wanted: Option<&[usize]>, executor: &str) {
        let mut budget = AvailableVcores { executor_id: executor.to_string(), vcores: 1 };
        if let Some(partitions) = take(stage, wanted) {
            bind(stage, "s", &JobId::from("j"), &mut budget, partitions, Arc::new(SessionConfig::new()));
        }
    }

    #[test]
    fn what_is_not_taken_waits_on_in_its_order() {
        let mut stage = stage(9);
        assert_eq!(take(&mut stage, Some(&[3, 1])), Some(vec![1, 3]));
        assert_eq!(pending(&stage), [0, 2, 4, 5, 6, 7, 8]);
        assert_eq!(take(&mut stage, Some(&[3, 8])), Some(vec![8]), "those that wait");
        assert_eq!((take(&mut stage, Some(&[1])), take(&mut stage, Some(&[]))), (None, None));
        assert_eq!(take(&mut stage, None), Some(vec![0, 2, 4, 5, 6, 7]));
        assert_eq!((take(&mut stage, None), take(&mut stage, Some(&[0]))), (None, None), "nothing waits");
    }

    #[test]
    fn a_partition_that_waits_twice_is_taken_once_and_keeps_no_other_from_being_taken() {
        let mut stage = stage(5);
        stage.pending.reschedule([3, 1]);
        assert_eq!(take(&mut stage, Some(&[1, 3, 4])), Some(vec![1, 3, 4]));
        assert_eq!(pending(&stage), [0, 2]);
        stage.pending.reschedule([2]);
        assert_eq!(take(&mut stage, None), Some(vec![0, 2]));
    }

    /// That of which [`mark`] lives, of Ballista's own stages.
    #[test]
    fn where_the_mark_is_the_same_the_same_partitions_wait() {
        let _series = repeat(11);
        let (mut stage, mut known, mut again) = (stage(12), HashMap::new(), 0);
        for _ in 0..4_000 {
            let executor = format!("e{}", random_range(0..4_usize));
            match random_range(0..50_usize) {
                0 => stage = stage.to_successful().to_running(),
                1 => begins(&mut stage, None, &executor),
                2..6 => {
                    stage.reset_tasks(&executor);
                }
                6..20 if !stage.task_infos.is_empty() => {
                    let task = random_range(0..stage.task_infos.len());
                    if matches!(stage.task_infos[task].task_status, task_status::Status::Running(_)) {
                        stage.reset_task_info(task);
                    }
                }
                _ => begins(&mut stage, Some(&[random_range(0..12_usize), random_range(0..12_usize)]), &executor),
            }
            let mut waits = pending(&stage);
            waits.sort_unstable();
            let Mark { attempt, begun, waiting } = mark(&stage);
            assert_eq!(waiting, waits.len());
            if let Some(before) = known.insert((attempt, begun, waiting), waits.clone()) {
                again += 1;
                assert_eq!(before, waits, "attempt {attempt}, of which {begun} tasks have begun");
            }
        }
        assert!(again > 100 && mark(&stage).attempt > 10, "{again} times nothing had changed");
    }
}
