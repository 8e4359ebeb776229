//! The way of an operation to the worker that has its node.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{BlockRef, DirId, NodeError, NodeErrorKind, NodeResult, ROOT, split};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Span, WorkerInfo, check_known};
use forebay_runtime::time::{Instant, sleep, timeout};
use forebay_types::{Error, ErrorKind, SegmentId, WorkerId};

use super::Nodes;
use super::paths::Walk;
use crate::connect::{REFUSED_FOR, of_node, said};
use crate::in_place::{Pin, Rescued, Session, pin_of_node};

/// Steps along a path over workers, beside one for each of its names, which may each be with another one: those after something
/// was renamed meanwhile.
const STEPS_MAX: usize = 64;
/// How often a path may lead to a container that is not there, with nothing new having come meanwhile, before that counts as lost.
const STALE_MAX: usize = 4;
/// How long something that is just moving to another worker is waited for, and the pauses between.
const MOVING_WITHIN: Duration = Duration::from_secs(30);
const MOVING_PAUSE: Duration = Duration::from_millis(5);
const MOVING_PAUSE_MAX: Duration = Duration::from_millis(100);

/// What is asked for with a call that is to be a matter of microseconds, at most.
const NEAR_READ_MAX: u32 = 16 << 10;
const NEAR_VALUES_MAX: usize = 64;

/// A worker's answer.
pub(crate) struct NodeAnswer {
    pub(crate) meta: Bytes,
    pub(crate) payload: Bytes,
    /// Where bytes in place are.
    session: Option<Arc<Session>>,
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

    /// Bytes in place. They hold their pin.
    pub(crate) fn in_place(&self, pin: u64, span: Span) -> NodeResult<Bytes> {
        let (session, Ok(len)) = (self.session.as_ref().ok_or_else(misfit)?, u32::try_from(span.len)) else {
            return Err(misfit());
        };
        // No read of an object finds this pin, so it needs no segment.
        let pin = Pin::new(session, pin, span, SegmentId(0), 0..len).map_err(|_| misfit())?;
        Ok(pin.bytes(0..len))
    }

    pub(crate) fn done(&self) -> NodeResult<()> {
        match self.reply()? {
            NodeReply::Done => Ok(()),
            _ => Err(misfit()),
        }
    }

    pub(crate) fn length(&self) -> NodeResult<u64> {
        if let NodeReply::Length(length) = self.reply()? { Ok(length) } else { Err(misfit()) }
    }
}

/// The error for an answer that doesn't fit the question.
pub(crate) fn misfit() -> NodeError {
    NodeError::new(NodeErrorKind::Retry, "a worker's answer doesn't fit the question: run one version of forebay")
}

impl Nodes {
    /// Does something with the node of a path, wherever it is.
    pub(crate) async fn call(&self, path: &str, op: &NodeOp<'_>) -> NodeResult<NodeAnswer> {
        self.call_with(path, op, None).await
    }

