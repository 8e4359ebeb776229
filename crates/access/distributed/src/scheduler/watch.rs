//! The loops that look around beside Ballista: silent executors are missed, spoilt jobs ended, finished ones closed.

use std::collections::HashSet;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::JobId;
use ballista_core::serde::protobuf::job_status;
use ballista_scheduler::state::execution_graph::RunningTaskInfo;
use forebay_jobs::{Books, Carrier, Sender};
use forebay_protocol::JobState;
use forebay_sql::{Slow, tell_slow};
use forebay_types::OperationId;
use futures::FutureExt;
use parking_lot::Mutex;

use super::Server;
use super::lost::executor_lost;
use super::policy::Policy;

/// How often jobs and executors are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// When Ballista misses an executor that is silent: after what is to be done about it was done here.
pub(super) const MISSED: Duration = Duration::from_secs(15);

/// Looks at jobs, closes those that are over, and forgets executors that are gone, until it is dropped.
pub(super) async fn watch(server: Server, books: Arc<Mutex<Books>>, carrier: Arc<Carrier>, policy: Arc<Policy>) {
    let executors = async {
        let mut gone = HashSet::new();
        loop {
            forebay_runtime::time::sleep(LOOK).await;
            let lost = books.lock().misses();
            gone.extend(lost.iter().cloned());
            for executor in lost {
                // Many that are lost at once take their time, in which Ballista is to miss none of them.
                keep_known(&server, &books, &mut gone).await;
                executor_lost(&server, &books, &executor).await;
            }
            keep_known(&server, &books, &mut gone).await;
            find_missed(&server, &books).await;
        }
    };
    // Apart, since they may wait for workers: executors must be missed before Ballista does it.
    let jobs = async {
        let mut asked = HashSet::new();
        loop {
            forebay_runtime::time::sleep(LOOK).await;
            let look = async {
                close_over(&server, &books).await;
                carrier.let_go();
                policy.look_ahead(&server.state.task_manager.get_running_job_cache()).await;
                end_spoilt(&server, &books, &mut asked).await;
                carrier.go();
                end_unwanted(&server, &books).await;
            };
            if AssertUnwindSafe(look).catch_unwind().await.is_err() {
                tracing::error!("a look at the jobs failed by a defect: they are looked at again");
            }
        }
    };
    tokio::join!(executors, jobs);
}

/// Keeps Ballista from missing executors that are lost, as long as jobs read in nodes what they have done: it would take that for lost as well.
async fn keep_known(server: &Server, books: &Mutex<Books>, gone: &mut HashSet<String>) {
    let is_anybody_there = {
        let books = books.lock();
        gone.retain(|executor| !books.executors.contains_key(executor) && books.attempts.has_done(executor));
        !books.executors.is_empty()
    };
    let manager = &server.state.executor_manager;
    for executor in gone.iter() {
        if !is_anybody_there {
            executor_lost(server, books, executor).await;
            continue;
        }
        let kept = async { manager.save_executor_metadata(manager.get_executor_metadata(executor).await?).await };
        if let Err(error) = kept.await {
            tracing::warn!(executor, %error, "Ballista missed an executor whose outputs are there: jobs that read them run again");
            books.lock().attempts.taken_back(executor);
        }
    }
    if !is_anybody_there {
        gone.clear();
    }
}

/// Finds executors that ask for tasks and that Ballista has missed all the same: it goes by the clock of the day, which may leap.
async fn find_missed(server: &Server, books: &Mutex<Books>) {
    let known: Vec<String> = books.lock().executors.keys().cloned().collect();
    for executor in known {
        if server.state.executor_manager.get_executor_metadata(&executor).await.is_err() {
            books.lock().attempts.taken_back(&executor);
        }
    }
}

/// Ends the jobs that have to run again as a whole, and those that failed by a defect here, each of them once: Ballista takes its time.
async fn end_spoilt(server: &Server, books: &Mutex<Books>, asked: &mut HashSet<String>) {
    let spoilt = books.lock().spoilt();
    for id in not_asked(spoilt, asked) {
        if let Err(error) = server.cancel_job(id.clone().into()).await {
            tracing::warn!(job = %id, %error, "a job that can't go on was not ended");
        }
        asked.insert(id);
    }
}

/// Finds late tasks, and ends runs that nobody waits for.
async fn end_unwanted(server: &Server, books: &Mutex<Books>) {
    let unwanted = books.lock().unwanted();
    for (name, executor_id) in unwanted {
        let run = RunningTaskInfo { task_id: name.task, job_id: name.job.into(), stage_id: name.stage, executor_id };
        // Each by itself: an executor that does not answer keeps no other one.
        if let Err(error) = server.state.executor_manager.cancel_running_tasks(vec![run]).await {
            tracing::debug!(%error, "a run that nobody waits for goes on");
        }
    }
}

/// Those of which nothing was asked yet. Those that are over are forgotten.
fn not_asked(spoilt: HashSet<String>, asked: &mut HashSet<String>) -> Vec<String> {
    asked.retain(|id| spoilt.contains(id));
    debug_assert!(asked.len() <= spoilt.len(), "what is over is forgotten");
    spoilt.into_iter().filter(|id| !asked.contains(id)).collect()
}

/// Closes the jobs that Ballista says are over. Those that took long are told to the log.
pub(super) async fn close_over(server: &Server, books: &Mutex<Books>) {
    let open: Vec<String> = books.lock().jobs.keys().cloned().collect();
    for id in open {
        let Ok(status) = server.state.task_manager.get_job_status(&JobId::from(id.clone())).await else { continue };
        let (state, error) = match status.and_then(|status| status.status) {
            Some(job_status::Status::Successful(_)) => ("done", String::new()),
            Some(job_status::Status::Failed(failed)) => ("failed", failed.error),
            Some(_) => continue,
            None => ("failed", "the scheduler has forgotten it".to_string()),
        };
        let over = {
            let mut books = books.lock();
            let ticket = books.jobs.get(&id).map(|job| Arc::clone(&job.ticket));
            books.decide("the end of a job", Sender::Job(&id), |books| books.job_over(&id, state, error));
            ticket.zip(books.over_job(&id).cloned()).zip(books.slow_query)
        };
        if let Some(((ticket, job), slow)) = over {
            tell_if_slow(&ticket.who, &job, slow);
        }
    }
}

fn tell_if_slow(who: &str, job: &JobState, slow: Duration) {
    if job.seconds >= slow.as_secs_f64() {
        tell_slow(&Slow {
            who,
            operation: OperationId(job.operation),
            outcome: &job.state,
            error: (!job.error.is_empty()).then_some(&job.error as &dyn Display),
            seconds: job.seconds,
            open_seconds: job.seconds,
            rows: job.rows.unwrap_or_default(),
            bytes_read: job.bytes_done,
            tasks: job.tasks,
            sql: &job.sql,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_asked_to_end_once() {
        let set = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<HashSet<_>>();
        let mut asked = HashSet::new();
        assert_eq!(not_asked(set(&["a"]), &mut asked), ["a"]);
        asked.insert("a".to_string());
        assert_eq!(not_asked(set(&["a", "b"]), &mut asked), ["b"]);
        assert!(not_asked(set(&[]), &mut asked).is_empty() && asked.is_empty(), "what is over is forgotten");
    }
}
