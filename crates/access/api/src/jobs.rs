//! What the scheduler of distributed SQL does: jobs, and the transfers that feed their tasks.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::{Json, Router};
use forebay_types::{Error, Result};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use crate::describe::{Content, Described, Routes, Shape, Verb};
use crate::refusal::Refusal;

/// The scheduler of a cluster, as who knows where it is asks it.
pub trait Scheduler: Send + Sync + 'static {
    /// Jobs that run, and the last ones that are over; the oldest first. None where there is no scheduler.
    fn jobs(&self) -> BoxFuture<'_, Result<Option<Vec<Job>>>>;

    /// The last tasks that are over, and then those that run. None where there is no scheduler.
    fn tasks(&self) -> BoxFuture<'_, Result<Option<Vec<Task>>>>;

    /// Transfers under way. None where there is no scheduler.
    fn transfers(&self) -> BoxFuture<'_, Result<Option<Vec<Transfer>>>>;
}

/// A job, as `forebay jobs --json` shows it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Job {
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

/// A task of a job, as `forebay jobs tasks --json` shows it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Task {
    /// The job's id.
    pub job: String,
    /// The stage's number.
    pub stage: u64,
    /// Its partition of the stage; none for the one task that brings all of them together.
    pub partition: Option<u32>,
    /// `running`, `done`, `failed`.
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

/// A transfer under way, as `forebay transfers --json` shows it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Transfer {
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

/// The jobs of a cluster.
#[derive(JsonSchema, Serialize)]
struct Jobs {
    /// The cluster has one; without it there are no jobs.
    has_scheduler: bool,
    /// The oldest first.
    jobs: Vec<Job>,
}

/// The tasks of a cluster's jobs.
#[derive(JsonSchema, Serialize)]
struct Tasks {
    /// The cluster has one; without it there are no tasks.
    has_scheduler: bool,
    /// The last ones that are over, the oldest first, and then those that run.
    tasks: Vec<Task>,
}

/// The transfers of a cluster.
#[derive(JsonSchema, Serialize)]
struct Transfers {
    /// The cluster has one; without it there are no transfers.
    has_scheduler: bool,
    /// Those under way.
    transfers: Vec<Transfer>,
}

/// Who is asked, from when it is there.
type Door = Arc<OnceLock<Arc<dyn Scheduler>>>;

/// The paths, for who may see what a cluster says of itself.
pub(crate) fn routes(scheduler: Door) -> (Router, Vec<Described>) {
    let path = |path, about, shape: Shape| Described {
        verb: Verb::Get,
        path,
        about,
        parameters: None,
        body: None,
        answer: Content { kind: "application/json", about, shape, example: None },
        refusals: &[404, 503],
        is_open: false,
    };
    let of_jobs = path("/api/v1/jobs", "Jobs of distributed SQL: those that run, and the last ones.", |generator| {
        generator.subschema_for::<Jobs>()
    });
    let of_tasks = path("/api/v1/tasks", "Tasks of jobs: those that run, and the last ones.", |generator| {
        generator.subschema_for::<Tasks>()
    });
    let of_transfers = path("/api/v1/transfers", "What is on its way to the workers of tasks.", |generator| {
        generator.subschema_for::<Transfers>()
    });
    let (router, described) = Routes::new().with(of_jobs, jobs).with(of_tasks, tasks).with(of_transfers, transfers).into_parts();
    (router.with_state(scheduler), described)
}

async fn jobs(State(door): State<Door>) -> Result<Json<Jobs>, Refusal> {
    let jobs = scheduler(&door)?.jobs().await?;
    Ok(Json(Jobs { has_scheduler: jobs.is_some(), jobs: jobs.unwrap_or_default() }))
}

async fn tasks(State(door): State<Door>) -> Result<Json<Tasks>, Refusal> {
    let tasks = scheduler(&door)?.tasks().await?;
    Ok(Json(Tasks { has_scheduler: tasks.is_some(), tasks: tasks.unwrap_or_default() }))
}

async fn transfers(State(door): State<Door>) -> Result<Json<Transfers>, Refusal> {
    let transfers = scheduler(&door)?.transfers().await?;
    Ok(Json(Transfers { has_scheduler: transfers.is_some(), transfers: transfers.unwrap_or_default() }))
}

fn scheduler(door: &Door) -> Result<&dyn Scheduler> {
    door.get()
        .map(AsRef::as_ref)
        .ok_or_else(|| Error::not_found("there are no jobs: this forebay was built without distributed SQL"))
}
