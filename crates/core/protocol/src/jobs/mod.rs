//! What the scheduler of distributed SQL says of its jobs, as JSON: to who asks it, and as that one shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job, as `forebay jobs --json` and `/api/v1/jobs` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Job")]
pub struct JobState {
    /// The scheduler's name for it.
    pub id: String,
    /// The operation that its reads carry; 0 for a job that came without one.
    pub operation: u64,
    /// `running`, `done`, `failed`.
    pub state: String,
    /// Why it failed; empty otherwise.
    pub error: String,
    /// The statement.
    pub sql: String,
    /// The higher goes first.
    pub priority: i32,
    /// Tasks of the stages that could begin so far.
    pub tasks: u64,
    /// Tasks on executors now.
    pub tasks_running: u64,
    /// Tasks that are done.
    pub tasks_done: u64,
    /// Tasks that ran where most of their input was, or was on its way to.
    pub tasks_local: u64,
    /// Tasks done that read files.
    pub tasks_with_input: u64,
    /// Tasks that had to run again.
    pub tasks_again: u64,
    /// Tasks that were late and were begun once more elsewhere, beside the first.
    #[serde(default)]
    pub tasks_copied: u64,
    /// Bytes that its tasks read of files, as far as that is known.
    pub bytes: u64,
    /// Bytes that finished tasks have read.
    pub bytes_done: u64,
    /// Bytes that finished tasks have passed on to other stages, or have as results.
    pub bytes_passed: u64,
    /// Rows of its result, once it is done.
    pub rows: Option<u64>,
    /// Seconds since it came, or that it took.
    pub seconds: f64,
}

/// A task of a job, as `forebay jobs tasks --json` and `/api/v1/tasks` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Task")]
pub struct TaskState {
    /// The job's id.
    pub job: String,
    /// The stage's number.
    pub stage: u64,
    /// Its partition of the stage; none for the one task that brings all of them together.
    pub partition: Option<u32>,
    /// `running`, `done`, `failed`; `copy` for one that runs once more elsewhere, since it is late.
    pub state: String,
    /// The worker beside which it runs or ran, as it is shown.
    pub worker: String,
    /// Bytes that it reads of files.
    pub bytes: u64,
    /// Of these, what the worker had, or was about to have, when the task was sent there.
    pub bytes_local: u64,
    /// Seconds that it took, or since it began.
    pub seconds: f64,
    /// Seconds since it ended; 0 while it runs.
    pub ended_seconds_ago: f64,
}

/// A transfer under way, as `forebay transfers --json` and `/api/v1/transfers` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Transfer")]
pub struct TransferState {
    /// What is brought.
    pub path: String,
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// To which worker, as it is shown.
    pub worker: String,
    /// Seconds since it was started.
    pub seconds: f64,
}

/// What a scheduler has to do, and has done since its start: for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerNumbers {
    /// Executors that answer.
    pub executors: u64,
    /// Tasks that they can run at once.
    pub slots: u64,
    /// Tasks that run.
    pub tasks_running: u64,
    /// Tasks that are done.
    pub tasks_done: u64,
    /// Tasks that failed, were lost, or whose job ended before they did.
    pub tasks_failed: u64,
    /// Copies of tasks that were late.
    pub tasks_copied: u64,
    /// Of these, those that were done first.
    pub tasks_copied_first: u64,
    /// Bytes of files that tasks read which are done.
    pub task_bytes: u64,
    /// Of these, what the worker beside the task had, or was about to have, when the task was sent there.
    pub task_bytes_local: u64,
    /// Jobs that are not over.
    pub jobs_running: u64,
    /// Jobs that are done.
    pub jobs_done: u64,
    /// Jobs that failed or were cancelled.
    pub jobs_failed: u64,
    /// Bytes on their way from shared storage.
    pub arriving_bytes: u64,
    /// Bytes that were brought before their tasks asked for them.
    pub brought_bytes: u64,
}

/// What the executors of a process do, and have done since their start: for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorNumbers {
    /// Tasks that they can run at once.
    pub slots: u64,
    /// Tasks that run.
    pub tasks_running: u64,
    /// Tasks that are done.
    pub tasks_done: u64,
    /// Tasks that failed, or were ended before they were done.
    pub tasks_failed: u64,
}
