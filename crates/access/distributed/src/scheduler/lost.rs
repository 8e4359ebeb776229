//! What happens to the jobs of an executor that is lost, and what their clients are told of why a job ended.

use ballista_core::serde::protobuf::{FailedJob, GetJobStatusResult, job_status};
use forebay_jobs::{Books, Missed, Outcome};
use parking_lot::Mutex;

use super::Server;
use super::bind::{tell_moved, waits_again};

/// Gives the tasks of an executor that is lost to others. Where a stage that is done has outputs of it in files, or the last one results,
/// the job ends and is to be run again. What it ran twice goes on elsewhere. Ballista finds nothing left to do when it misses the executor itself.
pub(super) async fn executor_lost(server: &Server, books: &Mutex<Books>, executor: &str) {
    for (id, info) in server.state.task_manager.get_running_job_cache().iter() {
        // No stage gets done between the question and what is done about it.
        let mut graph = info.execution_graph.write().await;
        let mut passing_on = graph.running_stages();
        // Ballista never forgets where it was told that results are.
        passing_on.retain(|id| graph.stages().get(id).is_some_and(|stage| !stage.output_links().is_empty()));
        let (missed, moved) = books.lock().loses(id.as_ref(), executor, &passing_on);
        tell_moved(&mut graph, moved);
        let done = match missed {
            Missed::PassedOn => server.cancel_job(id.clone()).await,
            Missed::Outputs => graph.reset_stages_on_lost_executor(executor).map(|_| ()),
            Missed::Running => waits_again(&mut graph, id, executor),
        };
        if let Err(error) = done {
            tracing::warn!(job = %id, executor, %error, "a job may miss what an executor had");
        }
    }
}

/// A job that was ended for it says that it is to be run again, as does one with fewer rows than its tasks told, and one that failed by a
/// defect here that it did.
pub(super) fn truthful(books: &Mutex<Books>, mut told: GetJobStatusResult) -> GetJobStatusResult {
    let Some(status) = &mut told.status else { return told };
    match &mut status.status {
        Some(job_status::Status::Failed(failed)) => {
            if let Some(truth) = books.lock().truth(&status.job_id, Outcome::Failed) {
                failed.error = truth.to_string();
            }
        }
        Some(job_status::Status::Successful(done)) => {
            let told = done.partition_location.iter().filter_map(|location| location.partition_stats.as_ref());
            let rows: u64 = told.map(|told| u64::try_from(told.num_rows).unwrap_or(0)).sum();
            let stage = done.partition_location.iter().find_map(|location| Some(location.partition_id.as_ref()?.stage_id));
            if let Some(truth) = books.lock().truth(&status.job_id, Outcome::Done { stage, rows }) {
                let (queued_at, started_at, ended_at) = (done.queued_at, done.started_at, done.ended_at);
                let failed = FailedJob { error: truth.to_string(), queued_at, started_at, ended_at };
                status.status = Some(job_status::Status::Failed(failed));
            }
        }
        _ => {}
    }
    told
}
