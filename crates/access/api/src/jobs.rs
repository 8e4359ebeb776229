//! What the scheduler of distributed SQL does: jobs, and the transfers that feed their tasks.

use std::sync::{Arc, OnceLock};

use axum::extract::State;
use axum::{Json, Router};
use forebay_protocol::{JobState, TaskState, TransferState};
use forebay_types::{Error, Result};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use crate::describe::{Content, Described, Routes, Verb};
use crate::refusal::Refusal;

/// The scheduler of a cluster, as who knows where it is asks it.
pub trait Scheduler: Send + Sync + 'static {
    /// Jobs that run, and the last ones that are over; the oldest first. None where there is no scheduler.
    fn jobs(&self) -> BoxFuture<'_, Result<Option<Vec<JobState>>>>;

    /// The last tasks that are over, and then those that run. None where there is no scheduler.
    fn tasks(&self) -> BoxFuture<'_, Result<Option<Vec<TaskState>>>>;

    /// Transfers under way. None where there is no scheduler.
    fn transfers(&self) -> BoxFuture<'_, Result<Option<Vec<TransferState>>>>;
}

/// The jobs of a cluster.
#[derive(JsonSchema, Serialize)]
struct Jobs {
    /// The cluster has one; without it there are no jobs.
    has_scheduler: bool,
    /// The oldest first.
    jobs: Vec<JobState>,
}

/// The tasks of a cluster's jobs.
#[derive(JsonSchema, Serialize)]
struct Tasks {
    /// The cluster has one; without it there are no tasks.
    has_scheduler: bool,
    /// The last ones that are over, the oldest first, and then those that run.
    tasks: Vec<TaskState>,
}

/// The transfers of a cluster.
#[derive(JsonSchema, Serialize)]
struct Transfers {
    /// The cluster has one; without it there are no transfers.
    has_scheduler: bool,
    /// Those under way.
    transfers: Vec<TransferState>,
}

/// Who is asked, from when it is there.
type Door = Arc<OnceLock<Arc<dyn Scheduler>>>;

/// The paths, for who may see what a cluster says of itself.
pub(crate) fn routes(scheduler: Door) -> (Router, Vec<Described>) {
    fn path<T: JsonSchema>(path: &'static str, about: &'static str) -> Described {
        Described::new(Verb::Get, path, about, Content::json::<T>(about)).refused_with(&[404, 503])
    }
    let of_jobs = path::<Jobs>("/api/v1/jobs", "Jobs of distributed SQL: those that run, and the last ones.");
    let of_tasks = path::<Tasks>("/api/v1/tasks", "Tasks of jobs: those that run, and the last ones.");
    let of_transfers = path::<Transfers>("/api/v1/transfers", "What is on its way to the workers of tasks.");
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
