//! What executors say in Ballista's messages, in the words of the books, and what Ballista hears by them.

use ballista_core::serde::protobuf::failed_task::FailedReason;
use ballista_core::serde::protobuf::{ExecutionError, FailedTask, ResultLost, TaskStatus, task_status};
use forebay_jobs::{Done, Heard, RUN_AGAIN, Said, TaskName, Word};

use super::own_time::computed_for;
use crate::broken_off::is_broken_off;
use crate::shuffle::is_in_nodes;

/// The task that a status is of.
pub(super) fn name(status: &TaskStatus) -> TaskName {
    let (stage, attempt) = (status.stage_id as usize, status.stage_attempt_num as usize);
    TaskName { job: status.job_id.clone(), stage, attempt, task: status.task_id as usize }
}

/// What a status says.
pub(super) fn word(status: &TaskStatus) -> Word {
    let name = name(status);
    if let Some(task_status::Status::Failed(failed)) = &status.status {
        let TaskName { job, stage, task, .. } = &name;
        tracing::debug!(%job, stage, task, error = %failed.error, "task failed");
    }
    let said = match &status.status {
        Some(task_status::Status::Successful(task)) => Said::Done(Done {
            in_files: task.partitions.iter().any(|place| !is_in_nodes(place.file_id)),
            rows: task.partitions.iter().map(|place| place.num_rows).sum(),
            bytes: task.partitions.iter().map(|place| place.num_bytes).sum(),
            operators: status.metrics.len(),
        }),
        Some(task_status::Status::Failed(failed))
            if matches!(failed.failed_reason, Some(FailedReason::FetchPartitionError(_))) =>
        {
            Said::LostInput
        }
        Some(task_status::Status::Failed(failed)) if is_broken_off(&failed.error) => Said::BrokenOff,
        Some(task_status::Status::Failed(_)) => Said::Failed,
        _ => Said::Goes,
    };
    Word { name, took: computed_for(status), said }
}

/// A status as Ballista is to hear it.
pub(super) fn as_heard(mut status: TaskStatus, heard: Heard) -> TaskStatus {
    match (heard, &mut status.status) {
        (Heard::WithoutOperators, _) => status.metrics.clear(),
        (Heard::WaitsAgain, Some(task_status::Status::Failed(failed))) => {
            // Of what it has written nobody was told.
            failed.failed_reason = Some(FailedReason::ResultLost(ResultLost {}));
            (failed.retryable, failed.count_to_failures) = (true, true);
        }
        (Heard::JobRunsAgain, Some(task_status::Status::Failed(failed))) => {
            failed.error = format!("{RUN_AGAIN}: {}", failed.error);
            failed.failed_reason = Some(FailedReason::ExecutionError(ExecutionError {}));
            failed.retryable = false;
        }
        (Heard::AsSaid | Heard::WaitsAgain | Heard::JobRunsAgain, _) => {}
    }
    status
}

/// That nobody runs a task any more, as Ballista is told: it waits again.
pub(super) fn lost(name: &TaskName) -> TaskStatus {
    let lost = task_status::Status::Failed(FailedTask {
        error: "it was lost with its executor, or with a connection".to_string(),
        retryable: true,
        count_to_failures: false,
        failed_reason: Some(FailedReason::ResultLost(ResultLost {})),
    });
    status(name, lost)
}

/// What Ballista is told of a task.
pub(super) fn status(name: &TaskName, status: task_status::Status) -> TaskStatus {
    TaskStatus {
        task_id: name.task as u32,
        job_id: name.job.clone(),
        stage_id: name.stage as u32,
        stage_attempt_num: name.attempt as u32,
        status: Some(status),
        ..TaskStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::error::BallistaError;
    use ballista_core::serde::protobuf::{OperatorMetricsSet, ShuffleWritePartition, SuccessfulTask};

    use super::*;

    fn told(said: task_status::Status) -> TaskStatus {
        status(&TaskName { job: "j".into(), stage: 3, attempt: 1, task: 7 }, said)
    }

    fn failed(error: &str) -> TaskStatus {
        let reason = Some(FailedReason::ExecutionError(ExecutionError {}));
        let failed = FailedTask { error: error.into(), failed_reason: reason, ..FailedTask::default() };
        told(task_status::Status::Failed(failed))
    }

    #[test]
    fn what_an_executor_says_is_told_to_the_books_whole() {
        let place =
            |file| ShuffleWritePartition { file_id: Some(file), num_rows: 3, num_bytes: 40, ..ShuffleWritePartition::default() };
        let done = |files: &[u64]| {
            let partitions = files.iter().map(|file| place(*file)).collect();
            let done = task_status::Status::Successful(SuccessfulTask { partitions, ..SuccessfulTask::default() });
            TaskStatus { metrics: vec![OperatorMetricsSet::default(); 2], ..told(done) }
        };
        let in_nodes = 1 << 63 | 7;
        let of = |in_files, parts: u64| Said::Done(Done { in_files, rows: 3 * parts, bytes: 40 * parts, operators: 2 });
        for (files, said) in [(vec![in_nodes], of(false, 1)), (vec![in_nodes, 7], of(true, 2)), (vec![], of(false, 0))] {
            let word = word(&done(&files));
            assert_eq!((word.said, &word.name), (said, &name(&done(&files))), "{files:?}");
        }
        let lost = FailedTask::from(BallistaError::FetchFailed("e".into(), 1, 0, "gone".into()));
        assert_eq!(word(&told(task_status::Status::Failed(lost))).said, Said::LostInput);
        assert_eq!(word(&failed("h2 protocol error: error reading a body from connection")).said, Said::BrokenOff);
        assert_eq!(word(&failed("Divide by zero error")).said, Said::Failed);
        assert_eq!(word(&TaskStatus::default()).said, Said::Goes);
        assert_eq!(name(&failed("any")), TaskName { job: "j".into(), stage: 3, attempt: 1, task: 7 });
    }

    #[test]
    fn ballista_hears_what_the_books_say() {
        let heard = |heard| match as_heard(failed("gone"), heard).status {
            Some(task_status::Status::Failed(failed)) => failed,
            other => panic!("{other:?}"),
        };
        assert_eq!(Some(task_status::Status::Failed(heard(Heard::AsSaid))), failed("gone").status);
        let again = heard(Heard::WaitsAgain);
        assert!(matches!(again.failed_reason, Some(FailedReason::ResultLost(_))), "it waits again: {again:?}");
        assert!(again.retryable && again.count_to_failures && again.error == "gone", "{again:?}");
        let ends = heard(Heard::JobRunsAgain);
        assert!(ends.error.starts_with(RUN_AGAIN) && ends.error.ends_with("gone") && !ends.retryable, "{ends:?}");
        assert!(matches!(ends.failed_reason, Some(FailedReason::ExecutionError(_))), "the job ends");
        let done = TaskStatus {
            metrics: vec![OperatorMetricsSet::default(); 2],
            ..told(task_status::Status::Successful(SuccessfulTask::default()))
        };
        let without = as_heard(done.clone(), Heard::WithoutOperators);
        assert!(without.metrics.is_empty() && without.status == done.status);
    }
}
