//! Reading files and bags ahead.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use forebay_nodes::{BlockRef, NodeError, NodeErrorKind, NodeResult, NodeType};
use forebay_protocol::{NodeOp, NodeReply};
use forebay_types::Error;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::io::{AsyncRead, ReadBuf};

use super::Nodes;
use super::call::misfit;

/// Blocks on their way to a reader.
const BLOCKS_AHEAD: usize = 8;
/// Files of a bag whose places are looked up ahead, and blocks of them on their way.
const FILES_AHEAD: usize = 16;
const BAG_BLOCKS_AHEAD: usize = 32;
/// Memory for so much of a value is there before its bytes come: what a worker only tells of takes none beyond that.
const RESERVED_BYTES_MAX: u64 = 1 << 30;
/// Places of so many bytes are looked up at once.
const WINDOW_BYTES: u64 = 1 << 30;

/// Bytes of a file or a bag, in order, read ahead. A stream of them, and tokio's `AsyncRead`.
pub struct NodeReader {
    pieces: BoxStream<'static, NodeResult<Bytes>>,
    current: Bytes,
}

/// A piece of what is read: in a block, or at hand.
pub(super) enum Piece {
    /// With its first byte in the block, its bytes, and what is known of the file.
    Block(BlockRef, u32, u32, Option<Spot>),
    Here(Bytes),
}

/// Places of a part of a file.
struct Window {
    serial: u64,
    pieces: Vec<Piece>,
    /// Where to look on.
    next: Option<u64>,
}

/// Which bytes of which file a piece is: a block that moved to another worker meanwhile is found by it.
pub(super) struct Spot {
    path: Arc<str>,
    serial: u64,
    offset: u64,
}

impl Nodes {
    /// Reads a file from `offset` on to the end that it has now. `Invalid` behind it.
    pub async fn reader(&self, path: &str, offset: u64) -> NodeResult<NodeReader> {
        let first = self.places(path, offset).await?;
        let (nodes, path) = (self.clone(), path.to_string());
        let windows = futures::stream::try_unfold(Some(first), move |state| {
            let (nodes, path) = (nodes.clone(), path.clone());
            async move {
                let Some(Window { serial, pieces, next }) = state else { return Ok::<_, NodeError>(None) };
                let next = if let Some(offset) = next { Some(nodes.places_on(&path, offset, serial).await?) } else { None };
                Ok(Some((pieces, next)))
            }
        });
        Ok(NodeReader::new(
            self.fetch(windows.map_ok(|pieces| futures::stream::iter(pieces).map(Ok)).try_flatten(), BLOCKS_AHEAD),
        ))
    }

    /// Reads all files of a bag as one stream, in byte order of their names, those of bags in it where these stand.
    pub async fn bag(&self, path: &str) -> NodeResult<NodeReader> {
        match self.stat(path).await? {
            None => {
                // A name on the way may be that of a file or value.
                let missed = self.call(path, &NodeOp::List { after: None, limit: 1 }).await.err();
                let message = || format!("{path}: there is no such node");
                return Err(missed.unwrap_or_else(|| NodeError::new(NodeErrorKind::NotFound, message())));
            }
            Some(stat) if stat.kind != NodeType::Bag => {
                return Err(NodeError::new(NodeErrorKind::WrongType, format!("{path} is a {}, not a bag", stat.kind)));
            }
            Some(_) => {}
        }
        let nodes = self.clone();
        let places = self.files(path.to_string()).map_ok(move |file| {
            let nodes = nodes.clone();
            async move {
                match nodes.places_all(&file).await {
                    // Deleted since it was listed.
                    Err(error) if error.kind == NodeErrorKind::NotFound => Ok(Vec::new()),
                    places => places,
                }
            }
        });
        let pieces = places.try_buffered(FILES_AHEAD).map_ok(|pieces| futures::stream::iter(pieces).map(Ok)).try_flatten();
        Ok(NodeReader::new(self.fetch(pieces, BAG_BLOCKS_AHEAD)))
    }

