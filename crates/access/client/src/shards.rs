//! Shards that workers serve: what is said to one worker.
//!
//! Owns: the questions to one worker and how long they may take.
//!
//! Never does: choose the worker, which `forebay-shards` does.
//!
//! Start with [`ShardCalls::ask`].

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
const STATES_WITHIN: Duration = Duration::from_secs(3);

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

/// How long a worker's queue for a shard is, as an answer tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardQueue {
    /// Estimated steps of the other calls that were there; where there are no `steps`, how many these were.
    pub queue: u32,
    /// Estimated steps of the call that was answered; 0 of a worker that counts calls.
    pub steps: u32,
}

/// Calls to one worker about a shard. Each is `Retry` when the worker has no turn for it `within` that time, or can't be reached.
pub struct ShardCalls {
    routes: Arc<Routes>,
}

impl ShardCalls {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }

    /// Asks questions, one JSON object a line: a line for each, and the length of the shard's queue.
    pub async fn ask(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        questions: Bytes,
        within: Duration,
    ) -> Result<(Bytes, ShardQueue)> {
        let request = DataRequest::AskShard { dataset: dataset.clone(), shard, within_ms: millis(within) };
        self.call(worker, "a question to a shard", request, vec![questions], within, answers).await
    }

    /// Asks for records by their keys, in the bytes of docs/specs/protocol.md: an answer for each, and the length of the shard's queue.
    pub async fn records(
        &self,
        worker: WorkerId,
        wanted: &WantedRecords<'_>,
        keys: Bytes,
        within: Duration,
    ) -> Result<(Bytes, ShardQueue)> {
        let request = DataRequest::GetRecords(protocol::WantedRecords {
            dataset: wanted.dataset.clone(),
            shard: wanted.shard,
            within_ms: millis(within),
            attributes: wanted.attributes.to_vec(),
            versioned: wanted.versioned,
        });
        self.call(worker, "a question for records", request, vec![keys], within, answers).await
    }

    /// Whether a worker is there to be asked: what follows when it is not has asked nobody.
    pub async fn reach(&self, worker: WorkerId) -> Result<()> {
        self.routes.link_to(worker, gone).await.map(drop)
    }

    /// Changes records, one JSON object a line, all of them or none: the version that they have then. What ends in `Retry` may be done
    /// all the same; asked again with the same number `call`, of any worker, it is done once, as far as workers know what was done. With the number
    /// of an object that the log had before it was asked for first, one that does not know refuses it ([`Error::is_here_alone`]).
    pub async fn change(
        &self,
        worker: WorkerId,
        dataset: &DatasetId,
        shard: u32,
        (call, after): (u128, Option<u64>),
        changes: Bytes,
        within: Duration,
    ) -> Result<u64> {
        let request = DataRequest::ChangeShard { dataset: dataset.clone(), shard, call, within_ms: millis(within), after };
        self.call(worker, "a change of a shard", request, vec![changes], within, |reply, _| match reply {
            DataReply::ShardChanged { version } => Some(version),
            _ => None,
        })
        .await
    }

    /// Has the worker compress what was changed in a shard into its files, for all workers. Where that takes longer it goes on.
    pub async fn merge(&self, worker: WorkerId, dataset: &DatasetId, shard: u32, within: Duration) -> Result<()> {
        let request = DataRequest::MergeShard { dataset: dataset.clone(), shard, within_ms: millis(within) };
        self.call(worker, "a merge of a shard", request, Vec::new(), within, |reply, _| match reply {
            DataReply::Done => Some(()),
            _ => None,
        })
        .await
    }

    /// The shards of a dataset that the worker has.
    pub async fn states(&self, worker: WorkerId, dataset: &DatasetId) -> Result<Vec<ShardState>> {
        let request = DataRequest::Shards { dataset: dataset.clone() };
        self.call(worker, "a question for shards", request, Vec::new(), STATES_WITHIN, |reply, _| match reply {
            DataReply::Shards(states) => Some(states),
            _ => None,
        })
        .await
    }

    /// One call, and what `answer` finds in its reply; without that it is not one to what was `asked`.
    async fn call<T>(
        &self,
        worker: WorkerId,
        asked: &str,
        request: DataRequest,
        payload: Vec<Bytes>,
        within: Duration,
        answer: impl FnOnce(DataReply, Bytes) -> Option<T>,
    ) -> Result<T> {
        let info = self.routes.view.known().worker(worker).cloned().ok_or_else(|| gone(worker))?;
        let link = self.routes.connections.link(&info).await?;
        let call = ask_for(&link, &request, payload, within + ON_ITS_WAY);
        // One that all others have lost may never answer, and another one has the shard.
        let called = self.routes.unless_lost(&info, call).await.ok_or_else(|| gone(worker))?;
        let (reply, bytes) = called.map_err(Failure::into_error)?;
        answer(reply, bytes).ok_or_else(|| misfit(&link, asked).into_error())
    }
}

fn answers(reply: DataReply, answers: Bytes) -> Option<(Bytes, ShardQueue)> {
    if let DataReply::Shard { queue, steps } = reply { Some((answers, ShardQueue { queue, steps })) } else { None }
}

fn millis(within: Duration) -> u32 {
    u32::try_from(within.as_millis()).unwrap_or(u32::MAX)
}

fn gone(worker: WorkerId) -> Error {
    Error::retry(format!("worker {worker} is gone"))
}
