//! Blocks that get copies elsewhere before they go.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use forebay_nodes::{BlockRef, Haven, Location, NodeErrorKind, NodeResult, ROOT, StorageClass, plan_blocks};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_transport::Response;
use futures::stream::{self, StreamExt};

use crate::nodes::Nodes;
use crate::nodes::tree::misfit;
use crate::nodes::values::reply;

/// Blocks that are asked for at once.
const BLOCKS_MAX: u32 = 10_000;
/// Bytes of blocks on their way to other workers, and blocks.
const IN_FLIGHT_BYTES: u64 = 16 << 20;
const IN_FLIGHT: usize = 8;

/// What became of the blocks of one worker's nodes.
#[derive(Default)]
pub(in crate::nodes) struct Evacuated {
    /// Bytes that nobody has room for.
    pub(in crate::nodes) stuck_bytes: u64,
    /// Something is left, and is to be looked at again.
    pub(in crate::nodes) is_left: bool,
}

impl Nodes {
    /// Moves the blocks of this worker that a worker's nodes have to others.
    pub(in crate::nodes) async fn evacuate(&self, owner: u64, havens: &mut [Haven]) -> NodeResult<Evacuated> {
        let located = match self.ask_located(owner).await {
            Err(error) if error.kind == NodeErrorKind::DataLost => return Ok(Evacuated::default()),
            located => located?,
        };
        let mut blocks: Vec<BlockRef> = located.iter().map(|(block, _)| *block).collect();
        let locations: HashMap<BlockRef, Location> =
            located.into_iter().filter(|(_, location)| !location.is_anywhere()).collect();
        let view = self.cluster.view();
        let labels: HashMap<u64, &str> = view.workers.iter().map(|it| (it.id.0, it.location.as_str())).collect();
        let asks_for = |block: BlockRef, worker: u64| {
            let label = labels.get(&worker);
            locations.get(&block).is_some_and(|location| label.is_some_and(|label| location.is_at(label)))
        };
        let mut done = Evacuated { stuck_bytes: 0, is_left: blocks.len() == BLOCKS_MAX as usize };
        while !blocks.is_empty() {
            let plan = plan_blocks(&blocks, havens, IN_FLIGHT_BYTES, Self::is_on_disk, asks_for);
            if plan.moves.is_empty() {
                done.stuck_bytes = blocks.iter().map(|block| u64::from(block.len)).sum();
                done.is_left = true;
                break;
            }
            let planned: HashSet<BlockRef> = plan.moves.iter().map(|(block, _)| *block).collect();
            blocks.retain(|block| !planned.contains(block));
            for (block, to) in &plan.moves {
                if let Some(haven) = havens.iter_mut().find(|haven| haven.worker == *to) {
                    haven.blocks_left = haven.blocks_left.saturating_sub(block.len.into());
                }
            }
            let copied = stream::iter(plan.moves).map(async |(block, to)| (block, self.copy_block(block, to).await));
            let copied: Vec<(BlockRef, NodeResult<Option<BlockRef>>)> = copied.buffer_unordered(IN_FLIGHT).collect().await;
            let mut moved = Vec::with_capacity(copied.len());
            for (old, copied) in copied {
                match copied {
                    Ok(Some(new)) => moved.push((old, new)),
                    // Its bytes are lost with a tier, or its node was deleted: nothing that could move.
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(block = old.number, %error, "block not copied yet");
                        done.is_left = true;
                    }
                }
            }
            done.is_left |= !self.switch(owner, moved).await?;
        }
        Ok(done)
    }

    /// Blocks of this worker that a worker's nodes have.
    async fn ask_located(&self, owner: u64) -> NodeResult<Vec<(BlockRef, Location)>> {
        let op = PeerOp::BlocksOf { worker: self.worker, limit: BLOCKS_MAX };
        let answer = self.ask_nodes(owner, &PeerCall { from: ROOT, path: "", op }, None).await?;
        if let NodeReply::BlocksOf(blocks) = answer.reply()? { Ok(blocks) } else { Err(misfit()) }
    }

    /// Copies a block to another worker; none when its bytes are not there any more.
    async fn copy_block(&self, block: BlockRef, to: u64) -> NodeResult<Option<BlockRef>> {
        let Some(bytes) = self.read_block(block, 0, block.len).await? else { return Ok(None) };
        let class = if Self::is_on_disk(block) { StorageClass::Disk } else { StorageClass::Dram };
        self.bring_block(to, bytes, class).await.map(Some)
    }

    /// Has a worker's nodes name the copies. Old blocks are retired, copies that no node took given back. Whether all were
    /// taken.
    async fn switch(&self, owner: u64, moved: Vec<(BlockRef, BlockRef)>) -> NodeResult<bool> {
        if moved.is_empty() {
            return Ok(true);
        }
        let op = PeerOp::BlocksMoved { moved: moved.clone() };
        // Without an answer some nodes may have the copies: those are found by themselves when none has.
        let replaced: HashSet<BlockRef> = self.ask_blocks(owner, op).await?.into_iter().collect();
        let (taken, left): (Vec<_>, Vec<_>) = moved.into_iter().partition(|(old, _)| replaced.contains(old));
        let all = left.is_empty();
        self.free_later(left.into_iter().map(|(_, new)| new).collect());
        let now = forebay_runtime::now();
        self.blocks.retired.lock().extend(taken.into_iter().map(|(old, _)| (now, old)));
        Ok(all)
    }

    /// Blocks of a worker that nodes here have.
    pub(in crate::nodes) fn blocks_for(&self, worker: u64, limit: u32) -> Response {
        let blocks = self.names.read().some_blocks_of(worker, limit.min(BLOCKS_MAX) as usize);
        reply(&NodeReply::BlocksOf(blocks))
    }

    /// Nodes here name other blocks.
    pub(in crate::nodes) fn blocks_moved(&self, moved: &[(BlockRef, BlockRef)]) -> Response {
        let wanted: HashMap<BlockRef, BlockRef> = moved.iter().copied().collect();
        let replaced = self.names.write().replace_blocks(&wanted);
        let new: Vec<BlockRef> = moved.iter().filter(|(old, _)| replaced.contains(old)).map(|(_, new)| *new).collect();
        self.claim(&new);
        reply(&NodeReply::Blocks(replaced.into_iter().collect()))
    }

    /// Gives back retired blocks whose time is over.
    pub(in crate::nodes) fn reclaim(&self) {
        let over: Vec<BlockRef> = {
            let mut retired = self.blocks.retired.lock();
            let over = retired.iter().take_while(|(since, _)| since.elapsed() >= self.blocks.reclaim_after).count();
            retired.drain(..over).map(|(_, block)| block).collect()
        };
        self.free_here(&over);
    }

    /// Bytes of retired blocks.
    pub(in crate::nodes) fn retired_bytes(&self) -> u64 {
        self.blocks.retired.lock().iter().map(|(_, block)| u64::from(block.len)).sum()
    }

    /// Whether no block is here that a node has or will have, those that readers under way may look for among them.
    pub(in crate::nodes) fn has_no_blocks(&self) -> bool {
        self.blocks.kept.lock().is_empty() && self.blocks.retired.lock().is_empty()
    }

    async fn ask_blocks(&self, worker: u64, op: PeerOp<'_>) -> NodeResult<Vec<BlockRef>> {
        let answer = self.ask_nodes(worker, &PeerCall { from: ROOT, path: "", op }, None::<Bytes>).await?;
        if let NodeReply::Blocks(blocks) = answer.reply()? { Ok(blocks) } else { Err(misfit()) }
    }
}
