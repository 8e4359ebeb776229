//! What people ask a scheduler, jobs, transfers and slots, with the shapes of its answers; and how a job is cancelled.

use std::time::Duration;

use arrow_flight::Action;
use arrow_flight::flight_service_client::FlightServiceClient;
use forebay_protocol::{JobState, TaskState, TransferState};
use forebay_types::{Error, ErrorKind, Result};
use futures::StreamExt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::ports::Ways;

/// How long the scheduler may take to answer.
const DEADLINE: Duration = Duration::from_secs(20);

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
