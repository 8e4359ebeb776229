//! The table of rights for temporary nodes: what clients ask, and what workers ask each other.

use forebay_protocol::{NodeOp, PeerOp};

use crate::{Need, Place};

/// What a client's request about temporary nodes needs.
pub fn node(op: &NodeOp<'_>) -> Need {
    match op {
        NodeOp::Get
        | NodeOp::GetMany { .. }
        | NodeOp::Stat
        | NodeOp::Usage
        | NodeOp::List { .. }
        | NodeOp::Read { .. }
        | NodeOp::Extents { .. }
        | NodeOp::Parent
        | NodeOp::BlockRead { .. } => Need::read(Place::Temporary),
        NodeOp::Put { .. }
        | NodeOp::PutMany { .. }
        | NodeOp::PutBlocks { .. }
        | NodeOp::Create { .. }
        | NodeOp::Append { .. }
        | NodeOp::AppendBlocks { .. }
        | NodeOp::Write { .. }
        | NodeOp::Delete { .. }
        | NodeOp::DeleteIf { .. }
        | NodeOp::Replace { .. }
        | NodeOp::Rename { .. }
        | NodeOp::OpenWriter { .. }
        | NodeOp::CloseWriter { .. }
        | NodeOp::Lease { .. }
        | NodeOp::SetQuota { .. }
        | NodeOp::WasDone { .. }
        | NodeOp::BlockWrite { .. }
        | NodeOp::Written { .. } => Need::write(Place::Temporary),
        // Hands over the memory that holds every mount's data, for writing.
        NodeOp::Prepare { descriptor: true, .. } => Need::write(Place::Everything),
        NodeOp::Prepare { descriptor: false, .. } => Need::write(Place::Temporary),
    }
}

/// What a worker's request to another one about temporary nodes needs.
pub fn node_peer(op: &PeerOp<'_>) -> Need {
    match op {
        PeerOp::BlockFree { .. }
        | PeerOp::BlockUnknown { .. }
        | PeerOp::Adopt { .. }
        | PeerOp::RemoveNodes { .. }
        | PeerOp::Reparent { .. }
        | PeerOp::Arrive { .. }
        | PeerOp::Settle { .. }
        | PeerOp::Outcome { .. }
        | PeerOp::Moved
        | PeerOp::Room
        | PeerOp::TakeOver { .. }
        | PeerOp::TakeOverNodes
        | PeerOp::TakeOverEnd
        | PeerOp::TakeOverDrop
        | PeerOp::TookOver { .. }
        | PeerOp::Relink { .. }
        | PeerOp::BlocksOf { .. }
        | PeerOp::BlocksMoved { .. }
        | PeerOp::BlockKeep { .. }
        | PeerOp::BlockClaim { .. }
        | PeerOp::BlockUnclaim { .. }
        | PeerOp::Nameless { .. }
        | PeerOp::Missing { .. }
        | PeerOp::WayUp { .. } => Need::serve(),
    }
}
