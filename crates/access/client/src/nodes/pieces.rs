//! Blocks and files for who writes and reads many of them.

use std::time::Instant;

use bytes::Bytes;
use forebay_nodes::{BlockRef, NodeError, NodeResult, ROOT, StorageClass};
use forebay_protocol::{NodeCall, NodeOp, NodeReply};
use forebay_runtime::time::sleep;
use forebay_types::WorkerId;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};

use super::Nodes;
use super::call::{Failed, misfit};
use super::write::check_claim;
use crate::connect::REFUSED_FOR;

/// Files whose places are looked up ahead, and blocks of them on their way.
const FILES_AHEAD: usize = 16;
const BLOCKS_AHEAD: usize = 16;

/// A block that a worker keeps for a file: [`Nodes::append_blocks`] makes it part of one, within 4 minutes. A worker drops
/// blocks that no node has a minute later.
#[derive(Debug)]
pub struct NodeBlock {
    block: BlockRef,
    begun: Instant,
}

impl Nodes {
    /// Sends 1 byte to 1 MiB, in parts that lie anywhere, to be a block of the file at `path`. The worker `at` has it as long
    /// as it lives; without one it is a worker beside this process where there is one, else any.
    ///
    /// For writers that must not have a thing cut between two blocks: what is one block is read in one piece.
    pub async fn send_block_of(
        &self,
        path: &str,
        at: Option<WorkerId>,
        class: StorageClass,
        parts: Vec<Bytes>,
    ) -> NodeResult<NodeBlock> {
        let begun = forebay_runtime::now();
        let worker = match at.and_then(|id| self.shared.routes.view.known().worker(id).cloned()) {
            Some(worker) => worker,
            None => self.data_worker(path)?,
        };
        let call = NodeCall { from: ROOT, moves: 0, path: "", op: NodeOp::BlockWrite { class }, number: None };
        let mut answered = self.reach(&worker, &call, parts.clone()).await;
        if matches!(answered, Err(Failed::Unreached(_) | Failed::Denied(_))) {
            // The connection may have broken while it was made.
            sleep(REFUSED_FOR).await;
            answered = self.reach(&worker, &call, parts).await;
        }
        let answer = answered.map_err(|failed| failed.into_error(worker.id).context(path))?;
        match answer.reply().map_err(|error| error.context(path))? {
            NodeReply::Block(block) => Ok(NodeBlock { block, begun }),
            _ => Err(misfit()),
        }
    }

    /// Adds blocks to the end of a file, in their order; its new length. `Retry` when they have waited for too long.
    pub async fn append_blocks(&self, path: &str, blocks: Vec<NodeBlock>) -> NodeResult<u64> {
        let oldest = blocks.iter().map(|block| block.begun).min();
        check_claim(path, oldest, "add them to the file sooner")?;
        let blocks = blocks.into_iter().map(|block| block.block).collect();
        self.call(path, &NodeOp::AppendBlocks { writer: 0, blocks }).await?.length()
    }

    /// Bytes of several files, one after the other, read ahead across their borders: block by block, each with the index of
    /// its path, as is an error, which is the last item.
    pub fn read_each(&self, paths: Vec<String>) -> BoxStream<'static, Result<(usize, Bytes), (usize, NodeError)>> {
        let nodes = self.clone();
        let places = stream::iter(paths.into_iter().enumerate()).map(move |(ix, path)| {
            let nodes = nodes.clone();
            async move { (ix, nodes.places_all(&path).await) }
        });
        let nodes = self.clone();
        let pieces = places.buffered(FILES_AHEAD).flat_map(|(ix, places)| {
            let pieces = match places {
                Ok(pieces) => pieces.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(pieces.into_iter().map(move |piece| (ix, piece)))
        });
        let fetched = pieces.map(move |(ix, piece)| {
            let nodes = nodes.clone();
            async move {
                let bytes = match piece {
                    Ok(piece) => nodes.piece(piece).await,
                    Err(error) => Err(error),
                };
                bytes.map(|bytes| (ix, bytes)).map_err(|error| (ix, error))
            }
        });
        fetched.buffered(BLOCKS_AHEAD).boxed()
    }
}
