//! Bytes of files, by their offsets.

use bytes::Bytes;
use forebay_nodes::{NodeErrorKind, NodeResult};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeOp, NodeReply, Raw};

use super::Nodes;
use super::call::misfit;

/// Bytes that one message moves at most.
const PIECE_BYTES: usize = 16 << 20;

impl Nodes {
    /// Adds bytes to the end of a file; its new length. `Retry` while a writer has it.
    pub async fn append(&self, path: &str, bytes: impl Into<Bytes>) -> NodeResult<u64> {
        let mut bytes = bytes.into();
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            let length = if piece.len() <= NODE_MESSAGE_VALUE_MAX {
                self.call(path, &NodeOp::Append { writer: 0, bytes: Raw(&piece) }, None).await?.length()?
            } else {
                self.call(path, &NodeOp::Append { writer: 0, bytes: Raw(&[]) }, Some(piece)).await?.length()?
            };
            if bytes.is_empty() {
                return Ok(length);
            }
        }
    }

    /// Writes over bytes of a file, and on at its end; its new length. `Invalid` behind the end: files have no holes.
    pub async fn write(&self, path: &str, mut offset: u64, bytes: impl Into<Bytes>) -> NodeResult<u64> {
        let mut bytes = bytes.into();
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            let len = piece.len();
            let (raw, payload) = if len <= NODE_MESSAGE_VALUE_MAX { (&piece[..], None) } else { (&[][..], Some(piece.clone())) };
            let length = self.call(path, &NodeOp::Write { writer: 0, offset, bytes: Raw(raw) }, payload).await?.length()?;
            if bytes.is_empty() {
                return Ok(length);
            }
            offset += len as u64;
        }
    }

    /// Bytes of a file; fewer at its end, `Invalid` behind it.
    pub async fn read(&self, path: &str, offset: u64, bytes: u64) -> NodeResult<Bytes> {
        match self.read_once(path, offset, bytes).await {
            // Its blocks may have moved since they were looked up.
            Err(error) if error.kind == NodeErrorKind::DataLost => self.read_once(path, offset, bytes).await,
            read => read,
        }
    }

    async fn read_once(&self, path: &str, offset: u64, bytes: u64) -> NodeResult<Bytes> {
        if bytes > PIECE_BYTES as u64 {
            let answer = self.call(path, &NodeOp::Extents { offset, bytes }, None).await?;
            return match answer.reply()? {
                NodeReply::Extents { len, skip, blocks, tail, .. } => {
                    self.gather(bytes.min(len - offset), skip, &blocks, tail.0).await
                }
                _ => Err(misfit()),
            };
        }
        let answer = self.call(path, &NodeOp::Read { offset, bytes: bytes as u32 }, None).await?;
        match answer.reply()? {
            NodeReply::Bytes(_) => Ok(answer.payload),
            NodeReply::Extents { len, skip, blocks, tail, .. } => {
                self.gather(bytes.min(len - offset), skip, &blocks, tail.0).await
            }
            _ => Err(misfit()),
        }
    }
}
