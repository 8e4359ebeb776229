//! Blocks that clients name for nodes: whether they are theirs to name.
//!
//! A block waits, where a client brought it, until one node has it, and no other can have it then: what is another one's would be read
//! by the wrong name, and go with the wrong node. Of blocks of this worker that is known here; their worker is asked for others, once
//! a call, which only calls of many megabytes and blocks written in place need. A number that is made here goes with the question, so
//! that it can be asked again when the answer was lost, and by nobody else.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use forebay_nodes::{BlockRef, NodeError, NodeErrorKind, NodeResult, ROOT, UNCLAIMED_FOR};
use forebay_protocol::{CLAIMS_MAX, NodeReply, PeerCall, PeerOp};
use forebay_runtime::{Defect, planted};
use futures::future::join_all;
use parking_lot::Mutex;

use super::tree::misfit;
use super::{Kept, Nodes};

/// How often a worker is asked that does not answer.
const TRIES: u32 = 3;
/// Blocks of other workers that are claimed, or to be claimed, at a time.
const PENDING_MAX: usize = 1 << 20;

/// Blocks of other workers that a node here is to have, and has not yet.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<BlockRef, Claim>>);

/// What is known of such a block.
struct Claim {
    number: u128,
    since: Instant,
    /// Its worker has said yes.
    is_granted: bool,
    /// A call is about to make it a node's.
    is_taken: bool,
}

impl Claims {
    /// Takes blocks for one call; `Retry` while another call has one.
    fn take(&self, blocks: &[BlockRef]) -> NodeResult<()> {
        let mut claims = self.0.lock();
        if blocks.iter().any(|block| claims.get(block).is_some_and(|claim| claim.is_taken)) {
            return Err(NodeError::new(NodeErrorKind::Retry, "a block is just becoming a node's by another call: try again"));
        }
        if claims.len() + blocks.len() > PENDING_MAX {
            return Err(NodeError::new(NodeErrorKind::Retry, "too many blocks of other workers wait for nodes here: try again"));
        }
        for block in blocks {
            let new =
                || Claim { number: forebay_runtime::random(), since: forebay_runtime::now(), is_granted: false, is_taken: false };
            claims.entry(*block).or_insert_with(new).is_taken = true;
        }
        assert!(claims.len() <= PENDING_MAX, "{} blocks wait for nodes here", claims.len());
        Ok(())
    }

    /// Those of the blocks that their worker has not granted yet, with their numbers.
    fn to_ask(&self, blocks: &[BlockRef]) -> Vec<(BlockRef, u128)> {
        let claims = self.0.lock();
        let new = blocks.iter().filter_map(|block| Some((*block, claims.get(block)?))).filter(|(_, claim)| !claim.is_granted);
        new.map(|(block, claim)| (block, claim.number)).collect()
    }

    fn grant(&self, granted: &[(BlockRef, u128)]) {
        let mut claims = self.0.lock();
        debug_assert!(granted.iter().all(|(block, _)| claims.contains_key(block)), "what is asked for is noted first");
        for (block, _) in granted {
            claims.entry(*block).and_modify(|claim| claim.is_granted = true);
        }
    }

    /// They are nothing that waits here any more; their numbers.
    fn end(&self, blocks: &[BlockRef]) -> Vec<(BlockRef, u128)> {
        let mut claims = self.0.lock();
        blocks.iter().filter_map(|block| Some((*block, claims.remove(block)?.number))).collect()
    }

    fn untake(&self, blocks: &[BlockRef]) {
        let mut claims = self.0.lock();
        debug_assert!(blocks.iter().all(|block| claims.get(block).is_none_or(|claim| claim.is_taken)), "one call has a block");
        for block in blocks {
            claims.entry(*block).and_modify(|claim| claim.is_taken = false);
        }
    }

    /// Forgets those that nobody asked for again: their workers give them back.
    pub(super) fn forget(&self) {
        self.0.lock().retain(|_, claim| claim.is_taken || claim.since.elapsed() < UNCLAIMED_FOR);
    }
}

/// Blocks that a node here is to have. Dropped before they are claimed, they are there for a call as before.
pub(super) struct Taken<'a> {
    nodes: &'a Nodes,
    kept: Vec<(u64, Kept)>,
    elsewhere: Vec<BlockRef>,
}

impl Taken<'_> {
    /// A node has them now.
    pub(super) fn claim(mut self) {
        self.kept.clear();
        self.nodes.blocks.claims.end(&std::mem::take(&mut self.elsewhere));
    }

    /// Nobody is to have them any more.
    pub(super) fn give_back(mut self) {
        let mut blocks = std::mem::take(&mut self.elsewhere);
        self.nodes.blocks.claims.end(&blocks);
        blocks.extend(self.kept.drain(..).map(|(number, kept)| self.nodes.block(number, kept.len)));
        self.nodes.free_later(blocks);
    }

    /// A node of another worker is to have them. When its word of that is lost, that one will be refused.
    pub(super) async fn release(mut self) {
        let claims = self.nodes.blocks.claims.end(&std::mem::take(&mut self.elsewhere));
        let nodes = self.nodes;
        drop(self);
        let told = by_worker(claims).into_iter().map(async |claims| {
            let worker = claims[0].0.worker;
            let call = PeerCall { from: ROOT, path: "", op: PeerOp::BlockUnclaim { claims } };
            if let Err(error) = nodes.ask_nodes(worker, &call, None).await {
                tracing::debug!(%error, "a worker did not hear that blocks are not claimed any more");
            }
        });
        join_all(told).await;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.nodes.blocks.kept.lock().extend(self.kept.drain(..));
        self.nodes.blocks.claims.untake(&self.elsewhere);
    }
}

