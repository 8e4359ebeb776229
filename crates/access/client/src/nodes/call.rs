use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, ROOT, split};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, WorkerInfo};
use forebay_types::{ErrorKind, WorkerId};
use tokio::time::{sleep, timeout};

use super::Nodes;

/// Steps along a path over workers, those after something was renamed meanwhile among them.
const STEPS_MAX: usize = 64;
/// How often a path may turn out to be old before what it leads to counts as lost.
const STALE_MAX: usize = 4;
/// How often the worker with the root is looked for, and the pause between.
const ROOT_TRIES: usize = 20;
const ROOT_PAUSE: Duration = Duration::from_millis(50);

/// A worker's answer.
pub(crate) struct NodeAnswer {
    pub(crate) meta: Bytes,
    pub(crate) payload: Bytes,
    /// Who gave it.
    pub(crate) worker: u64,
}

impl NodeAnswer {
    /// The reply; one that says it failed is the error.
    pub(crate) fn reply(&self) -> NodeResult<NodeReply<'_>> {
        match NodeReply::decode(&self.meta) {
            Ok(NodeReply::Failed(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(_) => Err(misfit()),
        }
    }

    pub(crate) fn done(&self) -> NodeResult<()> {
        match self.reply()? {
            NodeReply::Done => Ok(()),
            _ => Err(misfit()),
        }
    }

    pub(crate) fn length(&self) -> NodeResult<u64> {
        match self.reply()? {
            NodeReply::Length(length) => Ok(length),
            _ => Err(misfit()),
        }
    }
}

/// The error for an answer that doesn't fit the question.
pub(crate) fn misfit() -> NodeError {
    NodeError::new(NodeErrorKind::Retry, "a worker's answer doesn't fit the question: run one version of forebay")
}

impl Nodes {
    /// Does something with the node of a path, wherever it is.
    pub(crate) async fn call(&self, path: &str, op: &NodeOp<'_>, payload: Option<Bytes>) -> NodeResult<NodeAnswer> {
        let whole = split(path)?;
        let of_container = matches!(op, NodeOp::List { .. });
        let paths = &self.core.paths;
        let (mut from, mut rest, mut moves) = paths.start(whole, of_container);
        let (mut stale, mut rootless, mut remembered) = (0, 0, true);
        for _ in 0..STEPS_MAX {
            let asked = match self.worker_of(from).await {
                Ok(worker) => {
                    let call = NodeCall { from, moves, path: rest, op: op.clone() };
                    self.ask(&worker, &call, payload.clone()).await
                }
                Err(error) => Err(error),
            };
            let answer = match asked {
                // What is remembered may lead to a worker that is gone, and the path itself elsewhere by now.
                Err(error) if error.kind == NodeErrorKind::DataLost && from != ROOT && remembered => {
                    paths.forget(from.worker, paths.moves(from.worker));
                    (from, rest, moves, remembered) = (ROOT, whole, 0, false);
                    continue;
                }
                asked => asked?,
            };
            // Read before the path is followed: a rename after that shows.
            match NodeReply::decode(&answer.meta) {
                Ok(NodeReply::Elsewhere { dir, rest: left }) => {
                    let left = left as usize;
                    let Some(at) = whole.len().checked_sub(left).filter(|at| whole.is_char_boundary(*at)) else {
                        return Err(misfit());
                    };
                    moves = paths.moves(dir.worker);
                    paths.learn(whole[..at].trim_end_matches('/'), dir);
                    (from, rest) = (dir, &whole[at..]);
                }
                Ok(NodeReply::Stale { moves: now }) => {
                    stale += 1;
                    if stale > STALE_MAX {
                        return Err(lost(path, from.worker));
                    }
                    paths.forget(from.worker, now);
                    (from, rest, moves) = (ROOT, whole, 0);
                }
                Ok(NodeReply::Failed(error)) if error.kind == NodeErrorKind::Retry && from == ROOT && rootless < ROOT_TRIES => {
                    // The root's worker may be another one by now; it may also be a busy file, which is the caller's business.
                    if self.root().is_some_and(|root| root.id.0 == answer.worker) {
                        return Err(error.context(path));
                    }
                    rootless += 1;
                    sleep(ROOT_PAUSE).await;
                }
                Ok(NodeReply::Failed(error)) => return Err(error.context(path)),
                _ => return Ok(answer),
            }
        }
        Err(NodeError::new(NodeErrorKind::Retry, format!("{path}: containers on the way are being renamed all the time")))
    }

