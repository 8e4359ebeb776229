//! The way in for programs: path -> route -> bytes, and an [`object_store::ObjectStore`] on top of it.
//!
//! Owns: the view of the cluster, routing, connections to workers, reading a worker's DRAM tier in place, falling back
//! to other workers and at last to shared storage, prefetching for a plan, and writes through a worker.
//!
//! Never does: keep bytes of its own (the tiers are the only cache), decide who holds what, or store credentials.
//!
//! The rooms from the ground up: `in_place` (a worker's tier in this process's memory), `connect` (one question over one line),
//! `route` (who is asked), `read`, `write`, `prefetch`, `nodes` (temporary data), `shards`, `store` (`object_store` over `read`,
//! `write` and `nodes`). Each owns what it uses and knows only those below it; `client` puts them together, and nothing sees that.
//!
//! Start with [`Client::connect`], then [`Client::read`] for bytes of one object version, or [`Client::object_store`]
//! and [`Client::snapshot`] for engines.

mod client;
mod connect;
mod counters;
mod in_place;
mod nodes;
mod prefetch;
mod read;
mod route;
mod settings;
mod shards;
mod store;
mod write;

pub use client::Client;
pub use connect::Wait;
pub use counters::ClientCounters;
pub use in_place::host_id;
pub use nodes::{
    NODE_VALUE_BYTES_MAX, NodeBlock, NodeDraft, NodeEntry, NodeItem, NodePlace, NodeReader, NodeSnapshot, NodeWalk, NodeWriter,
    Nodes, node_etag, node_tag, value_tag,
};
pub use prefetch::{Loaded, Prefetch, ReadAt, SegmentPlace};
pub use read::{FarRows, FirstRead, ObjectRead, Planned, RowsQuestion};
pub use settings::ClientSettings;
pub use shards::{ShardCalls, ShardQueue, WantedRecords};
pub use store::{DraftStore, LiveStore, SnapshotStore};
pub use write::{Draft, Drafts, Writer};

pub use forebay_nodes::{
    Condition as NodeCondition, CreateOptions, Location, NodeError, NodeErrorKind, NodeResult, NodeType, Stat as NodeStat,
    StorageClass, Usage as NodeUsage,
};
pub use forebay_placement::{FAR_ASKED, FarColumn, FarPart, FarScan, far_share};
pub use forebay_protocol::{
    AdminRequest, AtHand, ClusterView, ControlCall, ControlReply, ControlRequest, DatasetId, Handed, Held, ListPage,
    MemberRequest, ORDERS_SINCE, PutCondition, RESHARD_SINCE, RangeSpec, ShardClaim, ShardState,
};
pub use forebay_transport::{Address, Admission, Credential, Security};