    /// The same with bytes behind the message.
    pub(crate) async fn call_with(&self, path: &str, op: &NodeOp<'_>, payload: Option<Bytes>) -> NodeResult<NodeAnswer> {
        let whole = split(path)?;
        let of_container = matches!(
            op,
            NodeOp::List { .. } | NodeOp::GetMany { .. } | NodeOp::PutMany { .. } | NodeOp::Usage | NodeOp::SetQuota { .. }
        );
        let paths = &self.shared.paths;
        let mut walk = paths.start(whole, of_container);
        let (mut stale, mut remembered, mut patience) = (0, true, Patience::new());
        // By a worker that said nothing any more: what another one says of now says nothing of that.
        let mut may_be_done = false;
        let (mut steps, mut is_tried_again) = (0, false);
        while steps < STEPS_MAX + whole.matches('/').count() {
            steps += 1;
            let Walk { from, rest, moves, .. } = walk;
            let at = if from == ROOT { self.root().map(|root| root.id) } else { None };
            let mut is_unreached = false;
            let asked = match self.worker_of(from).await {
                Ok(worker) => {
                    let call = NodeCall { from, moves, path: rest, op: op.clone() };
                    let losses = self.shared.routes.view.known().view.losses;
                    match self.reach(&worker, &call, payload.clone()).await {
                        // It may be done: it is done again only when what it was done to is gone with the worker.
                        Err((_, true)) if !may_repeat(op) && self.is_still_there(&worker, losses).await => {
                            return Err(unanswered(path, worker.id));
                        }
                        asked => asked.map_err(|failed| {
                            is_unreached = was_unreached(&failed);
                            let (error, is_open) = failed;
                            may_be_done |= is_open && !only_reads(op);
                            error
                        }),
                    }
                }
                Err(error) => Err(error),
            };
            let answer = match asked {
                // What is remembered may lead to a worker that is gone, and the path itself elsewhere by now.
                Err(error) if error.kind == NodeErrorKind::DataLost && from != ROOT && remembered => {
                    paths.forget_lost(from.worker);
                    (walk, remembered) = (paths.at_root(whole), false);
                    continue;
                }
                // The end of one connection says nothing of the worker: only when it can't be reached again is it taken for lost.
                Err(error) if (is_unreached || error.kind == NodeErrorKind::DataLost && from == ROOT) && !is_tried_again => {
                    is_tried_again = true;
                    sleep(REFUSED_FOR).await;
                    continue;
                }
                // The root may be with another worker by now.
                Err(error) if error.kind == NodeErrorKind::DataLost && from == ROOT => {
                    self.refresh().await;
                    if self.root().map(|root| root.id) == at || !patience.wait().await {
                        return Err(error);
                    }
                    continue;
                }
                asked => asked.map_err(|error| honest(error, may_be_done))?,
            };
            match NodeReply::decode(&answer.meta) {
                Ok(NodeReply::Elsewhere { dir, rest: left }) => {
                    let left = left as usize;
                    let Some(at) = whole.len().checked_sub(left).filter(|at| whole.is_char_boundary(*at)) else {
                        return Err(misfit());
                    };
                    walk = paths.follow(&walk, whole, &whole[at..], dir).unwrap_or_else(|| paths.at_root(whole));
                }
                Ok(NodeReply::Stale { moves: now }) => {
                    // Another number is news, and may come several times while workers are lost.
                    stale += usize::from(now == moves);
                    if stale > STALE_MAX {
                        return Err(lost(path, from.worker));
                    }
                    paths.forget(from.worker, now);
                    walk = paths.at_root(whole);
                }
                Ok(NodeReply::Failed(error)) if error.kind == NodeErrorKind::Moving => {
                    // The root's worker may be another one by now.
                    self.refresh().await;
                    if !patience.wait().await {
                        return Err(NodeError::new(NodeErrorKind::Retry, error.message).context(path));
                    }
                    steps -= 1;
                }
                // A rename is refused for what is above its target, which this path is not.
                Ok(NodeReply::Failed(error)) if matches!(op, NodeOp::Rename { .. }) => {
                    return Err(honest(error, may_be_done).context(path));
                }
                Ok(NodeReply::Failed(error)) => return Err(honest(error, may_be_done).at(path)),
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
        self.reach(worker, call, payload).await.map_err(|(error, _)| error)
    }

    /// The same. With an error comes whether the worker was lost only after the call was sent: it may be done or not.
    async fn reach(
        &self,
        worker: &Arc<WorkerInfo>,
        call: &NodeCall<'_>,
        payload: Option<Bytes>,
    ) -> Result<NodeAnswer, (NodeError, bool)> {
        let routes = &self.shared.routes;
        let id = worker.id.0;
        let link = match routes.connections.link(worker).await {
            Ok(link) => link,
            Err(error) => {
                routes.view.surprised();
                tracing::debug!(worker = %worker.id, %error, "worker of temporary nodes not reached");
                return Err((unreached(call.path, id, &error), false));
            }
        };
        if let Err(error) = check_known(&call.op, (&call.op).into(), link.connection.version()) {
            let message = format!("worker {}: {}", worker.id, error.message());
            return Err((NodeError::new(NodeErrorKind::Retry, message), false));
        }
        let deadline = routes.connections.read_deadline();
        let may_be_in_place = matches!(call.op, NodeOp::Get | NodeOp::BlockRead { .. });
        let session = link.in_place().filter(|_| may_be_in_place).cloned();
        let span = of_node(worker.id, &call.op);
        let message = said(&span, link.connection.version(), call.encode());
        let answering = async {
            match &session {
                Some(session) => {
                    let connection = link.connection.clone();
                    let asked = async move { connection.call_near(message, Vec::new()).await };
                    timeout(deadline, Rescued::new(asked, &session.outbox, pin_of_node)).await
                }
                None => {
                    let payload = payload.into_iter().collect();
                    match is_near(&call.op) {
                        true => timeout(deadline, link.connection.call_near(message, payload)).await,
                        false => timeout(deadline, link.connection.call(message, payload)).await,
                    }
                }
            }
        };
        let Some(answered) = routes.unless_lost(worker, answering).await else { return Err((lost(call.path, id), true)) };
        match answered {
            Ok(Ok(answer)) => Ok(NodeAnswer { meta: answer.meta, payload: answer.payload, session }),
            Ok(Err(error)) if error.kind() == ErrorKind::Invalid => {
                Err((NodeError::new(NodeErrorKind::Invalid, error.message()), false))
            }
            Ok(Err(error)) => {
                routes.view.surprised();
                tracing::debug!(worker = %worker.id, %error, "worker of temporary nodes lost");
                Err((lost(call.path, id), true))
            }
            Err(_) => {
                let message = format!("worker {} did not answer within {} s", worker.id, deadline.as_secs());
                Err((NodeError::new(NodeErrorKind::Retry, message), false))
            }
        }
    }

    /// Whether a worker is one of the cluster's by the view of now, as it was when so many losses were known.
    async fn is_still_there(&self, worker: &WorkerInfo, losses: u64) -> bool {
        self.refresh().await;
        self.shared.routes.is_live(worker, losses)
    }

    /// Looks who is there now.
    pub(crate) async fn refresh(&self) {
        if let Err(error) = self.shared.routes.view.poll().await {
            tracing::debug!(%error, "view not refreshed");
        }
    }

    /// Does something with a block, on the worker that has it.
    pub(crate) async fn ask_block(&self, block: BlockRef, start: u32, bytes: u32) -> NodeResult<Bytes> {
        let worker = self.worker_of(DirId { worker: block.worker, number: block.number }).await?;
        let call = NodeCall { from: ROOT, moves: 0, path: "", op: NodeOp::BlockRead { block, start, bytes } };
        let answer = match self.reach(&worker, &call, None).await {
            Err(failed) if was_unreached(&failed) => {
                sleep(REFUSED_FOR).await;
                self.ask(&worker, &call, None).await?
            }
            asked => asked.map_err(|(error, _)| error)?,
        };
        match answer.reply()? {
            NodeReply::Bytes(_) if answer.payload.len() == bytes as usize => Ok(answer.payload),
            NodeReply::InPlace { pin, span } if span.len == u64::from(bytes) => answer.in_place(pin, span),
            _ => Err(misfit()),
        }
    }

    /// The worker that has the root, as far as is known.
    pub(crate) fn root(&self) -> Option<Arc<WorkerInfo>> {
        let known = self.shared.routes.view.known();
        known.worker(known.view.root()?.id).cloned()
    }

    async fn worker_of(&self, dir: DirId) -> NodeResult<Arc<WorkerInfo>> {
        if dir == ROOT {
            if let Some(root) = self.root() {
                return Ok(root);
            }
            // It may have just come.
            self.refresh().await;
            return self
                .root()
                .ok_or_else(|| NodeError::new(NodeErrorKind::Retry, "there is no worker that could have /tmp: start one"));
        }
        let find = || self.shared.routes.view.known().worker(WorkerId(dir.worker)).cloned();
        if let Some(worker) = find() {
            return Ok(worker);
        }
        self.refresh().await;
        find().ok_or_else(|| lost("", dir.worker))
    }
}

/// Whether there was no connection to ask by. That says little of the worker: it may have broken while it was made, and for a moment all
/// are told what the first one was ([`REFUSED_FOR`]).
fn was_unreached((error, is_open): &(NodeError, bool)) -> bool {
    matches!(error.kind, NodeErrorKind::DataLost | NodeErrorKind::Denied) && !is_open
}

/// Whether a call is one that a worker answers in microseconds as a rule. A long message is none, whatever it asks for.
fn is_near(op: &NodeOp<'_>) -> bool {
    match op {
        NodeOp::List { .. } | NodeOp::BlockWrite { .. } => false,
        NodeOp::Read { bytes, .. } => *bytes <= NEAR_READ_MAX,
        NodeOp::GetMany { names } => names.len() <= NEAR_VALUES_MAX,
        _ => true,
    }
}

/// Whether a call that may be done already comes to the same when it is done again: what changes nothing, and what says what is
/// to be, whatever was. All else would add twice, find its own work in its place, or undo another's. Blocks that are put a second
/// time would be given back with the value that they are put in the place of.
fn may_repeat(op: &NodeOp<'_>) -> bool {
    use NodeOp::*;
    only_reads(op)
        || matches!(op, Put { .. } | PutMany { .. } | Lease { .. } | SetQuota { .. } | OpenWriter { .. } | CloseWriter { .. })
}

fn only_reads(op: &NodeOp<'_>) -> bool {
    use NodeOp::*;
    matches!(op, Get | GetMany { .. } | Stat | Usage | List { .. } | Read { .. } | Extents { .. } | Parent)
}

/// The error of a call that was asked again, when it `may_be_done` already: others may have seen it before it was lost, so none is left
/// that says that nothing was changed.
fn honest(error: NodeError, may_be_done: bool) -> NodeError {
    use NodeErrorKind::{DataLost, Internal, Moving, Retry};
    if !may_be_done || matches!(error.kind, DataLost | Retry | Moving | Internal) {
        return error;
    }
    NodeError::new(DataLost, format!("it may have been done, and be lost with its worker; asked again: {}", error.message))
}

/// Waits for what moves, longer each time, until it has been long enough.
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self { until: forebay_runtime::time::instant() + MOVING_WITHIN, pause: MOVING_PAUSE }
    }

