//! Directories, creation and deletion.

use std::sync::Arc;

use forebay_nodes::{
    BlockRef, Condition, CreateOptions, DirId, NodeError, NodeErrorKind, NodeResult, NodeType, Removed, ValueView,
};
use forebay_placement::holder;
use forebay_protocol::{BLOCKS_MAX, NodeOp, NodeReply, PeerCall, PeerOp, Raw};
use forebay_transport::Response;
use forebay_types::{RouteKey, WorkerId};
use futures::stream::{self, StreamExt};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Nodes;
use super::ask::ask;
use super::fence::Reached;
use super::values::reply;
use crate::cluster::Cluster;

/// Entries of one answer to a listing at most.
const LISTED_MAX: u32 = 10_000;
/// Deleted containers that other workers are asked to remove at a time.
const REMOVALS: usize = 16;

impl Nodes {
    /// Makes a node; a container's nodes come to the worker that the hash of its place says, and stay here where a quota is over them.
    /// The name of a container that is lost with its worker is free.
    pub(super) async fn create(&self, at: impl Into<Reached>, name: &str, options: CreateOptions) -> NodeResult<()> {
        let at = at.into();
        match self.create_new(at, name, options.clone()).await {
            Err(error) if error.kind == NodeErrorKind::Exists => match self.clear_lost(at, name).await? {
                true => self.create_new(at, name, options).await,
                false => Err(error),
            },
            created => created,
        }
    }

    async fn create_new(&self, at: Reached, name: &str, options: CreateOptions) -> NodeResult<()> {
        let dir = at.dir;
        let goes = options.kind.is_container() && !self.reached(at)?.is_bounded(dir);
        let worker = if goes { self.home_of(dir, name) } else { self.worker };
        if worker == self.worker {
            let (created, freed) = {
                let mut names = self.changing(at)?;
                let created = names.create(dir, name, options);
                (created, names.take_freed())
            };
            self.free_later(freed);
            return created;
        }
        // The nodes' place first: a name is seen only when what it means is there.
        let affinity = self.reached(at)?.check_create(dir, name, &options)?;
        let op = PeerOp::Adopt { kind: options.kind, affinity, parent: dir };
        let id = match self.ask_nodes(worker, &PeerCall { from: dir, path: "", op }, None).await?.reply()? {
            NodeReply::Dir(id) => id,
            _ => return Err(misfit()),
        };
        let linked = self.changing(at).and_then(|mut names| names.link(dir, name, options, id));
        if linked.is_err() {
            self.remove_elsewhere(vec![id]);
        }
        linked
    }

    fn home_of(&self, dir: DirId, name: &str) -> u64 {
        let workers: Vec<WorkerId> = self.cluster.view().placeable().map(|worker| worker.id).collect();
        holder(route(dir, name), &workers).map_or(self.worker, |worker| worker.0)
    }

    /// Part of a listing.
    pub(super) fn list(&self, at: Reached, _: &str, after: Option<&str>, limit: u32) -> NodeResult<Response> {
        let names = self.reached(at)?;
        let limit = limit.clamp(1, LISTED_MAX) as usize;
        let mut entries: Vec<(&str, NodeType, u64)> = Vec::with_capacity(limit.min(1024));
        let last = names.enumerate(at.dir, after, |name, kind, bytes| {
            if entries.len() == limit {
                return false;
            }
            entries.push((name, kind, bytes));
            true
        })?;
        Ok(reply(&NodeReply::Listed { entries, last }))
    }

    /// Where bytes of a value or file are.
    pub(super) fn extents_of(&self, at: Reached, name: &str, offset: u64, bytes: u64) -> NodeResult<Response> {
        {
            let names = self.reached(at)?;
            match names.get(at.dir, name) {
                Ok(value) => {
                    let ValueView { serial, len, skip, blocks, inline } = value.view(name, offset, bytes)?;
                    return Ok(reply(&NodeReply::Extents { serial, len, skip, blocks: blocks.to_vec(), tail: Raw(inline) }));
                }
                Err(error) if error.kind != NodeErrorKind::WrongType => return Err(error),
                Err(_) => {}
            }
        }
        self.extents(at, name, offset, bytes)
    }

    pub(super) async fn delete(&self, at: impl Into<Reached>, name: &str, recursive: bool) -> NodeResult<()> {
        let at = at.into();
        let elsewhere = self.reached(at)?.elsewhere(at.dir, name)?;
        if let Some(id) = elsewhere {
            // Its nodes first. When their worker is gone they are.
            match ask_to_remove(&self.cluster, id, recursive).await {
                Err(error) if !matches!(error.kind, NodeErrorKind::DataLost | NodeErrorKind::NotFound) => return Err(error),
                _ => {}
            }
        }
        let removed = self.changing(at)?.delete(at.dir, name, recursive)?;
        wait(self.gone(removed, elsewhere)).await;
        Ok(())
    }

