//! Blocks that are received where they stay.

use std::sync::Arc;

use forebay_block_store::BlockFill;
use forebay_nodes::{BlockRef, NodeError, NodeErrorKind, NodeResult, StorageClass};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, PeerCall, PeerOp, Span};
use forebay_transport::{Place, Response};
use forebay_types::Error;

use super::values::reply;
use super::{Brought, Nodes};
use crate::in_place::SessionPins;

/// Where a block comes to lie: in the tier, with no buffer between. Dropped before it is kept, there is no such block.
pub(crate) struct Placed {
    nodes: Arc<Nodes>,
    number: u64,
    len: u32,
    /// None when it has come.
    fill: Option<BlockFill>,
    /// Why a piece of it could not be written.
    failed: Option<Error>,
    who: Brought,
}

impl Placed {
    fn new(nodes: &Arc<Nodes>, len: u32, who: Brought) -> Option<Self> {
        let (number, fill) = nodes.place_block(len)?;
        Some(Self { nodes: Arc::clone(nodes), number, len, fill: Some(fill), failed: None, who })
    }

    /// All of it is there.
    fn keep(mut self) -> BlockRef {
        let fill = self.fill.take().expect("kept once");
        self.nodes.keep_placed(self.number, self.len, fill, self.who)
    }
}

impl Nodes {
    /// A place for the payload of a call, when it is a block's bytes and there is room for them now.
    pub(crate) fn place(self: &Arc<Self>, call: &NodeCall<'_>, payload_bytes: u32) -> Option<Box<dyn Place>> {
        let NodeOp::BlockWrite { class: StorageClass::Dram } = call.op else { return None };
        Some(Box::new(Placed::new(self, payload_bytes, Brought::ByClient)?))
    }

    /// The same for a call of another worker.
    pub(crate) fn place_of_peer(self: &Arc<Self>, call: &PeerCall<'_>, payload_bytes: u32) -> Option<Box<dyn Place>> {
        let PeerOp::BlockKeep { class: StorageClass::Dram } = call.op else { return None };
        Some(Box::new(Placed::new(self, payload_bytes, Brought::ByWorker)?))
    }

    /// A place for a block that a client writes by a descriptor of the tier.
    pub(super) fn prepare_block(
        self: &Arc<Self>,
        pins: Option<&SessionPins>,
        bytes: u32,
        descriptor: bool,
    ) -> NodeResult<Response> {
        let none = || NodeError::new(NodeErrorKind::Retry, "no block to write in place now: send it");
        let pins = pins.ok_or_else(none)?;
        let descriptor = if descriptor { Some(self.store.writable_arena().map_err(|_| none())?) } else { None };
        let placed = Placed::new(self, bytes, Brought::ByClient).ok_or_else(none)?;
        let offset = placed.fill.as_ref().map_or(0, BlockFill::arena_offset);
        let pin = pins.add_place(Box::new(placed)).map_err(|_| none())?;
        Ok(Response { descriptor, ..reply(&NodeReply::Place { pin, span: Span { offset, len: bytes.into() } }) })
    }

    /// A client has written the block of a place.
    pub(super) fn written(pins: Option<&SessionPins>, pin: u64) -> NodeResult<Response> {
        let placed = pins.and_then(|pins| pins.take_place(pin));
        let placed = placed.ok_or_else(|| NodeError::new(NodeErrorKind::Invalid, format!("{pin} is no place for a block")))?;
        Ok(placed.filled())
    }
}

impl Place for Placed {
    fn bytes(&self) -> usize {
        self.len as usize
    }

    fn memory(&mut self) -> Option<&mut [u8]> {
        let len = self.len as usize;
        self.fill.as_mut()?.memory().map(|memory| &mut memory[..len])
    }

    fn put(&mut self, piece: &[u8]) {
        if let (Some(fill), None) = (&mut self.fill, &self.failed) {
            self.failed = fill.write(piece).err();
        }
    }

    fn filled(self: Box<Self>) -> Response {
        reply(&match &self.failed {
            Some(error) => NodeReply::Failed(NodeError::new(NodeErrorKind::Retry, error.to_string())),
            None => NodeReply::Block(self.keep()),
        })
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if self.fill.take().is_some() {
            self.nodes.give_up_placed(self.len);
        }
    }
}
