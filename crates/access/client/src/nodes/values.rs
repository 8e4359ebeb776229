//! Values under names.

use bytes::Bytes;
use forebay_nodes::{NodeErrorKind, NodeResult};
use forebay_protocol::{NODE_MESSAGE_VALUE_MAX, NodeOp, NodeReply, Raw};

use super::Nodes;
use super::call::misfit;

/// Values that go to their worker in one message at most; longer ones go in blocks.
const PUT_BYTES_MAX: usize = 32 << 20;

impl Nodes {
    /// Puts a value: readers see the old one or the new one, whole.
    pub async fn put(&self, path: &str, value: impl Into<Bytes>) -> NodeResult<()> {
        let value = value.into();
        if value.len() <= NODE_MESSAGE_VALUE_MAX {
            self.call(path, &NodeOp::Put { value: Raw(&value) }, None).await?.length()?;
        } else if value.len() <= PUT_BYTES_MAX && !self.goes_in_place(path, value.len()) {
            self.call(path, &NodeOp::Put { value: Raw(&[]) }, Some(value)).await?.length()?;
        } else {
            let blocks = self.put_blocks(path, value).await?;
            self.call(path, &NodeOp::PutBlocks { blocks }, None).await?.length()?;
        }
        Ok(())
    }

    /// A key-value's value. Small ones take one round trip; so does one of up to 1 MiB beside its worker, where it lies.
    pub async fn get(&self, path: &str) -> NodeResult<Bytes> {
        match self.get_once(path).await {
            // Its blocks may have moved since they were looked up.
            Err(error) if error.kind == NodeErrorKind::DataLost => self.get_once(path).await,
            got => got,
        }
    }

    async fn get_once(&self, path: &str) -> NodeResult<Bytes> {
        let answer = self.call(path, &NodeOp::Get, None).await?;
        match answer.reply()? {
            NodeReply::Bytes(Raw(&[])) => Ok(answer.payload),
            NodeReply::Bytes(Raw(value)) => Ok(answer.meta.slice_ref(value)),
            NodeReply::InPlace { pin, span } => answer.in_place(pin, span),
            NodeReply::Extents { len, skip, blocks, tail, .. } => self.gather(len, skip, &blocks, tail.0).await,
            _ => Err(misfit()),
        }
    }
}