impl Nodes {
    /// Takes blocks that a client names for a node: they have been brought by clients, to this worker or others, and no node has them.
    /// `Invalid` for others, so that nobody has what is another one's go with a node of his.
    pub(super) async fn take_brought(&self, blocks: &[BlockRef]) -> NodeResult<Taken<'_>> {
        let mut taken = self.take_kept(blocks)?;
        let elsewhere: HashSet<BlockRef> = blocks.iter().filter(|block| block.worker != self.worker).copied().collect();
        if elsewhere.len() + taken.kept.len() < blocks.len() {
            return Err(NodeError::new(NodeErrorKind::Invalid, "a block is named twice: no two places can have it"));
        }
        if elsewhere.is_empty() {
            return Ok(taken);
        }
        let elsewhere: Vec<BlockRef> = elsewhere.into_iter().collect();
        self.blocks.claims.take(&elsewhere)?;
        taken.elsewhere = elsewhere;
        let asked =
            by_worker(self.blocks.claims.to_ask(&taken.elsewhere)).into_iter().map(async |claims| self.ask_claim(claims).await);
        let refused = join_all(asked).await.into_iter().find_map(NodeResult::err);
        refused.map_or(Ok(taken), Err)
    }

    /// Has a worker grant blocks of its own. Those that it refuses are forgotten.
    async fn ask_claim(&self, claims: Vec<(BlockRef, u128)>) -> NodeResult<()> {
        let worker = claims[0].0.worker;
        assert!(claims.iter().all(|(block, _)| block.worker == worker), "each worker is asked of its own");
        let call = PeerCall { from: ROOT, path: "", op: PeerOp::BlockClaim { claims: claims.clone() } };
        let mut tries = 0;
        let answered = loop {
            tries += 1;
            match self.ask_nodes(worker, &call, None).await {
                Err(error) if error.kind == NodeErrorKind::Retry && tries < TRIES => {}
                answered => break answered,
            }
        };
        let granted = answered.and_then(|answer| match answer.reply()? {
            NodeReply::Done => Ok(()),
            _ => Err(misfit()),
        });
        match &granted {
            Ok(()) => self.blocks.claims.grant(&claims),
            // It may have granted them.
            Err(error) if error.kind == NodeErrorKind::Retry => {}
            Err(_) => drop(self.blocks.claims.end(&claims.iter().map(|(block, _)| *block).collect::<Vec<_>>())),
        }
        granted
    }

    /// Those of the blocks that are of this worker, if they wait for a node.
    fn take_kept(&self, blocks: &[BlockRef]) -> NodeResult<Taken<'_>> {
        let mut kept = self.blocks.kept.lock();
        let mut taken = Taken { nodes: self, kept: Vec::new(), elsewhere: Vec::new() };
        for block in blocks.iter().filter(|block| block.worker == self.worker) {
            match kept.remove(&block.number) {
                Some(it) if it.len == block.len && it.claim.is_none() => taken.kept.push((block.number, it)),
                other => {
                    kept.extend(other.map(|it| (block.number, it)));
                    // Its end takes the lock.
                    drop(kept);
                    return Err(foreign(*block));
                }
            }
        }
        Ok(taken)
    }

    /// Blocks of this worker become those of nodes of another one.
    pub(super) fn claimed(&self, claims: &[(BlockRef, u128)]) -> NodeResult<()> {
        let mut kept = self.blocks.kept.lock();
        for (block, number) in claims {
            let is_long = |it: &Kept| it.len == block.len || planted(Defect::ForgedReference);
            let waits = kept.get(&block.number).is_some_and(|it| is_long(it) && it.claim.is_none_or(|claim| claim == *number));
            if !waits || block.worker != self.worker {
                return Err(foreign(*block));
            }
        }
        for (block, number) in claims {
            assert!(kept.contains_key(&block.number), "what is claimed was looked at");
            kept.entry(block.number).and_modify(|it| it.claim = Some(*number));
        }
        Ok(())
    }

    /// They are there for others again.
    pub(super) fn unclaimed(&self, claims: &[(BlockRef, u128)]) {
        let mut kept = self.blocks.kept.lock();
        for (block, number) in claims.iter().filter(|(block, _)| block.worker == self.worker) {
            kept.entry(block.number).and_modify(|it| it.claim = it.claim.filter(|claim| claim != number));
        }
    }
}

fn foreign(block: BlockRef) -> NodeError {
    NodeError::new(
        NodeErrorKind::Invalid,
        format!(
            "block {} of {} bytes is none that waits for a node here: another node has it, or it is not there; write the bytes again",
            block.number, block.len
        ),
    )
}

/// Claims of each worker together, in messages of a size.
fn by_worker(mut claims: Vec<(BlockRef, u128)>) -> Vec<Vec<(BlockRef, u128)>> {
    claims.sort();
    let workers = claims.chunk_by(|a, b| a.0.worker == b.0.worker);
    workers.flat_map(|claims| claims.chunks(CLAIMS_MAX)).map(<[_]>::to_vec).collect()
}
