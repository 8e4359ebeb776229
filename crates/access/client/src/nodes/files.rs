//! Bytes of files, by their offsets.

use bytes::Bytes;
use forebay_nodes::{CreateOptions, NodeError, NodeErrorKind, NodeResult, NodeType};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeOp, NodeReply, Raw};

use super::call::misfit;
use super::{NodePlace, Nodes};

/// Bytes that one message moves at most.
const PIECE_BYTES: usize = 16 << 20;

impl Nodes {
    /// Adds bytes to the end of a file; its new length. `Retry` while a writer has it.
    pub async fn append(&self, path: &str, bytes: impl Into<Bytes>) -> NodeResult<u64> {
        let mut bytes = bytes.into();
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            let (part, behind) = carried(&piece);
            let length = self.call_with(path, &NodeOp::Append { writer: 0, bytes: part }, behind).await?.length()?;
            if bytes.is_empty() {
                return Ok(length);
            }
        }
    }

    /// The same; with a place the file is made there when there is none, as [`Self::make_file`] does.
    pub async fn append_at(&self, path: &str, bytes: impl Into<Bytes>, place: &NodePlace) -> NodeResult<u64> {
        let bytes = bytes.into();
        if !place.is_open() {
            self.make_file(path, place).await?;
        }
        self.append(path, bytes).await
    }

    /// Makes a file where there is no node. One that is there stays where it lies: `Invalid` when it is of another class than is
    /// asked for.
    pub async fn make_file(&self, path: &str, place: &NodePlace) -> NodeResult<()> {
        let NodePlace { class, location } = place.clone();
        match self.create(path, CreateOptions { kind: NodeType::File, enumerable: true, class, location }).await {
            Err(error) if error.kind == NodeErrorKind::Exists => {}
            made => return made,
        }
        match (self.stat(path).await?, class) {
            (Some(stat), Some(class)) if stat.kind == NodeType::File && stat.class != class => {
                let (is, asked) = (stat.class.as_str(), class.as_str());
                let message =
                    format!("{path} is there, of the storage class {is}, and stays so: delete it first to have it {asked}");
                Err(NodeError::new(NodeErrorKind::Invalid, message))
            }
            _ => Ok(()),
        }
    }

    /// Writes over bytes of a file, and on at its end; its new length. `Invalid` behind the end: files have no holes.
    pub async fn write(&self, path: &str, mut offset: u64, bytes: impl Into<Bytes>) -> NodeResult<u64> {
        let mut bytes = bytes.into();
        loop {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            let (part, behind) = carried(&piece);
            let length = self.call_with(path, &NodeOp::Write { writer: 0, offset, bytes: part }, behind).await?.length()?;
            if bytes.is_empty() {
                return Ok(length);
            }
            offset += piece.len() as u64;
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
        let is_piece = bytes <= PIECE_BYTES as u64;
        let op = if is_piece { NodeOp::Read { offset, bytes: bytes as u32 } } else { NodeOp::Extents { offset, bytes } };
        let answer = self.call(path, &op).await?;
        match answer.reply()? {
            NodeReply::Bytes(_) if is_piece => Ok(answer.payload),
            NodeReply::Extents { len, skip, blocks, tail, .. } => {
                self.gather(bytes.min(len.checked_sub(offset).ok_or_else(misfit)?), skip, &blocks, tail.0).await
            }
            _ => Err(misfit()),
        }
    }
}

/// Bytes in a message where they are few, else behind it.
fn carried(piece: &Bytes) -> (Raw<'_>, Option<Bytes>) {
    if piece.len() <= NODE_MESSAGE_VALUE_MAX { (Raw(piece), None) } else { (Raw(&[]), Some(piece.clone())) }
}
