//! Renames, also to another worker.
//!
//! Owns: the steps of a rename, here and where another worker's node comes in, and how those to other workers ended, for who asks.
//!
//! Never does: end between two steps because who asked went away, or leave open whose a node is: it is the source's
//! until the commit there and the target's from then on, whichever of the two is lost.
//!
//! Start with [`Nodes::rename`].

mod renames;
mod way_up;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use forebay_nodes::{BlockRef, DirId, Moving, NodeError, NodeErrorKind, NodeResult, Target};
use forebay_protocol::{NodeReply, PeerCall, PeerOp, Raw};
use forebay_transport::Response;
use tokio::sync::oneshot;

use super::Nodes;
use super::ask::PeerAnswer;
use super::fence::Reached;
use super::tree::misfit;
use super::values::reply;

pub(super) use renames::Renames;

/// Workers that a rename is prepared at, one after the other: containers move, and take in.
const PREPARE_STEPS: usize = 8;

/// What is left of a rename after this worker's own names; whether it is a container's.
enum Step<'n> {
    Renamed(bool),
    /// To a container of another worker, under this name; under its own when that is empty.
    Elsewhere((DirId, &'n str), bool),
}

/// What a target's way has led to.
pub(super) enum Prepared<'n> {
    /// This worker has taken the node in, unseen.
    By(u64),
    /// A container of the source itself, and the name in it as above: nothing is prepared.
    Back(DirId, &'n str),
}

impl Nodes {
    /// Renames a node: within this worker in one step; to another one prepared there and committed here. What has begun comes
    /// to its end also when who asked for it goes away.
    pub(super) async fn rename(self: &Arc<Self>, from: (Reached, &str), to: (DirId, &str), inside: bool) -> NodeResult<()> {
        let (step, freed) = self.rename_here(from, to, inside)?;
        self.free_later(freed);
        let (elsewhere, container) = match step {
            Step::Renamed(false) => return Ok(()),
            Step::Renamed(true) => (None, true),
            Step::Elsewhere((dir, name), container) => (Some((dir, name.to_string())), container),
        };
        let (nodes, at, name) = (Arc::clone(self), from.0, from.1.to_string());
        let (done, ended) = oneshot::channel();
        self.background.spawn(async move {
            let renamed = match &elsewhere {
                Some((to, path)) => nodes.move_away((at, name.as_str()), (*to, path.as_str())).await,
                None => Ok(()),
            };
            if renamed.is_ok() && container {
                nodes.moved().await;
            }
            // Who asked for it may not wait any more.
            let _ = done.send(renamed);
        });
        ended.await.unwrap_or_else(|_| Err(NodeError::new(NodeErrorKind::Retry, "the worker stops: try again")))
    }

    /// Gives a node up to a container of another worker, or renames it here when the way there leads back.
    async fn move_away(&self, from: (Reached, &str), to: (DirId, &str)) -> NodeResult<()> {
        let Some(to) = self.move_out(from, to).await? else { return Ok(()) };
        let (step, freed) = self.rename_here(from, to, false)?;
        self.free_later(freed);
        match step {
            Step::Renamed(_) => Ok(()),
            Step::Elsewhere(to, _) => match self.move_out(from, to).await? {
                None => Ok(()),
                Some(_) => {
                    Err(NodeError::new(NodeErrorKind::Retry, "the container that it is to come into is moving: try again"))
                }
            },
        }
    }

    /// Gives a node up to a container of another worker. Where the way leads back here nothing has happened, and it is said to what.
    async fn move_out<'n>(&self, (at, name): (Reached, &str), to: (DirId, &'n str)) -> NodeResult<Option<(DirId, &'n str)>> {
        let dir = at.dir;
        let (moving, lease) = {
            let mut names = self.changing(at)?;
            (names.begin_move(dir, name)?, names.lease(dir, name))
        };
        let rename = self.apart.renames.lock().begin();
        let (ended, worker) = match self.prepare(rename, name, to, &moving).await {
            // From here on the target has it, whatever becomes of this worker or its word.
            Ok(Prepared::By(worker)) => (self.names.write().commit_move(dir, name).map(|()| None), Some(worker)),
            Ok(Prepared::Back(dir, name)) => (Ok(Some((dir, name))), None),
            Err((error, worker)) => (Err(error), worker),
        };
        let committed = matches!(ended, Ok(None));
        if !committed {
            self.names.write().abort_move(dir, name);
        }
        self.apart.renames.lock().end(rename, committed);
        if let Some(worker) = worker
            && self.tell_end(worker, rename, committed).await
        {
            self.apart.renames.lock().forget(rename);
            if worker == self.worker {
                self.lease_again(moving.container(), lease);
            }
        }
        ended
    }

    /// A container came from this worker to this worker, the long way: its lease does so too.
    fn lease_again(&self, id: Option<DirId>, lease: Option<Duration>) {
        let mut names = self.names.write();
        let place = id.and_then(|id| names.place_of(id)).map(|(dir, name)| (dir, name.to_string()));
        if let (Some((dir, name)), Some(until)) = (place, lease) {
            // It may be gone again.
            let _ = names.set_lease(dir, &name, Some(until));
        }
    }

    /// Renames within this worker, or says where to. Without a name the target is just this container, in which the node has its own.
    /// With it come the blocks of what was replaced.
    fn rename_here<'n>(
        &self,
        from: (Reached, &'n str),
        to: (DirId, &'n str),
        inside: bool,
    ) -> NodeResult<(Step<'n>, Vec<BlockRef>)> {
        let mut names = self.changing(from.0)?;
        let from = (from.0.dir, from.1);
        let stat = names.stat(from.0, from.1)?;
        let stat = stat.ok_or_else(|| NodeError::new(NodeErrorKind::NotFound, format!("{:?}: there is no such node", from.1)))?;
        let container = stat.kind.is_container();
        if inside {
            // Whatever the client saw there: it says no place that anything could come to.
            return Err(match container {
                true => NodeError::new(NodeErrorKind::Invalid, format!("{:?} can't be moved into itself", from.1)),
                false => {
                    let message = format!("{:?} is a {}, which holds no nodes", from.1, stat.kind);
                    NodeError::new(NodeErrorKind::NotContainer, message)
                }
            });
        }
        let target = match to.1 {
            "" => Target::Here(to.0, from.1),
            name if names.has(to.0) => names.target(from.1, to.0, name)?,
            name => Target::Here(to.0, name),
        };
        match target {
            Target::Here(dir, name)
                if names.has(dir) && ((dir, name) == from || !container || Self::way_is_here(&names, from, dir)?) =>
            {
                names.rename_to(from, (dir, name))?;
                Ok((Step::Renamed(container), names.take_freed()))
            }
            Target::Here(dir, _) if dir == to.0 => Ok((Step::Elsewhere(to, container), Vec::new())),
            // It is in the container of that name already: what is there is not to take it in once more.
            Target::Here(dir, _) | Target::Into(dir) => Ok((Step::Elsewhere((dir, ""), container), Vec::new())),
        }
    }

    /// Has the target's worker take the node in, unseen, under its `own` name when `to` has none, unless another worker's names lead
    /// back here. With an error comes the worker that may have done so.
    pub(super) async fn prepare<'n>(
        &self,
        rename: u128,
        own: &str,
        to: (DirId, &'n str),
        moving: &Moving,
    ) -> Result<Prepared<'n>, (NodeError, Option<u64>)> {
        let node = postcard::to_stdvec(moving).expect("nodes are encodable");
        let (mut dir, mut path) = to;
        for _ in 0..PREPARE_STEPS {
            let op = PeerOp::Arrive { rename, source: self.worker, name: own, node: Raw(&node) };
            let call = PeerCall { from: dir, path, op };
            let answer = if dir.worker == self.worker {
                let arrived = self.arrive(rename, self.worker, (dir, path), own, &node).await;
                PeerAnswer::from(arrived.map_err(|error| (error, None))?)
            } else {
                self.ask_nodes(dir.worker, &call, None).await.map_err(|error| (error, Some(dir.worker)))?
            };
            match answer.reply().map_err(|error| (error, None))? {
                NodeReply::Done => return Ok(Prepared::By(dir.worker)),
                // The container has moved to another worker, or one of the target's name takes it in.
                NodeReply::Elsewhere { dir: next, rest } => {
                    (dir, path) = (next, if rest as usize == path.len() { path } else { "" });
                    if dir.worker == self.worker {
                        return Ok(Prepared::Back(dir, path));
                    }
                }
                _ => return Err((misfit(), None)),
            }
        }
        Err((misfit(), None))
    }

    /// Takes a node in, unseen, in a container here.
    pub(super) async fn arrive(
        &self,
        rename: u128,
        source: u64,
        to: (DirId, &str),
        own: &str,
        node: &[u8],
    ) -> NodeResult<Response> {
        let moving: Moving = postcard::from_bytes(node)
            .map_err(|error| NodeError::new(NodeErrorKind::Invalid, format!("a node can't be read: {error}")))?;
        let target = {
            let names = self.names.read();
            if let Some(dir) = names.moved_to(to.0) {
                return Ok(reply(&NodeReply::Elsewhere { dir, rest: to.1.len() as u32 }));
            }
            match to.1 {
                "" => Target::Here(to.0, own),
                name => names.target(own, to.0, name)?,
            }
        };
        let (dir, name) = match target {
            Target::Into(dir) => return Ok(reply(&NodeReply::Elsewhere { dir, rest: 0 })),
            Target::Here(dir, name) => (dir, name),
        };
        // Its name does not change until this ends, and says so to who comes by on a way of his own: of two containers that are moved into
        // each other one finds the other.
        if let Some(id) = moving.container() {
            self.keep_out(id, dir).await?;
        }
        self.names.write().arrive(rename, source, dir, name, moving)?;
        Ok(reply(&NodeReply::Done))
    }

    /// A rename to this worker has ended.
    pub(super) fn settle(&self, rename: u128, committed: bool) {
        let (container, freed) = {
            let mut names = self.names.write();
            (names.settle(rename, committed), names.take_freed())
        };
        self.free_later(freed);
        if let Some((id, parent)) = container {
            self.tell_nodes(id.worker, id, PeerOp::Reparent { parent });
        }
    }

    /// Whether a rename from this worker is committed already; `NotFound` when it was given up.
    pub(super) fn outcome(&self, rename: u128) -> NodeResult<bool> {
        let outcome = self.apart.renames.lock().outcome(rename);
        outcome.ok_or_else(|| NodeError::new(NodeErrorKind::NotFound, "the rename was given up"))
    }

    /// Tells a target how a rename ended; whether it heard. One that doesn't asks by itself: see `sweep`.
    pub(super) async fn tell_end(&self, worker: u64, rename: u128, committed: bool) -> bool {
        if worker == self.worker {
            self.settle(rename, committed);
            return true;
        }
        let op = PeerOp::Settle { rename, committed };
        let call = PeerCall { from: forebay_nodes::ROOT, path: "", op };
        let told = self.ask_nodes(worker, &call, None).await.and_then(|answer| answer.reply().map(drop));
        if let Err(error) = &told {
            tracing::debug!(worker, %error, "a worker did not hear how a rename ended");
        }
        told.is_ok()
    }

    /// A container has another name: what clients remember of paths is old, with every worker, before anybody is told.
    async fn moved(&self) {
        self.moves.fetch_add(1, Relaxed);
        let told = self.cluster.others().into_iter().map(|other| async move {
            let call = PeerCall { from: forebay_nodes::ROOT, path: "", op: PeerOp::Moved };
            if let Err(error) = self.ask_nodes(other.id.0, &call, None).await {
                tracing::warn!(worker = %other.id, %error, "a worker did not hear that a container was renamed");
            }
        });
        futures::future::join_all(told).await;
    }
}
