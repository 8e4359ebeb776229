//! The messages between Forebay's processes, and their bytes.
//!
//! Owns: [`DataRequest`]/[`DataReply`] (client to worker), [`PeerRequest`] (worker to worker), [`ControlCall`]/[`ControlReply`] (to
//! the coordinator, by who may say it), [`NodeCall`]/[`PeerCall`]/[`NodeReply`] (the temporary namespace, by clients and by workers), the frame header, and the encoding of messages
//! (postcard). The bytes are specified in `docs/specs/protocol.md`. Never does: sockets, which are `platform/transport`'s.

mod at_hand;
mod codec;
mod control;
mod data;
mod frame;
mod limits;
mod nodes;
mod placement;
mod range;
mod routes;

pub use at_hand::{AtHand, Handed};
pub use codec::{decode, encode};
pub use control::{
    AdminRequest, BudgetLease, ClusterStatus, ClusterView, ControlCall, ControlReply, ControlRequest, DrainReport, Heartbeat,
    MemberRequest, MountShare, MountStatus, Pin, TableDefinition, WorkerInfo, WorkerReport, WorkerState,
};
pub use data::{
    DataNotice, DataReply, DataRequest, DatasetId, Held, Hint, InPlaceCount, ListPage, PEER_MESSAGE, PeerRequest, PutCondition,
    ShardState, Span, StorageCounters,
};
pub use frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, META_BYTES_MAX, PAYLOAD_BYTES_MAX, PROTOCOL_VERSION};
pub use limits::CHANGES_MAX;
pub use limits::{BLOCKS_MAX, PINS_MAX, RANGES_MAX, RUNS_MAX, SEGMENTS_MAX, VALUES_MAX};
pub use nodes::{NODE_MESSAGE, NODE_MESSAGE_VALUE_MAX, NODE_PEER_MESSAGE, NodeCall, NodeOp, NodeReply, PeerCall, PeerOp, Raw};
pub use placement::{Order, OrderEnd, PlacementStatus, SegmentStatus, SegmentUse, WindowReport};
pub use range::RangeSpec;
pub use routes::{Route, RouteTable, RoutesDelta};
