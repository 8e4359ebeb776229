//! The way of an operation to the worker that has its node.
//!
//! Owns: whom a call is sent to next, how long it goes on where nobody answers, and that one which changes something takes effect once: a
//! worker says what became of it when its answer was lost.
//!
//! Never does: remember ways, which `paths` does, or keep connections, which `connect` does.
//!
//! Start with [`Nodes::call_with`]; `reach` is one question to one worker.

mod once;
mod reach;
mod silence;

use std::sync::Arc;

use bytes::Bytes;
use forebay_nodes::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT, split};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, WorkerInfo};
use forebay_types::WorkerId;

use super::Nodes;
use super::paths::Walk;
use once::Numbered;
use silence::{Met, Silence, lost};

pub(crate) use reach::{NodeAnswer, misfit};
pub(crate) use silence::{Failed, Patience};

/// Steps along a path over workers, beside one for each of its names, which may each be with another one: those after something
/// was renamed meanwhile.
const STEPS_MAX: usize = 64;
/// How often a path may lead to a container that is not there, with nothing new having come meanwhile, before that counts as lost.
const STALE_MAX: usize = 4;

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
        let (mut stale, mut steps, mut met) = (0, 0, Met::new());
        let mut numbered = Numbered::of(&self.shared.slots, op);
        while steps < STEPS_MAX + whole.matches('/').count() {
            steps += 1;
            let Walk { from, rest, moves, .. } = walk;
            let call = NodeCall { from, moves, path: rest, op: op.clone(), number: numbered.number() };
            let asked = match self.worker_of(from).await {
                Ok(worker) => self.ask_once(&worker, &call, payload.iter().cloned().collect()).await,
                Err(silence) => Err(silence),
            };
            let answer = match asked {
                Ok(answer) => answer,
                Err(silence) => {
                    met.silence(path, from, op, silence).await?;
                    numbered.renew();
                    // What is remembered may lead to a worker that has the container no more.
                    if from != ROOT {
                        paths.forget_lost(from.worker);
                    }
                    (walk, steps) = (paths.at_root(whole), 0);
                    continue;
                }
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
                        return Err(lost(path, WorkerId(from.worker)));
                    }
                    paths.forget(from.worker, now);
                    walk = paths.at_root(whole);
                }
                Ok(NodeReply::Failed(error)) if error.kind == NodeErrorKind::Moving => {
                    // The root's worker may be another one by now.
                    self.refresh().await;
                    if !met.patience.wait().await {
                        return Err(NodeError::new(NodeErrorKind::Retry, error.message).context(path));
                    }
                    steps -= 1;
                }
                // A rename is refused for what is above its target, which this path is not.
                Ok(NodeReply::Failed(error)) if matches!(op, NodeOp::Rename { .. }) => {
                    return Err(met.honest(error).context(path));
                }
                Ok(NodeReply::Failed(error)) => return Err(met.honest(error).at(path)),
                _ => return Ok(answer),
            }
        }
        Err(NodeError::new(NodeErrorKind::Retry, format!("{path}: containers on the way are being renamed all the time")))
    }

    /// Looks who is there now.
    pub(crate) async fn refresh(&self) {
        if let Err(error) = self.shared.routes.view.poll().await {
            tracing::debug!(%error, "view not refreshed");
        }
    }

    /// The worker that has the root, as far as is known.
    pub(crate) fn root(&self) -> Option<Arc<WorkerInfo>> {
        let known = self.shared.routes.view.known();
        known.worker(known.view.root()?.id).cloned()
    }

    /// The worker that has a container. One that the view has not is lost, but where nobody could be asked for the view of now: it may have come since.
    async fn worker_of(&self, dir: DirId) -> Result<Arc<WorkerInfo>, Silence> {
        let find = || match dir == ROOT {
            true => self.root(),
            false => self.shared.routes.view.known().worker(WorkerId(dir.worker)).cloned(),
        };
        if let Some(worker) = find() {
            return Ok(worker);
        }
        let looked = self.shared.routes.view.poll().await;
        let (worker, is_asked) = (WorkerId(dir.worker), false);
        match (find(), looked) {
            (Some(worker), _) => Ok(worker),
            (None, _) if dir == ROOT => {
                let message = "there is no worker that could have /tmp: start one";
                Err(Silence::Refused(NodeError::new(NodeErrorKind::Retry, message)))
            }
            (None, Ok(())) => Err(Silence::Gone { worker, is_asked }),
            (None, Err(why)) => Err(Silence::Away { worker, is_asked, why }),
        }
    }
}
