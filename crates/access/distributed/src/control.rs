//! What people ask a scheduler, jobs, transfers and slots, with the shapes of its answers; and how a job is cancelled.

use std::time::Duration;

use arrow_flight::Action;
use arrow_flight::flight_service_client::FlightServiceClient;
use forebay_types::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::ports::Ways;

/// How long the scheduler may take to answer.
const DEADLINE: Duration = Duration::from_secs(20);

/// A job, as `forebay jobs` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// A task of a job, as `forebay jobs tasks` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskState {
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

/// A transfer under way, as `forebay transfers` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// The scheduler's cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// Executors that answer.
    pub executors: u64,
    /// Tasks that they can run at once.
    pub slots: u64,
    /// Of these, free.
    pub slots_free: u64,
    /// Bytes on their way from shared storage.
    pub arriving_bytes: u64,
    /// Bytes brought by the schedule, since the start.
    pub brought_bytes: u64,
}

/// What is asked of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Cluster,
    Jobs,
    Tasks,
    Transfers,
    Cancel,
}

impl Ask {
    pub(crate) const ALL: [Self; 5] = [Self::Cluster, Self::Jobs, Self::Tasks, Self::Transfers, Self::Cancel];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "forebay.cluster",
            Self::Jobs => "forebay.jobs",
            Self::Tasks => "forebay.tasks",
            Self::Transfers => "forebay.transfers",
            Self::Cancel => "forebay.cancel",
        }
    }
}

/// Asks a scheduler what goes on, and cancels jobs.
#[derive(Clone)]
pub struct SchedulerControl {
    address: String,
    client: FlightServiceClient<Channel>,
    _ways: Ways,
}

impl SchedulerControl {
    /// Connects at the first question.
    pub(crate) fn at(address: &str, endpoint: Endpoint, ways: &Ways) -> Self {
        let client = FlightServiceClient::new(endpoint.connect_timeout(DEADLINE).timeout(DEADLINE).connect_lazy());
        Self { address: address.to_string(), client, _ways: ways.clone() }
    }

    /// Jobs that run, and the last ones that are over; the oldest first.
    pub async fn jobs(&self) -> Result<Vec<JobState>> {
        self.ask(Ask::Jobs, "").await
    }

    /// The last tasks that are over, and then those that run.
    pub async fn tasks(&self) -> Result<Vec<TaskState>> {
        self.ask(Ask::Tasks, "").await
    }

    /// Transfers under way.
    pub async fn transfers(&self) -> Result<Vec<TransferState>> {
        self.ask(Ask::Transfers, "").await
    }

    /// Executors and their slots.
    pub async fn cluster(&self) -> Result<ClusterState> {
        self.ask(Ask::Cluster, "").await
    }

    /// Ends a job, by its id or by its operation in hexadecimal digits.
    pub async fn cancel(&self, id: &str) -> Result<()> {
        self.ask(Ask::Cancel, id).await
    }

    async fn ask<T: DeserializeOwned>(&self, what: Ask, argument: &str) -> Result<T> {
        let action = Action { r#type: what.name().to_string(), body: argument.as_bytes().to_vec().into() };
        let mut client = self.client.clone();
        let failed = |status: Status| of_status(&self.address, &status);
        let mut answers = client.do_action(action).await.map_err(failed)?.into_inner();
        let answer = answers.next().await.ok_or_else(|| Error::closed("the scheduler gave no answer"))?.map_err(failed)?;
        serde_json::from_slice(&answer.body).map_err(|error| Error::internal(format!("the scheduler's answer: {error}")))
    }
}

fn of_status(address: &str, status: &Status) -> Error {
    let kind = match status.code() {
        Code::NotFound => ErrorKind::NotFound,
        Code::PermissionDenied | Code::Unauthenticated => ErrorKind::Denied,
        // A connection that was not let in, or that broke, has no code of its own.
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => ErrorKind::Retry,
        // What the connection's end was taken for here; the scheduler's own word has no source.
        Code::Internal if std::error::Error::source(status).is_some() => ErrorKind::Retry,
        Code::InvalidArgument => ErrorKind::Invalid,
        _ => ErrorKind::Internal,
    };
    match kind {
        ErrorKind::Retry => {
            tracing::debug!(address, %status, "the scheduler does not answer");
            Error::retry(format!(
                "the scheduler at {address} does not answer: start it with `forebay up --cluster N` or `forebay scheduler`"
            ))
        }
        _ => Error::new(kind, status.message().to_string()),
    }
}