    /// The paths of a bag's files.
    fn files(&self, bag: String) -> BoxStream<'static, NodeResult<String>> {
        let nodes = self.clone();
        self.enumerate(&bag)
            .map_ok(move |page| {
                let (nodes, bag) = (nodes.clone(), bag.clone());
                futures::stream::iter(page).map(Ok::<_, NodeError>).and_then(move |entry| {
                    let path = format!("{bag}/{}", entry.name);
                    let files = match entry.kind {
                        NodeType::Bag => nodes.files(path),
                        _ => futures::stream::once(async move { Ok(path) }).boxed(),
                    };
                    async move { Ok(files) }
                })
            })
            .try_flatten()
            .try_flatten()
            .boxed()
    }

    /// A part of a file's or value's bytes, of which it is known where they are.
    pub(super) fn reader_of(&self, blocks: &[BlockRef], tail: &Bytes, range: Range<u64>) -> NodeResult<NodeReader> {
        let (mut skip, mut left) = (range.start, range.end - range.start);
        let mut found = Vec::new();
        for block in blocks {
            let len = u64::from(block.len);
            if skip >= len {
                skip -= len;
                continue;
            }
            let part = (len - skip).min(left);
            if part > 0 {
                found.push(Piece::Block(*block, skip as u32, part as u32, None));
            }
            (skip, left) = (0, left - part);
        }
        if left > 0 {
            let end = skip.checked_add(left).filter(|end| *end <= tail.len() as u64).ok_or_else(misfit)?;
            found.push(Piece::Here(tail.slice(skip as usize..end as usize)));
        }
        Ok(NodeReader::new(self.fetch(futures::stream::iter(found).map(Ok), BLOCKS_AHEAD)))
    }

    fn fetch(
        &self,
        pieces: impl Stream<Item = NodeResult<Piece>> + Send + 'static,
        ahead: usize,
    ) -> BoxStream<'static, NodeResult<Bytes>> {
        let nodes = self.clone();
        let fetched = pieces.map_ok(move |piece| {
            let nodes = nodes.clone();
            async move { nodes.piece(piece).await }
        });
        fetched.try_buffered(ahead).boxed()
    }

    /// The bytes of a piece, from wherever they are.
    pub(super) async fn piece(&self, piece: Piece) -> NodeResult<Bytes> {
        match piece {
            Piece::Here(bytes) => Ok(bytes),
            Piece::Block(block, start, bytes, spot) => match (self.ask_block(block, start, bytes).await, spot) {
                (Err(lost), Some(spot)) if lost.kind == NodeErrorKind::DataLost => {
                    self.look_again(block, &spot, bytes, lost).await
                }
                (read, _) => read,
            },
        }
    }

    pub(super) async fn places_all(&self, path: &str) -> NodeResult<Vec<Piece>> {
        let Window { serial, pieces: mut all, mut next } = self.places(path, 0).await?;
        while let Some(offset) = next {
            let window = self.places_on(path, offset, serial).await?;
            all.extend(window.pieces);
            next = window.next;
        }
        Ok(all)
    }

    /// Where bytes of a file are further on, of which it is known which one it was before.
    async fn places_on(&self, path: &str, offset: u64, serial: u64) -> NodeResult<Window> {
        match self.places(path, offset).await {
            Ok(window) if window.serial == serial => Ok(window),
            Err(error) if error.kind != NodeErrorKind::Invalid => Err(error),
            // It is another one, or does not even reach there.
            _ => Err(NodeError::new(NodeErrorKind::DataLost, format!("{path}: it was replaced while it was read"))),
        }
    }

    /// Where bytes of a file from `offset` on are.
    async fn places(&self, path: &str, offset: u64) -> NodeResult<Window> {
        let answer = self.call(path, &NodeOp::Extents { offset, bytes: WINDOW_BYTES }).await?;
        let NodeReply::Extents { serial, len, skip, blocks, tail } = answer.reply()? else { return Err(misfit()) };
        let end = len.min(offset.saturating_add(WINDOW_BYTES));
        let mut pieces = pieces(end.checked_sub(offset).ok_or_else(misfit)?, tail.0, skip, &blocks)?;
        let (path, mut at): (Arc<str>, u64) = (path.into(), offset);
        for piece in &mut pieces {
            if let Piece::Block(_, _, bytes, spot) = piece {
                *spot = Some(Spot { path: Arc::clone(&path), serial, offset: at });
                at += u64::from(*bytes);
            }
        }
        if !tail.0.is_empty() {
            pieces.push(Piece::Here(answer.meta.slice_ref(tail.0)));
        }
        Ok(Window { serial, pieces, next: (end < len).then_some(end) })
    }

    /// A piece of a file whose block is not there any more: from where it is now, when it is still that file.
    async fn look_again(&self, block: BlockRef, spot: &Spot, bytes: u32, lost: NodeError) -> NodeResult<Bytes> {
        let op = NodeOp::Extents { offset: spot.offset, bytes: bytes.into() };
        let answer = match self.call(&spot.path, &op).await {
            // There is none any more, or a shorter one.
            Err(error) if matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::Invalid) => return Err(lost),
            answer => answer?,
        };
        let NodeReply::Extents { serial, skip, blocks, tail, .. } = answer.reply()? else { return Err(misfit()) };
        if serial != spot.serial || blocks.contains(&block) {
            return Err(lost);
        }
        let mut all = BytesMut::with_capacity(bytes as usize);
        for piece in pieces(bytes.into(), tail.0, skip, &blocks)? {
            if let Piece::Block(block, start, bytes, _) = piece {
                all.extend_from_slice(&self.ask_block(block, start, bytes).await?);
            }
        }
        all.extend_from_slice(tail.0);
        Ok(all.freeze())
    }

    /// All bytes of these blocks and the tail, the first `skip` left out.
    pub(super) async fn gather(&self, len: u64, skip: u64, blocks: &[BlockRef], tail: &[u8]) -> NodeResult<Bytes> {
        let pieces = pieces(len, tail, skip, blocks)?;
        let mut fetched = self.fetch(futures::stream::iter(pieces).map(Ok), BLOCKS_AHEAD);
        let mut all = BytesMut::with_capacity(len.min(RESERVED_BYTES_MAX) as usize);
        while let Some(bytes) = fetched.try_next().await? {
            all.extend_from_slice(&bytes);
        }
        all.extend_from_slice(tail);
        Ok(all.freeze())
    }
}

