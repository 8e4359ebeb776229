use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use forebay_nodes::{BlockRef, DirId, Moving, NodeError, NodeErrorKind, NodeResult, Target};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Raw};
use forebay_transport::Response;

use super::tree::misfit;
use super::values::reply;
use super::{COMMITTED_MAX, Nodes};
use crate::serving::Serving;

/// Workers that a rename is prepared at, one after the other: containers move, and take in.
const PREPARE_STEPS: usize = 8;

/// What is left of a rename after this worker's own names; whether it is a container's.
enum Step<'n> {
    Renamed(bool),
    Elsewhere(Target<'n>, bool),
}

impl Nodes {
    /// Renames a node: within this worker in one step; to another one prepared there and committed here.
    pub(super) async fn rename(
        &self,
        serving: &Arc<Serving>,
        from: (DirId, &str),
        to: (DirId, &str),
        inside: bool,
    ) -> NodeResult<()> {
        let (step, freed) = self.rename_here(from, to, inside)?;
        self.free_later(serving, freed);
        let (target, container) = match step {
            Step::Elsewhere(target, container) => (target, container),
            Step::Renamed(container) => {
                if container {
                    self.moved(serving).await;
                }
                return Ok(());
            }
        };
        let moving = self.names.lock().begin_move(from.0, from.1)?;
        let rename = rand::random();
        match self.prepare(serving, rename, from.1, target, &moving).await {
            Ok(worker) => {
                // From here on the target has it, whatever becomes of this worker or its word.
                self.names.lock().commit_move(from.0, from.1)?;
                self.remember(rename);
                self.tell_end(serving, worker, rename, true).await;
            }
            Err((error, worker)) => {
                self.names.lock().abort_move(from.0, from.1);
                if let Some(worker) = worker {
                    self.tell_end(serving, worker, rename, false).await;
                }
                return Err(error);
            }
        }
        if container {
            self.moved(serving).await;
        }
        Ok(())
    }

    /// Renames within this worker, or says where to. With it come the blocks of what was replaced.
    fn rename_here<'n>(
        &self,
        from: (DirId, &'n str),
        to: (DirId, &'n str),
        inside: bool,
    ) -> NodeResult<(Step<'n>, Vec<BlockRef>)> {
        let mut names = self.names.lock();
        let stat = names.stat(from.0, from.1)?;
        let stat = stat.ok_or_else(|| NodeError::new(NodeErrorKind::NotFound, format!("{:?}: there is no such node", from.1)))?;
        let container = stat.kind.is_container();
        if inside && container {
            return Err(NodeError::new(NodeErrorKind::Invalid, format!("{:?} can't be moved into itself", from.1)));
        }
        let target = match names.has(to.0) {
            true => names.target(from.1, to.0, to.1)?,
            false => Target::Here(to.0, to.1),
        };
        match target {
            Target::Here(dir, _) if names.has(dir) => {
                names.rename(from, to)?;
                Ok((Step::Renamed(container), names.take_freed()))
            }
            target => Ok((Step::Elsewhere(target, container), Vec::new())),
        }
    }

    /// Has the target's worker take the node in, unseen. Gives that worker; with an error too, when it may have done so.
    pub(super) async fn prepare(
        &self,
        serving: &Serving,
        rename: u128,
        own: &str,
        target: Target<'_>,
        moving: &Moving,
    ) -> Result<u64, (NodeError, Option<u64>)> {
        let node = postcard::to_stdvec(moving).expect("nodes are encodable");
        let (mut dir, mut path) = match target {
            Target::Here(dir, name) => (dir, name),
            Target::Into(dir) => (dir, ""),
        };
        for _ in 0..PREPARE_STEPS {
            let op = NodeOp::Arrive { rename, source: self.worker, name: own, node: Raw(&node) };
            let call = NodeCall { from: dir, moves: 0, path, op };
            let answer = serving.ask_nodes(dir.worker, &call, None).await.map_err(|error| (error, Some(dir.worker)))?;
            match answer.reply().map_err(|error| (error, None))? {
                NodeReply::Done => return Ok(dir.worker),
                // The container has moved to another worker, or one of the target's name takes it in.
                NodeReply::Elsewhere { dir: next, rest } => {
                    (dir, path) = (next, if rest as usize == path.len() { path } else { "" })
                }
                _ => return Err((misfit(), None)),
            }
        }
        Err((misfit(), None))
    }

    /// Takes a node in, unseen, in a container here.
    pub(super) fn arrive(&self, rename: u128, source: u64, to: (DirId, &str), own: &str, node: &[u8]) -> NodeResult<Response> {
        let moving: Moving = postcard::from_bytes(node)
            .map_err(|error| NodeError::new(NodeErrorKind::Invalid, format!("a node can't be read: {error}")))?;
        let mut names = self.names.lock();
        if let Some(dir) = names.moved_to(to.0) {
            return Ok(reply(&NodeReply::Elsewhere { dir, rest: to.1.len() as u32 }));
        }
        let target = match to.1 {
            "" => Target::Here(to.0, own),
            name => names.target(own, to.0, name)?,
        };
        match target {
            Target::Into(dir) => return Ok(reply(&NodeReply::Elsewhere { dir, rest: 0 })),
            Target::Here(dir, name) => names.arrive(rename, source, dir, name, moving)?,
        }
        Ok(reply(&NodeReply::Done))
    }

    /// A rename to this worker has ended.
    pub(super) fn settle(&self, serving: &Serving, rename: u128, committed: bool) {
        let (container, freed) = {
            let mut names = self.names.lock();
            (names.settle(rename, committed), names.take_freed())
        };
        self.free_later(serving, freed);
        if let Some((id, parent)) = container {
            serving.tell_nodes(id.worker, NodeOp::Reparent { parent });
        }
    }

    /// Whether a rename from this worker is committed.
    pub(super) fn is_committed(&self, rename: u128) -> bool {
        self.committed.lock().0.contains(&rename)
    }

    pub(super) fn remember(&self, rename: u128) {
        let mut committed = self.committed.lock();
        committed.0.insert(rename);
        committed.1.push_back(rename);
        if committed.1.len() > COMMITTED_MAX
            && let Some(oldest) = committed.1.pop_front()
        {
            committed.0.remove(&oldest);
        }
    }

    /// A target that doesn't hear it asks by itself: see `sweep`.
    pub(super) async fn tell_end(&self, serving: &Serving, worker: u64, rename: u128, committed: bool) {
        let op = NodeOp::Settle { rename, committed };
        let call = NodeCall { from: forebay_nodes::ROOT, moves: 0, path: "", op };
        if let Err(error) = serving.ask_nodes(worker, &call, None).await {
            tracing::debug!(worker, %error, "a worker did not hear how a rename ended");
        }
    }

    /// A container has another name: what clients remember of paths is old, with every worker, before anybody is told.
    async fn moved(&self, serving: &Serving) {
        self.moves.fetch_add(1, Relaxed);
        let told = serving.others().into_iter().map(|other| async move {
            let call = NodeCall { from: forebay_nodes::ROOT, moves: 0, path: "", op: NodeOp::Moved };
            if let Err(error) = serving.ask_nodes(other.id.0, &call, None).await {
                tracing::warn!(worker = %other.id, %error, "a worker did not hear that a container was renamed");
            }
        });
        futures::future::join_all(told).await;
    }
}
