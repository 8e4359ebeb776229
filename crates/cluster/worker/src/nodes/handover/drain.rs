//! Rounds of giving up, while a worker is draining.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use forebay_nodes::{DirId, Haven, NodeErrorKind, NodeResult, ROOT, plan_containers};
use forebay_protocol::{ClusterView, DrainReport, NodeReply, PeerCall, PeerOp};
use forebay_transport::{Address, Security};
use futures::future::join_all;

use super::containers::{HandedOver, Line};
use crate::nodes::Nodes;
use crate::nodes::named::NAME_WITHIN;
use crate::nodes::tree::misfit;

/// Time between two rounds.
const EVERY: Duration = Duration::from_millis(100);

/// Gives up what is here while the worker is draining, for ever: containers first, so that nothing new is written here, then
/// blocks. What fits nowhere stays, and is tried again, and so do containers below a quota, which one worker counts.
pub(crate) async fn drain(
    nodes: Arc<Nodes>,
    coordinator: Address,
    security: Security,
    follow: impl Fn(ClusterView) + Send + Sync + 'static,
) {
    let mut line = Line { coordinator, security, connection: None, follow: Box::new(follow) };
    // Containers of which the target has not said yet that their names lead there.
    let mut unconfirmed: Vec<HandedOver> = Vec::new();
    loop {
        while !nodes.drain.gives_up.load(Relaxed) {
            *nodes.drain.report.lock() = None;
            nodes.drain.begins.notified().await;
        }
        forebay_runtime::time::sleep(EVERY).await;
        if !nodes.drain.gives_up.load(Relaxed) {
            continue;
        }
        let report = nodes.drain_round(&mut line, &mut unconfirmed).await;
        let was_done = nodes.drain.report.lock().replace(report).is_some_and(|before| before.done);
        if report.done && !was_done {
            tracing::info!("drained: temporary data is with other workers");
            nodes.cluster.want_news();
        }
    }
}

impl Nodes {
    /// How far it is, while the worker is draining.
    pub(crate) fn drain_report(&self) -> Option<DrainReport> {
        *self.drain.report.lock()
    }

    /// Moves what can be moved now.
    async fn drain_round(&self, line: &mut Line, unconfirmed: &mut Vec<HandedOver>) -> DrainReport {
        let mut havens = self.havens().await;
        let (tied, free): (Vec<_>, Vec<_>) = {
            let names = self.names.read();
            names.containers().into_iter().partition(|(id, _)| names.is_tied(*id))
        };
        let plan = plan_containers(&free, &havens);
        let tied_bytes: u64 = tied.iter().map(|(_, bytes)| bytes).sum();
        let mut stuck_bytes = plan.stuck_bytes + tied_bytes;
        for (id, to) in plan.moves {
            if !self.drain.gives_up.load(Relaxed) {
                break;
            }
            let to = if id == ROOT { self.root_haven(&havens, to) } else { to };
            match self.hand_over(id, to, line).await {
                Ok(done) if id != ROOT => {
                    unconfirmed.push(done);
                    self.confirm(unconfirmed).await;
                }
                Ok(_) => tracing::info!(to, "the root of temporary data has moved"),
                Err(error) => tracing::debug!(container = ?id, to, %error, "container not moved yet"),
            }
        }
        self.confirm(unconfirmed).await;
        let mut is_left = !unconfirmed.is_empty();
        for owner in &self.cluster.view().workers {
            match self.evacuate(owner.id.0, &mut havens).await {
                Ok(evacuated) => {
                    stuck_bytes += evacuated.stuck_bytes;
                    is_left |= evacuated.is_left;
                }
                Err(error) => {
                    tracing::debug!(owner = %owner.id, %error, "blocks not moved yet");
                    is_left = true;
                }
            }
        }
        let (containers, bytes, nodes) = {
            let names = self.names.read();
            (names.containers(), names.bytes(), names.nodes())
        };
        // An empty root is worth nothing: the next worker makes one.
        let is_empty = nodes == 0 && containers.iter().all(|(id, _)| *id == ROOT && havens.is_empty());
        let blocks = self.blocks.bytes.load(Relaxed);
        DrainReport {
            containers: containers.len() as u64,
            bytes: bytes + blocks.saturating_sub(self.retired_bytes()),
            stuck_bytes,
            done: is_empty && !is_left && self.has_no_blocks(),
        }
    }

    /// The workers that can take something, and the room that they have.
    async fn havens(&self) -> Vec<Haven> {
        let view = self.cluster.view();
        let me = view.workers.iter().find(|worker| worker.id.0 == self.worker);
        let asked = view.workers.iter().filter(|worker| !worker.draining && worker.id.0 != self.worker).map(async |worker| {
            let call = PeerCall { from: ROOT, path: "", op: PeerOp::Room };
            let room = async {
                match self.ask_nodes(worker.id.0, &call, None).await?.reply()? {
                    NodeReply::Room { names, blocks, has_disk } => Ok((names, blocks, has_disk)),
                    _ => Err(misfit()),
                }
            };
            let room: NodeResult<_> = room.await;
            let (names_left, blocks_left, has_disk) = room.ok()?;
            let is_near = me.is_some_and(|me| me.location == worker.location);
            Some(Haven { worker: worker.id.0, names_left, blocks_left, has_disk, is_near })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Where the root goes: to the worker that would have it if this one died, when that one has room; so it is not lost then.
    fn root_haven(&self, havens: &[Haven], planned: u64) -> u64 {
        let view = self.cluster.view();
        let next = view.workers.iter().filter(|worker| worker.id.0 != self.worker).min_by_key(|worker| (worker.turn, worker.id));
        let bytes = self.names.read().containers().into_iter().find(|(id, _)| *id == ROOT).map_or(0, |(_, bytes)| bytes);
        let next = next.and_then(|next| havens.iter().find(|haven| haven.worker == next.id.0 && haven.names_left >= bytes));
        next.map_or(planned, |next| next.worker)
    }

    /// Tells targets that containers are their own; what none of them has a name for was never named, or is deleted.
    async fn confirm(&self, unconfirmed: &mut Vec<HandedOver>) {
        let mut left = Vec::new();
        for done in unconfirmed.drain(..) {
            match self.confirm_handover(&done).await {
                Ok(true) => {}
                Ok(false) if done.since.elapsed() > NAME_WITHIN => self.remove_nameless(done.new).await,
                // Its worker is gone, and has taken the container along.
                Err(error) if error.kind == NodeErrorKind::DataLost => {}
                Ok(false) => left.push(done),
                Err(error) => {
                    tracing::debug!(container = ?done.new, %error, "a moved container is not confirmed yet");
                    left.push(done);
                }
            }
        }
        *unconfirmed = left;
    }

    async fn remove_nameless(&self, id: DirId) {
        let call = PeerCall { from: id, path: "", op: PeerOp::RemoveNodes { recursive: true } };
        if let Err(error) = self.ask_nodes(id.worker, &call, None).await {
            tracing::debug!(container = ?id, %error, "a container without a name was not removed");
        }
    }
}