    /// False when it is over.
    pub(crate) async fn wait(&mut self) -> bool {
        if forebay_runtime::time::instant() >= self.until {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MOVING_PAUSE_MAX);
        true
    }
}

/// The worker is there, but for what may have been done there is no telling.
fn unanswered(path: &str, worker: WorkerId) -> NodeError {
    let message =
        format!("{path:?}: the connection to worker {worker} ended before it answered: it may be done or not, make it again");
    NodeError::new(NodeErrorKind::DataLost, message)
}

/// The error of a worker that there is no connection to: who is not let in has lost nothing.
fn unreached(path: &str, worker: u64, error: &Error) -> NodeError {
    if error.kind() == ErrorKind::Denied { error.into() } else { lost(path, worker) }
}

fn lost(path: &str, worker: u64) -> NodeError {
    let worker = WorkerId(worker);
    // The container that is asked itself.
    let path = if path.is_empty() { String::new() } else { format!("{path:?}: ") };
    NodeError::new(NodeErrorKind::DataLost, format!("{path}worker {worker}, which had it, is gone: make it again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_let_in_has_lost_nothing() {
        let of = |error: Error| (unreached("a", 1, &error), false);
        let (denied, gone) = (of(Error::denied("the token was taken away")), of(Error::retry("it does not answer")));
        assert_eq!((denied.0.kind, gone.0.kind), (NodeErrorKind::Denied, NodeErrorKind::DataLost));
        assert!(was_unreached(&denied) && was_unreached(&gone), "it is tried once more: it may have not heard of a new token");
    }
}
