use std::sync::Arc;

use forebay_block_store::BlockFill;
use forebay_nodes::StorageClass;
use forebay_protocol::{NodeCall, NodeOp, NodeReply};
use forebay_transport::{Place, Response};

use super::values::reply;
use crate::serving::Serving;

/// Where a block is received: in the tier, with no buffer between.
struct BlockPlace {
    serving: Arc<Serving>,
    number: u64,
    len: u32,
    /// None when it has come.
    fill: Option<BlockFill>,
}

/// A place for the payload of a call, when it is a block's bytes and there is room for them now.
pub(crate) fn place(serving: &Arc<Serving>, call: &NodeCall<'_>, payload_bytes: u32) -> Option<Box<dyn Place>> {
    let NodeOp::BlockWrite { class: StorageClass::Dram } = call.op else { return None };
    let (number, fill) = serving.nodes.place_block(payload_bytes)?;
    Some(Box::new(BlockPlace { serving: Arc::clone(serving), number, len: payload_bytes, fill: Some(fill) }))
}

impl Place for BlockPlace {
    fn memory(&mut self) -> &mut [u8] {
        self.fill.as_mut().map_or(&mut [], BlockFill::memory)
    }

    fn filled(mut self: Box<Self>) -> Response {
        let fill = self.fill.take().expect("filled once");
        reply(&NodeReply::Block(self.serving.nodes.keep_placed(self.number, self.len, fill)))
    }
}

impl Drop for BlockPlace {
    fn drop(&mut self) {
        if self.fill.take().is_some() {
            self.serving.nodes.give_up_placed(self.len);
        }
    }
}
