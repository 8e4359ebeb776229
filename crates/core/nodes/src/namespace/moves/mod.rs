//! What goes from one worker to another: a node by a rename, a container by a handover, blocks under their nodes, the root.
//!
//! Each goes in steps that either side can take up again after it failed; the caller carries them between the workers.

mod handover;
mod renamed;
mod root;
mod takeover;

use std::collections::{HashMap, HashSet};

pub use handover::{Carton, Packed};

use crate::namespace::Namespace;
use crate::terms::{BlockRef, Location};

/// Blocks that move to another worker while their nodes stay.
impl Namespace {
    /// Up to `limit` blocks of a worker that nodes here have, those of nodes on their way among them, each with where its node
    /// asks to lie. O(nodes).
    pub fn some_blocks_of(&self, worker: u64, limit: usize) -> Vec<(BlockRef, Location)> {
        let blocks = self.every_node().flat_map(|node| node.blocks().into_iter().map(move |block| (block, node)));
        let blocks = blocks.filter(|(block, _)| block.worker == worker).take(limit);
        blocks.map(|(block, node)| (block, self.location(node))).collect()
    }

    /// Replaces blocks by others with the same bytes, and returns the old ones that were replaced, which are the caller's. Blocks of
    /// nodes on their way stay as they are. O(nodes).
    pub fn replace_blocks(&mut self, moved: &HashMap<BlockRef, BlockRef>) -> HashSet<BlockRef> {
        let mut replaced = HashSet::new();
        let other = |block: BlockRef| {
            let new = moved.get(&block).filter(|new| new.len == block.len)?;
            replaced.insert(block);
            Some(*new)
        };
        self.whole(|names| names.step_blocks(other, moved.len()));
        replaced
    }
}
