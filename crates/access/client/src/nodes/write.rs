//! Writing a file, block by block.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use forebay_nodes::{Affinity, BlockRef, NodeError, NodeErrorKind, NodeResult, ROOT, StorageClass, UNCLAIMED_FOR};
use forebay_protocol::{NodeCall, NodeOp, NodeReply};
use forebay_types::{BLOCK_BYTES, Error};
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use futures::{FutureExt, StreamExt};
use tokio::io::AsyncWrite;

use super::Nodes;
use super::call::{Failed, NodeAnswer, Patience, misfit};

/// Blocks on their way to workers.
const BLOCKS_AHEAD: usize = 8;
/// Blocks that are added to the file with one call, and how long the first of them may wait for the others.
const BLOCKS_ADDED: usize = 8;
const ADDED_AFTER: Duration = Duration::from_secs(15);
/// How long a block may take from its beginning on until a node is to have it: well within the time for which its worker keeps
/// it without one.
const CLAIMED_WITHIN: Duration = Duration::from_secs(UNCLAIMED_FOR.as_secs() - 60);

/// Adds to the end of a file as its only writer, in blocks that go straight to the worker that will have them. Implements
/// tokio's `AsyncWrite`; what was written is in the file after a flush or [`Self::finish`]. To be flushed before a pause of
/// minutes: what was not waits for the next call, and fails it when that comes too late.
///
/// A writer that is dropped leaves what was flushed; another one can take the file over 10 s after its last call.
pub struct NodeWriter {
    nodes: Nodes,
    path: String,
    writer: u64,
    affinity: Affinity,
    buffer: BytesMut,
    /// Gives what is done in the order in which it was begun.
    sending: FuturesOrdered<BoxFuture<'static, NodeResult<BlockRef>>>,
    sent: Vec<BlockRef>,
    /// Blocks that are being added to the file.
    adding: Option<(usize, BoxFuture<'static, NodeResult<u64>>)>,
    /// When each block was begun that is not known to be in the file.
    begun: VecDeque<Instant>,
}

/// Blocks that were brought for a value. Dropped before a node has them they are given back, also where nobody waits for the value any
/// more: their workers do so by themselves, but after minutes, for which nothing else would have their room.
pub(super) struct Brought {
    nodes: Nodes,
    /// In the order of their bytes.
    pub(super) blocks: Vec<BlockRef>,
}

impl Brought {
    /// A node has them now.
    pub(super) fn taken(mut self) {
        self.blocks.clear();
    }
}

impl Drop for Brought {
    fn drop(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        if blocks.is_empty() {
            return;
        }
        let nodes = self.nodes.clone();
        // Bounded by the deadline of the call.
        forebay_runtime::spawn_left(async move { nodes.give_back(blocks).await });
    }
}

impl Nodes {
    /// Becomes the only writer of a file. `Retry` while there is another one.
    pub async fn writer(&self, path: &str) -> NodeResult<NodeWriter> {
        let writer = forebay_runtime::random_range(1..=u64::MAX);
        self.call(path, &NodeOp::OpenWriter { writer }).await?.length()?;
        let affinity = self.affinity_of(&[path]).await?;
        Ok(NodeWriter {
            nodes: self.clone(),
            path: path.to_string(),
            writer,
            affinity,
            buffer: BytesMut::new(),
            sending: FuturesOrdered::new(),
            sent: Vec::new(),
            adding: None,
            begun: VecDeque::new(),
        })
    }

    /// Puts a value's bytes into blocks.
    pub(super) async fn put_blocks(&self, path: &str, value: Bytes) -> NodeResult<Brought> {
        // As before, or as its container says.
        let container = path.rsplit_once('/').map_or("", |(container, _)| container);
        let affinity = self.affinity_of(&[path, container]).await?;
        let begun = forebay_runtime::now();
        let mut starts = (0..value.len()).step_by(BLOCK_BYTES as usize);
        let mut sending = FuturesOrdered::new();
        let (mut brought, mut failed) = (Brought { nodes: self.clone(), blocks: Vec::new() }, None);
        loop {
            while failed.is_none()
                && sending.len() < BLOCKS_AHEAD
                && let Some(start) = starts.next()
            {
                let piece = value.slice(start..value.len().min(start + BLOCK_BYTES as usize));
                sending.push_back(self.clone().send_block(path.to_string(), piece, affinity.clone()));
            }
            // With an error those that are under way are waited for, too: what has come is to be given back.
            match sending.next().await {
                Some(Ok(block)) => brought.blocks.push(block),
                Some(Err(error)) => failed = failed.or(Some(error)),
                None => break,
            }
        }
        match failed.or_else(|| check_claim(path, Some(begun), "write what takes so long to a file").err()) {
            None => Ok(brought),
            Some(error) => {
                self.give_back(std::mem::take(&mut brought.blocks)).await;
                Err(error)
            }
        }
    }

