//! The scheduler that a cluster's coordinator knows, as `/api/v1` shows its jobs.

use forebay_api::{Job, Scheduler, Task, Transfer};
use forebay_client::{Client, ClientSettings};
use forebay_distributed::{Cluster, JobState, SchedulerControl, TaskState, TransferState};
use forebay_types::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, OnceCell};

/// Asks it with what this process shows; who may see the answer has been looked at before.
pub(crate) struct KnownScheduler {
    settings: ClientSettings,
    /// Made with the first question.
    client: OnceCell<Client>,
    /// The one that was asked last, by its address.
    control: Mutex<Option<(String, SchedulerControl)>>,
}

impl KnownScheduler {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        Self { settings, client: OnceCell::new(), control: Mutex::new(None) }
    }

    /// None where the coordinator knows of none.
    async fn control(&self) -> Result<Option<SchedulerControl>> {
        let client = self.client.get_or_try_init(|| Client::connect(self.settings.clone())).await?;
        let Some(address) = client.scheduler().await? else { return Ok(None) };
        let mut control = self.control.lock().await;
        match &*control {
            Some((of, known)) if *of == address => Ok(Some(known.clone())),
            _ => {
                let made = Cluster::control(&address, &self.settings.security)?;
                *control = Some((address, made.clone()));
                Ok(Some(made))
            }
        }
    }
}

impl Scheduler for KnownScheduler {
    fn jobs(&self) -> BoxFuture<'_, Result<Option<Vec<Job>>>> {
        async move {
            let Some(control) = self.control().await? else { return Ok(None) };
            Ok(Some(control.jobs().await?.into_iter().map(job).collect()))
        }
        .boxed()
    }

    fn tasks(&self) -> BoxFuture<'_, Result<Option<Vec<Task>>>> {
        async move {
            let Some(control) = self.control().await? else { return Ok(None) };
            Ok(Some(control.tasks().await?.into_iter().map(task).collect()))
        }
        .boxed()
    }

    fn transfers(&self) -> BoxFuture<'_, Result<Option<Vec<Transfer>>>> {
        async move {
            let Some(control) = self.control().await? else { return Ok(None) };
            Ok(Some(control.transfers().await?.into_iter().map(transfer).collect()))
        }
        .boxed()
    }
}

/// All that is known of it: a field more does not compile without one there.
fn job(of: JobState) -> Job {
    let JobState {
        id,
        operation,
        state,
        error,
        sql,
        priority,
        tasks,
        tasks_running,
        tasks_done,
        tasks_local,
        tasks_with_input,
        tasks_again,
        bytes,
        bytes_done,
        bytes_passed,
        rows,
        seconds,
    } = of;
    Job {
        id,
        operation,
        state,
        error,
        sql,
        priority,
        tasks,
        tasks_running,
        tasks_done,
        tasks_local,
        tasks_with_input,
        tasks_again,
        bytes,
        bytes_done,
        bytes_passed,
        rows,
        seconds,
    }
}

fn task(of: TaskState) -> Task {
    let TaskState { job, stage, partition, state, worker, bytes, bytes_local, seconds, ended_seconds_ago } = of;
    Task { job, stage, partition, state, worker, bytes, bytes_local, seconds, ended_seconds_ago }
}

fn transfer(of: TransferState) -> Transfer {
    let TransferState { path, start, bytes, worker, seconds } = of;
    Transfer { path, start, bytes, worker, seconds }
}
