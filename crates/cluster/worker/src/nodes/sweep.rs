//! What nobody asks for.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::Duration;

use forebay_nodes::{BlockRef, NodeErrorKind, ROOT, UNCLAIMED_FOR};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_transport::caught_future;

use super::rename::Renames;
use super::{Brought, Kept, Nodes};

/// Time between two rounds.
const EVERY: Duration = Duration::from_millis(200);
/// Rounds between two looks at what other workers left here.
const LOOK_EVERY: u32 = 25;
/// How long memory of deleted blocks is kept for new ones.
const SPARES_IDLE: Duration = Duration::from_secs(10);
/// Blocks asked for at once.
const BLOCKS_MAX: usize = 10_000;

/// Does for ever what nobody asks for.
pub(crate) async fn sweep(nodes: Arc<Nodes>) {
    let (mut round, mut view) = (0u32, 0);
    loop {
        forebay_runtime::time::sleep(EVERY).await;
        round = round.wrapping_add(1);
        let now = nodes.cluster.view().version;
        let at_all = std::mem::replace(&mut view, now) != now || round.is_multiple_of(LOOK_EVERY);
        // One that fails by a defect is not the last one.
        if caught_future(nodes.sweep_once(round, at_all)).await.is_none() {
            tracing::error!("what nobody asks for of temporary nodes failed by a defect");
        }
    }
}

impl Nodes {
    async fn sweep_once(self: &Arc<Self>, round: u32, at_all: bool) {
        self.end_leases().await;
        self.end_renames().await;
        self.end_takeovers().await;
        self.reclaim();
        if at_all || self.has_doubts() {
            self.look_for_names(at_all).await;
        }
        if round.is_multiple_of(LOOK_EVERY) {
            self.store.trim_spares(SPARES_IDLE);
            self.look_at_kept(UNCLAIMED_FOR / 2).await;
            self.blocks.claims.forget();
            self.forget_calls();
        }
    }

    /// This worker was lost to all others and is a new one: what it had is gone. Only its blocks stay, of which nodes of others may
    /// have some.
    pub(crate) fn begin_anew(&self) {
        let (removed, doubtful) = {
            let mut names = self.names.write();
            self.fence.lives.fetch_add(1, AcqRel);
            self.fence.losses.fetch_add(1, Relaxed);
            self.moves.fetch_add(1, Relaxed);
            self.fence.once.lock().lose();
            names.lose_all()
        };
        tracing::warn!("this worker was lost to all others: its temporary nodes are gone");
        *self.apart.renames.lock() = Renames::new(forebay_runtime::random());
        self.apart.unlinked.lock().clear();
        *self.apart.named.lock() = Default::default();
        let doubtful = doubtful.into_iter().filter(|block| block.worker == self.worker);
        self.blocks.kept.lock().extend(doubtful.map(|block| (block.number, Kept::new(block.len, Brought::ByWorker))));
        self.gone(removed, None);
    }

    /// Deletes nodes whose leases are over.
    async fn end_leases(&self) {
        let expired = self.names.read().expired(self.now());
        for (dir, name) in expired {
            // While others were deleted it may have been renewed or lifted, or another node has come to have the name.
            if self.names.read().lease(dir, &name).is_none_or(|until| until > self.now()) {
                continue;
            }
            tracing::info!(name, "lease of a temporary node is over");
            if let Err(error) = self.delete(dir, &name, true).await
                && error.kind != NodeErrorKind::NotFound
            {
                tracing::debug!(name, %error, "an expired node stays for now");
            }
        }
    }

    /// Asks the sources of renames that have waited here how they ended. A source that is gone has nothing any more: the node
    /// is here.
    async fn end_renames(&self) {
        let unsettled = self.names.read().unsettled();
        for (rename, source) in unsettled {
            let is_live = self.cluster.view().workers.iter().any(|worker| worker.id.0 == source);
            let op = PeerOp::Outcome { rename };
            let asked = self.ask_nodes(source, &PeerCall { from: ROOT, path: "", op }, None).await;
            match asked.as_ref().map(|answer| answer.reply()) {
                Ok(Ok(NodeReply::Outcome(true))) => self.settle(rename, true),
                // It was given up, and word of that was lost.
                Ok(Err(error)) if error.kind == NodeErrorKind::NotFound => self.settle(rename, false),
                // Not committed yet: it says so when it ends.
                Ok(_) => {}
                Err(_) if !is_live => self.settle(rename, true),
                Err(_) => {}
            }
        }
    }

    /// Gives back blocks that were kept for nodes, and that none has: when all workers have said so at two looks in a row, each
    /// `pause` after the one before it, or after the block came. One look is not enough: a node that moves between two workers
    /// while they are asked one after the other is with neither.
    pub(super) async fn look_at_kept(&self, pause: Duration) {
        let (mut blocks, mut missed_before) = (Vec::new(), HashSet::new());
        for (number, kept) in
            self.blocks.kept.lock().iter_mut().filter(|(_, kept)| kept.since.elapsed() >= pause).take(BLOCKS_MAX)
        {
            kept.since = forebay_runtime::now();
            if std::mem::take(&mut kept.is_missed) {
                missed_before.insert(*number);
            }
            blocks.push(BlockRef { worker: self.worker, number: *number, len: kept.len });
        }
        for worker in &self.cluster.view().workers {
            if blocks.is_empty() {
                return;
            }
            let op = PeerOp::BlockUnknown { blocks: std::mem::take(&mut blocks) };
            let answer = self.ask_nodes(worker.id.0, &PeerCall { from: ROOT, path: "", op }, None).await;
            match answer.as_ref().map(|answer| answer.reply()) {
                Ok(Ok(NodeReply::Blocks(unknown))) => blocks = unknown,
                _ => return,
            }
        }
        let (gone, missed): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| missed_before.contains(&block.number));
        self.free_here(&gone);
        let mut kept = self.blocks.kept.lock();
        for block in missed {
            if let Some(kept) = kept.get_mut(&block.number) {
                kept.is_missed = true;
            }
        }
    }

    /// Those of the blocks that no node here has.
    pub(super) fn unknown(&self, mut blocks: Vec<BlockRef>) -> Vec<BlockRef> {
        let names = self.names.read();
        let known = names.blocks_of(|worker| blocks.first().is_some_and(|block| block.worker == worker));
        blocks.retain(|block| !known.contains(block));
        blocks
    }
}
