//! Drafts of an operation: processes of the cluster write them for who opened them, and he alone makes each an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, DraftCall, PutCondition};
use forebay_types::{Error, ErrorKind, ForebayPath, ObjectInfo, OperationId, Result, WorkerId};
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde::{Deserialize, Serialize};

use super::Writes;
use super::put::unknown;
use crate::connect::{Failure, Link, ask, deadline_for, misfit};

/// Workers asked at once.
const WORKERS_AT_ONCE: usize = 32;
/// How long ending drafts may take at a worker: their parts are removed meanwhile.
const END_WITHIN: Duration = Duration::from_secs(40);

/// An object that is written whole, and that nobody sees yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// What it will be.
    pub path: ForebayPath,
    /// The worker that has it.
    pub worker: WorkerId,
    /// Its number there.
    pub upload: u64,
    /// Its parts; none of an empty object.
    pub parts: u32,
    /// Its bytes.
    pub bytes: u64,
}

/// The drafts of an operation, for who opened them. What is not committed leaves nothing behind; dropping this gives it up, and so does the
/// end of this process.
pub struct Drafts {
    writes: Arc<Writes>,
    operation: OperationId,
    /// They are open as long as these connections are.
    links: BTreeMap<WorkerId, Link>,
}

impl Writes {
    /// Opens drafts of an operation at all workers that can be reached. `Retry` where one of them takes none now.
    pub(crate) async fn open_drafts(self: &Arc<Self>, operation: OperationId, below: &ForebayPath) -> Result<Drafts> {
        let mount = self.open_to_writes(below).await?;
        let known = self.routes.view.known_arc();
        let request = DataRequest::Drafts { operation, call: DraftCall::Open { mount: mount.id, below: below.key().clone() } };
        let deadline = self.routes.connections.read_deadline();
        let workers: Vec<_> = known.workers.iter().filter_map(|worker| known.worker(*worker).cloned()).collect();
        let count = workers.len();
        let asked = stream::iter(workers).map(|info| {
            let request = &request;
            async move {
                let link = self.routes.connections.link(&info).await.map_err(Failure::Unreached)?;
                match ask(&link, request, deadline).await? {
                    DataReply::Done => Ok(link),
                    _ => Err(misfit(&link, "opening of drafts")),
                }
            }
        });
        let mut asked = asked.buffer_unordered(WORKERS_AT_ONCE);
        let mut drafts = Drafts { writes: Arc::clone(self), operation, links: BTreeMap::new() };
        let mut last = Error::retry("the cluster has no worker");
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(link) => {
                    drafts.links.insert(link.worker, link);
                }
                // It is there and takes none, as those of the release before do: who writes would ask it for the files of its own.
                Err(Failure::Answered(error)) => return Err(error.context(below)),
                // One that is away: the others write.
                Err(failure) => last = failure.into_error(),
            }
        }
        assert!(drafts.links.len() <= count, "drafts are open at {} of {count} workers", drafts.links.len());
        if drafts.links.is_empty() { Err(last.context(below)) } else { Ok(drafts) }
    }
}

impl Drafts {
    /// The workers at which drafts may be begun, for those who write them.
    pub fn workers(&self) -> Vec<WorkerId> {
        self.links.keys().copied().collect()
    }

    /// Makes a draft an object; back when shared storage has it, and all workers have heard of it. `Retry` where its worker has lost it.
    pub async fn commit(&self, draft: &Draft) -> Result<ObjectInfo> {
        let path = &draft.path;
        let Some(link) = self.links.get(&draft.worker) else {
            return Err(Error::internal(format!("{path}: its draft is at worker {}, where none are open", draft.worker)));
        };
        if draft.parts == 0 {
            return self.writes.put_whole(path, Vec::new(), PutCondition::Any).await;
        }
        let (upload, parts, condition) = (draft.upload, draft.parts, PutCondition::Any);
        let request = DataRequest::PutCommit { upload, parts, condition };
        // Shared storage puts the parts together, which takes it a while for large objects.
        let deadline = deadline_for(self.writes.routes.connections.read_deadline(), draft.bytes);
        match ask(link, &request, deadline).await {
            Ok(DataReply::Info(info)) => Ok(info),
            Ok(_) => Err(misfit(link, "commit of a draft").into_error()),
            Err(Failure::Answered(error)) if error.kind() == ErrorKind::NotFound => {
                let worker = draft.worker;
                Err(Error::retry(format!("{path}: worker {worker} has lost what was written of it: run the statement again")))
            }
            Err(Failure::Answered(error)) => Err(error.context(path)),
            Err(Failure::Lost(error) | Failure::Unreached(error)) => Err(unknown(path, &error)),
        }
    }

    /// Gives up what is not committed; back when nothing of it remains.
    pub async fn end(mut self) {
        let ended = ended(self.operation, &self.links).await;
        tracing::debug!(operation = self.operation.0, workers = ended, "drafts are over");
        self.links.clear();
    }
}

/// Ends the drafts of an operation at these workers: at how many of them.
async fn ended(operation: OperationId, links: &BTreeMap<WorkerId, Link>) -> usize {
    let request = DataRequest::Drafts { operation, call: DraftCall::End };
    let answers = join_all(links.values().map(|link| ask(link, &request, END_WITHIN))).await;
    for failure in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        // They end with the connection.
        tracing::debug!(?failure, "a worker did not say that drafts are over");
    }
    answers.iter().filter(|answer| answer.is_ok()).count()
}

impl Drop for Drafts {
    fn drop(&mut self) {
        let (operation, links) = (self.operation, std::mem::take(&mut self.links));
        if links.is_empty() {
            return;
        }
        // Bounded by the deadline of each question.
        forebay_runtime::spawn_left(async move {
            ended(operation, &links).await;
        });
    }
}

forebay_types::shown!(Drafts: operation);
