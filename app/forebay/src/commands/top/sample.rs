//! One look at the cluster.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

#[cfg(feature = "cluster")]
use forebay_api::Scheduler as _;
use forebay_client::{Client, ClientSettings};
use forebay_protocol::{ClusterStatus, JobState, PlacementStatus, TransferState};
use forebay_types::{Result, WorkerId};

use super::super::{segments, status};
use crate::config::Config;
#[cfg(feature = "cluster")]
use crate::roles::KnownScheduler;

/// Segments that are asked for.
const SEGMENTS: u32 = 100;

/// All that is looked at.
pub(super) struct Sample {
    pub(super) at: SystemTime,
    pub(super) taken: Instant,
    pub(super) status: Box<ClusterStatus>,
    pub(super) placement: Box<PlacementStatus>,
    /// Reads under way at each worker that has said so at once.
    pub(super) queues: BTreeMap<WorkerId, u32>,
    /// None where no scheduler is, or it does not answer.
    pub(super) jobs: Option<Vec<JobState>>,
    /// The same.
    pub(super) transfers: Option<Vec<TransferState>>,
}

pub(super) struct Asker<'a> {
    client: &'a Client,
    #[cfg(feature = "cluster")]
    scheduler: KnownScheduler,
}

impl<'a> Asker<'a> {
    pub(super) fn new(config: &Config, client: &'a Client) -> Self {
        let settings = ClientSettings { security: config.security.clone(), ..ClientSettings::new(config.coordinator()) };
        #[cfg(not(feature = "cluster"))]
        let _ = settings;
        Self {
            client,
            #[cfg(feature = "cluster")]
            scheduler: KnownScheduler::new(settings),
        }
    }

    /// Looks now. Only the coordinator must answer.
    pub(super) async fn sample(&self) -> Result<Sample> {
        let (status, placement) = (status::ask(self.client), segments::ask(self.client, SEGMENTS));
        let (status, placement, queues) = futures::join!(status, placement, self.client.queue_lengths());
        let (jobs, transfers) = self.of_scheduler().await;
        Ok(Sample {
            at: forebay_runtime::time::system_time(),
            taken: forebay_runtime::now(),
            status: status?,
            placement: placement?,
            queues,
            jobs,
            transfers,
        })
    }

    #[cfg(feature = "cluster")]
    async fn of_scheduler(&self) -> (Option<Vec<JobState>>, Option<Vec<TransferState>>) {
        let (jobs, transfers) = futures::join!(self.scheduler.jobs(), self.scheduler.transfers());
        let away = |error: &forebay_types::Error| tracing::debug!(%error, "the scheduler does not say");
        (jobs.inspect_err(away).ok().flatten(), transfers.inspect_err(away).ok().flatten())
    }

    #[cfg(not(feature = "cluster"))]
    async fn of_scheduler(&self) -> (Option<Vec<JobState>>, Option<Vec<TransferState>>) {
        (None, None)
    }
}
