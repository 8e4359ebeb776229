//! The worker: serves, fills, counts, reports.
//!
//! Owns: the answers to every [`forebay_protocol::DataRequest`], the fetching of missing pages (once for everyone who
//! waits), the caches of versions and listings with the mounts' rules, the uploads and pins of its connections, the
//! counters of what was read, and the carrying out of orders: which replicas to hold, from which peer, and which to drop. It keeps its place in the cluster by a heartbeat each second and goes on with its last view
//! while the coordinator is away, and takes less of a bound once its lease is over.
//!
//! Never does: decide about mounts, placement or bandwidth, which is the coordinator's; touch shared storage, tiers or
//! sockets other than through `platform`. An error of a tier is a miss here, never a failed read.
//!
//! Temporary nodes (`nodes`) are the one thing that a worker has authority over: names and bytes go with it.
//!
//! The way of a read: `session` (a request arrives) -> `read` (is it in DRAM?) -> `origin` (what is missing, from where, and who
//! fetches it already?) -> one request to shared storage. Rooms from the ground up: `signals`, `cluster`, `origin`, `catalogue`,
//! `read`, `write`, `forms`, `replicas`, `nodes`; `rooms` puts them together, and only `session` and `process` see that.
//!
//! Start with [`Worker::start`].

mod background;
mod bounded;
mod catalogue;
mod cluster;
mod forms;
mod in_place;
mod landing;
mod nodes;
mod origin;
mod process;
mod read;
mod replicas;
mod rooms;
mod segment;
mod session;
mod settings;
mod shards;
mod signals;
mod single_flight;
mod versions;
mod write;

pub use process::Worker;
pub use settings::{Tuning, WorkerSettings};