    /// Asks one worker. `DataLost` when it can't be reached: what it had is gone, or will be before anybody could wait for it.
    pub(crate) async fn ask(
        &self,
        worker: &Arc<WorkerInfo>,
        call: &NodeCall<'_>,
        payload: Option<Bytes>,
    ) -> NodeResult<NodeAnswer> {
        let core = &self.core;
        let id = worker.id.0;
        let link = match core.connections.link(worker).await {
            Ok(link) => link,
            Err(error) => {
                core.view.surprised();
                tracing::debug!(worker = %worker.id, %error, "worker of temporary nodes not reached");
                return Err(lost(call.path, id));
            }
        };
        let deadline = core.settings.read_deadline;
        match timeout(deadline, link.connection().call(call.encode(), payload.into_iter().collect())).await {
            Ok(Ok(answer)) => Ok(NodeAnswer { meta: answer.meta, payload: answer.payload, worker: id }),
            Ok(Err(error)) if error.kind() == ErrorKind::Invalid => Err(NodeError::new(NodeErrorKind::Invalid, error.message())),
            Ok(Err(error)) => {
                core.view.surprised();
                tracing::debug!(worker = %worker.id, %error, "worker of temporary nodes lost");
                Err(lost(call.path, id))
            }
            Err(_) => Err(NodeError::new(
                NodeErrorKind::Retry,
                format!("worker {} did not answer within {} s", worker.id, deadline.as_secs()),
            )),
        }
    }

    /// Does something with a block, on the worker that has it.
    pub(crate) async fn ask_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Bytes> {
        let worker = self.worker_of(DirId { worker: block.worker, number: block.number }).await?;
        let call = NodeCall { from: ROOT, moves: 0, path: "", op: NodeOp::BlockRead { block, start, bytes } };
        let answer = self.ask(&worker, &call, None).await?;
        match answer.reply()? {
            NodeReply::Bytes(_) if answer.payload.len() == bytes as usize => Ok(answer.payload),
            _ => Err(misfit()),
        }
    }

    /// The worker that has the root, as far as is known.
    pub(crate) fn root(&self) -> Option<Arc<WorkerInfo>> {
        let known = self.core.view.known();
        let first = known.view.workers.iter().min_by_key(|worker| (worker.turn, worker.id))?.id;
        known.worker(first).cloned()
    }

    async fn worker_of(&self, dir: DirId) -> NodeResult<Arc<WorkerInfo>> {
        if dir == ROOT {
            if let Some(root) = self.root() {
                return Ok(root);
            }
            // It may have just come.
            if let Err(error) = self.core.view.poll().await {
                tracing::debug!(%error, "view not refreshed");
            }
            return self
                .root()
                .ok_or_else(|| NodeError::new(NodeErrorKind::Retry, "there is no worker that could have /tmp: start one"));
        }
        let find = || self.core.view.known().worker(WorkerId(dir.worker)).cloned();
        if let Some(worker) = find() {
            return Ok(worker);
        }
        if let Err(error) = self.core.view.poll().await {
            tracing::debug!(%error, "view not refreshed");
        }
        find().ok_or_else(|| lost("", dir.worker))
    }
}

fn lost(path: &str, worker: u64) -> NodeError {
    let worker = WorkerId(worker);
    NodeError::new(NodeErrorKind::DataLost, format!("{path:?}: worker {worker}, which had it, is gone: make it again"))
}
