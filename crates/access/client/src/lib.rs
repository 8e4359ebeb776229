//! The way in for programs: path -> route -> bytes, and an [`object_store::ObjectStore`] on top of it.
//!
//! Owns: the view of the cluster, routing, connections to workers, reading a worker's DRAM tier in place, falling back
//! to other workers and at last to shared storage, prefetching for a plan, and writes through a worker.
//! Never does: keep bytes of its own (the tiers are the only cache), decide who holds what, or store credentials.
//!
//! Start with [`Client::connect`], then [`Client::read`] for bytes of one object version, or [`Client::object_store`]
//! and [`Client::snapshot`] for engines.

mod ask;
mod at_hand;
mod attempt;
mod bring;
mod cells;
mod client;
mod connections;
mod control;
mod core;
mod counters;
mod fallback;
mod holders;
mod host;
mod in_place;
mod list;
mod load;
mod nodes;
mod object;
mod open;
mod parts;
mod patience;
mod prefetch;
mod queues;
mod read;
mod read_latest;
mod route;
mod segments;
mod settings;
mod slot;
mod store;
mod told;
mod view;
mod wait;
mod write;
mod writer;

pub use bring::ReadAt;
pub use client::Client;
pub use counters::ClientCounters;
pub use host::host_id;
pub use load::Loaded;
pub use nodes::{NodeBlock, NodeEntry, NodeReader, NodeSnapshot, NodeWriter, Nodes, value_tag};
pub use object::{FirstRead, ObjectRead};
pub use prefetch::Prefetch;
pub use settings::ClientSettings;
pub use store::{LiveStore, SnapshotStore, from_store_error, to_store_error};
pub use wait::Wait;
pub use writer::Writer;

pub use forebay_nodes::{
    Condition as NodeCondition, CreateOptions, Location, NodeError, NodeErrorKind, NodeResult, NodeType, Stat as NodeStat,
    StorageClass,
};
pub use forebay_protocol::{
    AdminRequest, AtHand, ClusterView, ControlCall, ControlReply, ControlRequest, Handed, Held, ListPage, MemberRequest,
    PutCondition, RangeSpec,
};
pub use forebay_transport::{Address, Admission, Credential, Security};