    /// A file or value takes the place of another one.
    pub(super) fn replace(&self, at: Reached, (name, to): (&str, &str), condition: Condition) -> NodeResult<()> {
        let (replaced, freed) = {
            let mut names = self.changing(at)?;
            (names.replace(at.dir, name, to, condition), names.take_freed())
        };
        self.free_later(freed);
        replaced
    }

    /// Deletes a file or value that a condition is true of.
    pub(super) fn delete_if(&self, at: Reached, name: &str, condition: Condition) -> NodeResult<()> {
        let removed = self.changing(at)?.delete_if(at.dir, name, condition)?;
        self.free_later(removed.blocks);
        Ok(())
    }

    /// Deletes a container of this worker, whose name is with another one.
    pub(super) async fn remove_nodes(&self, id: DirId, recursive: bool) -> NodeResult<()> {
        let removed = self.names.write().remove_nodes(id, recursive)?;
        wait(self.gone(removed, None)).await;
        Ok(())
    }

    /// Gives back what was removed here, and has the containers in it go that are elsewhere. Ready when these are gone, or are
    /// left to be found: a client that knows the way to one must not see its nodes once it was told that they are deleted.
    pub(super) fn gone(&self, removed: Removed, but: Option<DirId>) -> Option<oneshot::Receiver<()>> {
        self.free_later(removed.blocks);
        let elsewhere: Vec<_> = removed.elsewhere.into_iter().filter(|id| Some(*id) != but).collect();
        (!elsewhere.is_empty()).then(|| self.remove_elsewhere(elsewhere))
    }

    /// Has containers go whose names are gone, also when who waits for it does not. What a worker doesn't hear of now it finds
    /// by itself: see `sweep`.
    fn remove_elsewhere(&self, ids: Vec<DirId>) -> oneshot::Receiver<()> {
        let cluster = Arc::clone(&self.cluster);
        let (done, gone) = oneshot::channel();
        self.background.spawn(async move {
            let remove = async |id| {
                if let Err(error) = ask_to_remove(&cluster, id, true).await {
                    tracing::debug!(container = ?id, %error, "a deleted container was not removed");
                }
            };
            stream::iter(ids).for_each_concurrent(REMOVALS, remove).await;
            // Who deleted them may not wait for it any more.
            let _ = done.send(());
        });
        gone
    }

    /// Gives blocks back: those here now, those of other workers by telling them.
    pub(super) fn free_later(&self, blocks: Vec<BlockRef>) {
        if blocks.is_empty() {
            return;
        }
        self.free_here(&blocks);
        let mut elsewhere: Vec<BlockRef> = blocks.into_iter().filter(|block| block.worker != self.worker).collect();
        elsewhere.sort();
        for blocks in elsewhere.chunk_by(|a, b| a.worker == b.worker).flat_map(|blocks| blocks.chunks(BLOCKS_MAX)) {
            self.tell_nodes(blocks[0].worker, forebay_nodes::ROOT, PeerOp::BlockFree { blocks: blocks.to_vec() });
        }
    }

    pub(super) async fn fetch_elsewhere(&self, block: BlockRef) -> NodeResult<bytes::Bytes> {
        let op = NodeOp::BlockRead { block, start: 0, bytes: block.len };
        let answer = self.ask_block(block.worker, op, None).await?;
        answer.reply()?;
        Ok(answer.payload)
    }
}

async fn ask_to_remove(cluster: &Cluster, id: DirId, recursive: bool) -> NodeResult<()> {
    let call = PeerCall { from: id, path: "", op: PeerOp::RemoveNodes { recursive } };
    match ask(cluster, id.worker, call.encode(), None).await?.reply()? {
        NodeReply::Done => Ok(()),
        _ => Err(misfit()),
    }
}

/// By what nodes and their blocks are spread over workers.
pub(super) fn route(dir: DirId, name: &str) -> RouteKey {
    RouteKey(xxh3_64_with_seed(name.as_bytes(), dir.worker ^ dir.number))
}

pub(super) fn misfit() -> NodeError {
    NodeError::new(NodeErrorKind::Retry, "a worker answered something else: run one version of forebay")
}

async fn wait(gone: Option<oneshot::Receiver<()>>) {
    if let Some(gone) = gone {
        // An error means that the worker stops.
        let _ = gone.await;
    }
}