/// Of `bytes` that a worker tells of, those before the tail: they are in these blocks, the first `skip` left out.
fn pieces(bytes: u64, tail: &[u8], skip: u64, blocks: &[BlockRef]) -> NodeResult<Vec<Piece>> {
    let (mut skip, mut left) = (skip, bytes.checked_sub(tail.len() as u64).ok_or_else(misfit)?);
    let mut pieces = Vec::with_capacity(blocks.len());
    for block in blocks {
        let part = u64::from(block.len).checked_sub(skip).ok_or_else(misfit)?.min(left);
        if part > 0 {
            pieces.push(Piece::Block(*block, skip as u32, part as u32, None));
        }
        (skip, left) = (0, left - part);
    }
    if left > 0 { Err(misfit()) } else { Ok(pieces) }
}

impl NodeReader {
    fn new(pieces: BoxStream<'static, NodeResult<Bytes>>) -> Self {
        Self { pieces, current: Bytes::new() }
    }

    /// The next bytes, as they come; none at the end.
    pub async fn next(&mut self) -> NodeResult<Option<Bytes>> {
        if !self.current.is_empty() {
            return Ok(Some(std::mem::take(&mut self.current)));
        }
        self.pieces.try_next().await
    }

    /// All that is left.
    pub async fn read_all(&mut self) -> NodeResult<Bytes> {
        let mut all = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all.freeze())
    }
}

impl Stream for NodeReader {
    type Item = NodeResult<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if !self.current.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.current))));
        }
        self.pieces.poll_next_unpin(cx)
    }
}

impl AsyncRead for NodeReader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        while self.current.is_empty() {
            match self.pieces.poll_next_unpin(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(std::io::Error::other(Error::from(error)))),
                Poll::Ready(Some(Ok(bytes))) => self.current = bytes,
            }
        }
        let bytes = self.current.len().min(into.remaining());
        into.put_slice(&self.current[..bytes]);
        self.current.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_not_that_of_the_bytes_is_a_misfit() {
        let block = BlockRef { worker: 1, number: 1, len: 10 };
        let found = |bytes: u64, tail: &[u8], skip: u64, blocks: &[BlockRef]| {
            pieces(bytes, tail, skip, blocks).ok().map(|pieces| pieces.len())
        };
        assert_eq!(
            (found(0, b"", 0, &[]), found(14, b"tail", 0, &[block]), found(7, b"tail", 7, &[block])),
            (Some(0), Some(1), Some(1))
        );
        assert_eq!(found(3, b"tail", 0, &[]), None, "it ends within the tail");
        assert_eq!(found(15, b"tail", 0, &[block]), None, "there are fewer");
        assert_eq!(found(1, b"", 11, &[block]), None, "the first one is left out");
    }
}
