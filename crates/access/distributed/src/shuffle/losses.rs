//! Carries the names of several executors in Ballista's one field for a lost output, and takes them apart at the scheduler.

use std::collections::BTreeSet;

use ballista_core::serde::protobuf::failed_task::FailedReason;
use ballista_core::serde::protobuf::{TaskStatus, task_status};

/// Between the names of executors, none of which has it.
const BETWEEN: char = ',';

/// The executors whose outputs are lost, as the one that Ballista has a place for.
pub(super) fn together<'a>(executors: impl IntoIterator<Item = &'a str>) -> String {
    let each: BTreeSet<&str> = executors.into_iter().collect();
    Vec::from_iter(each).join(&BETWEEN.to_string())
}

/// The same status for each executor whose outputs its task found lost. Ballista takes all that come with one message; a stage
/// that is told of one after the other runs once for each, and is given up after some.
pub(crate) fn each(status: TaskStatus) -> Vec<TaskStatus> {
    let Some(task_status::Status::Failed(failed)) = &status.status else { return vec![status] };
    let Some(FailedReason::FetchPartitionError(lost)) = &failed.failed_reason else { return vec![status] };
    let of = |executor: &str| {
        let mut lost = lost.clone();
        lost.executor_id = executor.to_string();
        let mut failed = failed.clone();
        failed.failed_reason = Some(FailedReason::FetchPartitionError(lost));
        TaskStatus { status: Some(task_status::Status::Failed(failed)), ..status.clone() }
    };
    lost.executor_id.split(BETWEEN).map(of).collect()
}

#[cfg(test)]
mod tests {
    use ballista_core::error::BallistaError;

    use super::*;

    #[test]
    fn executors_are_told_one_by_one() {
        let error = BallistaError::FetchFailed(together(["b", "a", "b"]), 3, 7, "gone".to_string());
        let status = Some(task_status::Status::Failed(error.into()));
        let told = each(TaskStatus { task_id: 5, status, ..Default::default() });
        let lost: Vec<_> = told
            .iter()
            .map(|status| match &status.status {
                Some(task_status::Status::Failed(failed)) => match &failed.failed_reason {
                    Some(FailedReason::FetchPartitionError(lost)) => {
                        (status.task_id, lost.map_stage_id, lost.map_partition_id, lost.executor_id.as_str())
                    }
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lost, [(5, 3, 7, "a"), (5, 3, 7, "b")]);
        assert_eq!(each(TaskStatus::default()), [TaskStatus::default()]);
    }
}