    /// Blocks that no node is to have: put in the place of /tmp itself they are refused, and freed.
    async fn give_back(&self, blocks: Vec<BlockRef>) {
        if blocks.is_empty() {
            return;
        }
        if let Err(error) = self.call("/tmp", &NodeOp::PutBlocks { blocks }).await.and_then(|answer| answer.length()) {
            tracing::debug!(%error, "blocks of a value that was not put are given back");
        }
    }

    /// Where blocks are to lie, as the first of these nodes says that is there.
    async fn affinity_of(&self, paths: &[&str]) -> NodeResult<Affinity> {
        for path in paths {
            if let Some(stat) = self.stat(path).await? {
                return Ok(Affinity { class: stat.class, location: stat.location });
            }
        }
        Ok(Affinity::default())
    }

    /// Writes a block of a node to the first of the workers that it is offered to that has room and is there.
    async fn send_block(self, path: String, bytes: Bytes, affinity: Affinity) -> NodeResult<BlockRef> {
        let class = affinity.class;
        let mut patience = Patience::new();
        loop {
            let mut refused = None;
            for worker in self.data_workers(&path, &affinity)? {
                if class == StorageClass::Dram
                    && let Some(block) = self.write_beside(&worker, &bytes).await
                {
                    return Ok(block);
                }
                let call = NodeCall { from: ROOT, moves: 0, path: "", op: NodeOp::BlockWrite { class }, number: None };
                let answered = self.reach(&worker, &call, vec![bytes.clone()]).await;
                let is_away = matches!(answered, Err(Failed::Unreached(_) | Failed::Broken(_)));
                let answered = answered.map_err(|failed| failed.into_error(worker.id));
                let error = match answered.and_then(|answer| block_of(&answer)) {
                    Ok(block) => return Ok(block),
                    Err(error) => error,
                };
                match error.kind {
                    NodeErrorKind::NoSpace => self.shared.full_workers.note(worker.id),
                    // It is being drained, or is gone.
                    NodeErrorKind::Moving | NodeErrorKind::DataLost => self.refresh().await,
                    NodeErrorKind::Retry if is_away => self.refresh().await,
                    // It has not heard of a token yet that others know, perhaps.
                    NodeErrorKind::Denied => {}
                    _ => return Err(error),
                }
                tracing::debug!(worker = %worker.id, %error, "block offered to another worker");
                // That one has no room says more than that another one is gone.
                if refused.is_none() || error.kind == NodeErrorKind::NoSpace {
                    refused = Some(error);
                }
            }
            let error = refused.ok_or_else(misfit)?;
            let goes_on = match error.kind {
                NodeErrorKind::NoSpace | NodeErrorKind::Denied => false,
                // None of them can be reached.
                NodeErrorKind::Retry => patience.wait_away().await,
                _ => patience.wait().await,
            };
            if !goes_on {
                return Err(error);
            }
        }
    }
}

impl NodeWriter {
    /// Adds bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> NodeResult<()> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            std::future::poll_fn(|cx| self.poll_room(cx)).await?;
            bytes = &bytes[self.take_in(bytes)..];
        }
        Ok(())
    }

    /// Adds bytes without copying those that make whole blocks.
    pub async fn write_bytes(&mut self, mut bytes: Bytes) -> NodeResult<()> {
        while self.buffer.is_empty() && bytes.len() >= BLOCK_BYTES as usize {
            std::future::poll_fn(|cx| self.poll_room(cx)).await?;
            let block = bytes.split_to(BLOCK_BYTES as usize);
            self.send(block);
        }
        self.write(&bytes).await
    }

    /// Everything is in the file when this returns.
    pub async fn flush(&mut self) -> NodeResult<()> {
        std::future::poll_fn(|cx| self.poll_drain(cx)).await
    }

    /// All whole blocks are in the file when this returns: what is left waits here for however long no more comes.
    pub(super) async fn settle(&mut self) -> NodeResult<()> {
        std::future::poll_fn(|cx| self.poll_settled(cx)).await
    }

    /// Flushes, and lets others write.
    pub async fn finish(mut self) -> NodeResult<u64> {
        self.flush().await?;
        self.nodes.call(&self.path, &NodeOp::CloseWriter { writer: self.writer }).await?.done()?;
        Ok(self.nodes.stat(&self.path).await?.map_or(0, |stat| stat.bytes))
    }

    fn take_in(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(BLOCK_BYTES as usize - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == BLOCK_BYTES as usize {
            let block = self.buffer.split().freeze();
            self.send(block);
        }
        assert!(self.buffer.len() < BLOCK_BYTES as usize, "{}: a full block is kept back", self.path);
        taken
    }

    fn send(&mut self, block: Bytes) {
        let (nodes, path) = (self.nodes.clone(), self.path.clone());
        self.begun.push_back(forebay_runtime::now());
        self.sending.push_back(nodes.send_block(path, block, self.affinity.clone()).boxed());
    }

    /// Ready when another block may be begun.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<NodeResult<()>> {
        self.poll_progress(cx)?;
        if self.sending.len() < BLOCKS_AHEAD && self.sent.len() < 2 * BLOCKS_ADDED { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<NodeResult<()>> {
        if !self.buffer.is_empty() {
            let rest = self.buffer.split().freeze();
            self.send(rest);
        }
        self.poll_settled(cx)
    }

    /// Ready when nothing is under way.
    fn poll_settled(&mut self, cx: &mut Context<'_>) -> Poll<NodeResult<()>> {
        loop {
            self.poll_progress(cx)?;
            if self.adding.is_none() && !self.sent.is_empty() && self.sending.is_empty() {
                self.add();
                continue;
            }
            return if self.sending.is_empty() && self.adding.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
    }

    /// Goes on with all that is under way. Blocks come into the file in the order in which they were written.
    fn poll_progress(&mut self, cx: &mut Context<'_>) -> NodeResult<()> {
        // Before anything goes on: nobody may have polled this for long.
        check_claim(&self.path, self.begun.front().copied(), "flush before long pauses")?;
        while let Poll::Ready(Some(block)) = self.sending.poll_next_unpin(cx) {
            self.sent.push(block?);
        }
        if let Some((blocks, adding)) = &mut self.adding
            && let Poll::Ready(added) = adding.poll_unpin(cx)
        {
            assert!(*blocks <= self.begun.len(), "{}: blocks are added that were not begun", self.path);
            self.begun.drain(..*blocks);
            self.adding = None;
            added?;
        }
        if self.adding.is_none() && (self.sent.len() >= BLOCKS_ADDED || self.has_waited()) {
            self.add();
            return self.poll_progress(cx);
        }
        Ok(())
    }

    /// Whether the first block that is to be added has waited for long. To be asked while none are being added.
    fn has_waited(&self) -> bool {
        !self.sent.is_empty() && self.begun.front().is_some_and(|begun| begun.elapsed() >= ADDED_AFTER)
    }

    fn add(&mut self) {
        assert!(self.adding.is_none(), "{}: blocks are added one message after the other", self.path);
        let (sending, sent) = (self.sending.len(), self.sent.len());
        assert!(self.begun.len() >= sending + sent, "{}: {sending} + {sent} blocks are under way", self.path);
        let (nodes, path, writer) = (self.nodes.clone(), self.path.clone(), self.writer);
        let blocks = std::mem::take(&mut self.sent);
        let count = blocks.len();
        let added = async move { nodes.call(&path, &NodeOp::AppendBlocks { writer, blocks }).await?.length() };
        self.adding = Some((count, added.boxed()));
    }
}

impl AsyncWrite for NodeWriter {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        match self.poll_room(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(io(error))),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(self.take_in(bytes))),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_drain(cx).map_err(io)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// `Retry` when blocks of which the oldest was begun then may be given back before a node has them.
pub(super) fn check_claim(path: &str, oldest: Option<Instant>, remedy: &str) -> NodeResult<()> {
    if oldest.is_none_or(|begun| begun.elapsed() <= CLAIMED_WITHIN) {
        return Ok(());
    }
    let secs = CLAIMED_WITHIN.as_secs();
    Err(NodeError::new(
        NodeErrorKind::Retry,
        format!("{path}: blocks were written more than {secs} s ago, and may have been given back: {remedy}"),
    ))
}

fn block_of(answer: &NodeAnswer) -> NodeResult<BlockRef> {
    if let NodeReply::Block(block) = answer.reply()? { Ok(block) } else { Err(misfit()) }
}

fn io(error: NodeError) -> std::io::Error {
    std::io::Error::other(Error::from(error))
}
