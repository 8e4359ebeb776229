//! The messages between Forebay's processes, and their bytes.
//!
//! Owns: [`DataRequest`]/[`DataReply`] (client to worker), [`PeerRequest`] (worker to worker), [`ControlCall`]/[`ControlReply`] (to
//! the coordinator, by who may say it), [`NodeCall`]/[`PeerCall`]/[`NodeReply`] (the temporary namespace, by clients and by workers),
//! what the scheduler of distributed SQL says of its jobs, the frame header, the encoding of messages (postcard), and what of all this a
//! peer of the version before knows ([`Kind`], [`encode_for`]). The bytes are specified in `docs/specs/protocol.md`. Never does: sockets,
//! which are `platform/transport`'s.

mod at_hand;
mod codec;
mod control;
mod data;
mod frame;
mod jobs;
mod kinds;
mod limits;
mod nodes;
mod notice;
mod objects;
mod peer;
mod placement;
mod report;
mod routes;
mod rows;
mod shards;
mod tiers;
mod traced;
mod version;

pub use at_hand::{AtHand, Handed};
pub use codec::{decode, encode};
pub use control::{
    AdminRequest, AheadNeed, BudgetLease, ClusterStatus, ClusterView, ControlCall, ControlReply, ControlRequest, Heartbeat,
    MemberRequest, MountShare, MountStatus, Pin, TableDefinition, WorkerInfo, WorkerState,
};
pub use data::{DataReply, DataRequest};
pub use frame::{FRAME_HEADER_BYTES, FrameHeader, FrameKind, LEFT_BYTES, LEFT_MS_MAX, Left, META_BYTES_MAX, PAYLOAD_BYTES_MAX};
pub use jobs::{ExecutorNumbers, JobState, SchedulerNumbers, TaskState, TransferState};
pub use kinds::{node_reply_for, reply_for, request_for};
pub use limits::{
    ACCESSES_MAX, BLOCKS_MAX, CAME_BYTES_MAX, CHANGES_MAX, CLAIMS_MAX, KEPT_MAX, PINS_MAX, PLANS_MAX, RANGES_MAX, ROOTS_MAX,
    ROW_BYTES_MAX, ROW_COLUMNS_MAX, RUNS_MAX, SEGMENTS_MAX, VALUES_MAX,
};
pub use nodes::{
    NODE_MESSAGE, NODE_MESSAGE_VALUE_MAX, NODE_NUMBERED_MESSAGE, NODE_PEER_MESSAGE, NODE_VALUES_BYTES_MAX, NodeCall, NodeOp,
    NodeReply, PeerCall, PeerOp, Raw,
};
pub use notice::{DataNotice, InPlaceCount};
pub use objects::{DraftCall, ListPage, PutCondition, RangeSpec};
pub use peer::{Kept, PEER_MESSAGE, PeerRequest, Shared};
pub use placement::{
    AccessMade, AccessWay, Accesses, Filled, FilledBytes, FilledPart, Order, OrderEnd, PlacementStatus, SegmentStatus,
    SegmentUse, WantedAccesses, WindowReport,
};
pub use report::{About, DrainReport, ReadCounters, StorageCounters, Warning, WorkerReport};
pub use routes::{Route, RouteTable, RoutesDelta};
pub use rows::{SelectedRows, WantedRows};
pub use shards::{DatasetId, ShardClaim, ShardHeld, ShardState, WantedRecords};
pub use tiers::{Departed, Held, Hint, Span, TierDeed, TierOrder, VersionPart};
pub use traced::{TRACED_MESSAGE, TraceContext, TraceParent};
pub use version::{
    CAME_SINCE, CLAIMS_SINCE, Kind, LEFT_SINCE, ONCE_SINCE, ORDERS_SINCE, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST,
    RESHARD_SINCE, ROWS_SINCE, Spoken, TRACED_SINCE, YOUNG_SINCE, check_known, decode_from, encode_for, read_since, speaking,
    write_since,
};

/// All kinds of a request by name, as `REQUEST::VARIANTS`: for who has to have tried each.
pub use strum::VariantNames;
