//! What a file or value was at one moment.

use std::ops::Range;

use bytes::Bytes;
use forebay_nodes::{BlockRef, INLINE_BYTES_MAX, NodeResult, tag};
use forebay_protocol::{NodeOp, NodeReply};

use super::call::misfit;
use super::{NodeReader, Nodes};

/// What a file or value was at one moment: what is read of it is never of two values. A block that has been given up since is
/// not found (`DataLost`).
pub struct NodeSnapshot {
    nodes: Nodes,
    len: u64,
    blocks: Vec<BlockRef>,
    tail: Bytes,
}

impl Nodes {
    /// Where the bytes of a file or value are now; small ones come along.
    pub async fn snapshot(&self, path: &str) -> NodeResult<NodeSnapshot> {
        let answer = self.call(path, &NodeOp::Extents { offset: 0, bytes: u64::MAX }).await?;
        let NodeReply::Extents { len, blocks, tail, .. } = answer.reply()? else { return Err(misfit()) };
        Ok(NodeSnapshot { nodes: self.clone(), len, blocks, tail: answer.meta.slice_ref(tail.0) })
    }
}

impl NodeSnapshot {
    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A number that is another one when the bytes are: [`NodeCondition::Tag`](crate::NodeCondition) names them by it.
    pub fn tag(&self) -> u128 {
        tag(&self.blocks, &self.tail, self.len)
    }

    /// A range of the bytes, which must be within [`Self::len`], read ahead.
    pub fn read(&self, range: Range<u64>) -> NodeResult<NodeReader> {
        assert!(range.start <= range.end && range.end <= self.len, "a range within the bytes");
        self.nodes.reader_of(&self.blocks, &self.tail, range)
    }
}

/// The [`NodeSnapshot::tag`] that a value will have, whoever puts it: only of values that lie with their metadata, since that of
/// others says where their bytes lie.
pub fn value_tag(value: &[u8]) -> Option<u128> {
    (value.len() <= INLINE_BYTES_MAX).then(|| tag(&[], value, value.len() as u64))
}
