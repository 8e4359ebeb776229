//! Shards that workers serve: what is said to one worker.
//!
//! Owns: the questions to one worker and how long they may take.
//!
//! Never does: choose the worker, which `forebay-shards` does.
//!
//! Start with [`Shards::ask`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{self as protocol, DataReply, DataRequest, DatasetId, ShardState};
use forebay_types::{Error, Result, WorkerId};

use crate::connect::{Failure, ask_for, misfit};
use crate::route::Routes;

/// What an answer may take on its way beyond the time that the worker has for it.
const ON_ITS_WAY: Duration = Duration::from_secs(2);
/// How long a worker may take to say what it has.
const STATES_WITHIN: Duration = Duration::from_secs(5);

/// Whose records are wanted, and what of them.
#[derive(Clone, Copy, Debug)]
pub struct WantedRecords<'a> {
    /// The dataset.
    pub dataset: &'a DatasetId,
    /// Which of its shards, from 0.
    pub shard: u32,
    /// The places of the attributes that are wanted; empty for all.
    pub attributes: &'a [u16],
    /// The version of each record is wanted too.
    pub versioned: bool,
}

/// The shards of all workers.
pub(crate) struct Shards {
    routes: Arc<Routes>,
}

impl Shards {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }

    /// Asks a worker questions about a shard, one JSON object a line: a line for each, and the length of the shard's queue.
    /// `Retry` when it has no turn for them `within` that time, or can't be reached.
    pub(crate) async fn ask(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        questions: Bytes,
        within: Duration,
    ) -> Result<(Bytes, u32)> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = DataRequest::AskShard { dataset: dataset.clone(), shard, within_ms: millis(within) };
        match ask_for(&link, &request, vec![questions], within + ON_ITS_WAY).await.map_err(Failure::into_error)? {
            (DataReply::Shard { queue }, answers) => Ok((answers, queue)),
            _ => Err(misfit(&link, "a question to a shard").into_error()),
        }
    }

    /// Asks a worker for records of a shard by their keys, in the bytes of docs/specs/protocol.md: an answer for each, and the length
    /// of the shard's queue. `Retry` as [`Self::ask`].
    pub(crate) async fn records(
        &self,
        worker: WorkerId,
        wanted: &WantedRecords<'_>,
        keys: Bytes,
        within: Duration,
    ) -> Result<(Bytes, u32)> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = DataRequest::GetRecords(protocol::WantedRecords {
            dataset: wanted.dataset.clone(),
            shard: wanted.shard,
            within_ms: millis(within),
            attributes: wanted.attributes.to_vec(),
            versioned: wanted.versioned,
        });
        match ask_for(&link, &request, vec![keys], within + ON_ITS_WAY).await.map_err(Failure::into_error)? {
            (DataReply::Shard { queue }, answers) => Ok((answers, queue)),
            _ => Err(misfit(&link, "a question for records").into_error()),
        }
    }

    /// Asks a worker to change records of a shard: their version then.
    pub(crate) async fn change(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        call: u128,
        changes: Bytes,
        within: Duration,
    ) -> Result<u64> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = DataRequest::ChangeShard { dataset: dataset.clone(), shard, call, within_ms: millis(within) };
        match ask_for(&link, &request, vec![changes], within + ON_ITS_WAY).await.map_err(Failure::into_error)? {
            (DataReply::ShardChanged { version }, _) => Ok(version),
            _ => Err(misfit(&link, "a change of a shard").into_error()),
        }
    }

    /// Has a worker compress what was changed in a shard into its files.
    pub(crate) async fn merge(&self, worker: WorkerId, dataset: &DatasetId, shard: u32, within: Duration) -> Result<()> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = DataRequest::MergeShard { dataset: dataset.clone(), shard, within_ms: millis(within) };
        match ask_for(&link, &request, Vec::new(), within + ON_ITS_WAY).await.map_err(Failure::into_error)? {
            (DataReply::Done, _) => Ok(()),
            _ => Err(misfit(&link, "a merge of a shard").into_error()),
        }
    }

    /// The shards of a dataset that a worker has.
    pub(crate) async fn states(&self, worker: WorkerId, dataset: &DatasetId) -> Result<Vec<ShardState>> {
        let link = self.routes.link_to(worker, gone).await?;
        let request = DataRequest::Shards { dataset: dataset.clone() };
        match ask_for(&link, &request, Vec::new(), STATES_WITHIN).await.map_err(Failure::into_error)? {
            (DataReply::Shards(states), _) => Ok(states),
            _ => Err(misfit(&link, "a question for shards").into_error()),
        }
    }
}

fn millis(within: Duration) -> u32 {
    u32::try_from(within.as_millis()).unwrap_or(u32::MAX)
}

fn gone(worker: WorkerId) -> Error {
    Error::retry(format!("worker {worker} is gone"))
}
