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
//! The way of a read: `session` (a request arrives) -> `read` (is it in DRAM?) -> `obtain` (what is missing, and from
//! where) -> `fill` (who fetches it already?) -> `transfer` (one request to shared storage).
//!
//! Start with [`Worker::start`].

mod at_hand;
mod busy;
mod changes;
mod count;
#[cfg(test)]
mod damage;
mod discover;
mod fill;
mod flight;
mod forms;
mod fresh;
mod garbage;
mod gate;
mod hearing;
mod identity;
mod in_place;
mod latest;
mod listings;
mod membership;
mod metrics;
mod mounts;
mod news;
mod nodes;
mod object;
mod obtain;
mod pace;
mod peers;
mod pins;
mod prefetch;
mod read;
mod replicas;
mod scrub;
mod segment;
mod serving;
mod session;
mod settings;
mod start;
mod told;
mod transfer;
mod uploads;
mod versions;
mod write;

pub use settings::{Tuning, WorkerSettings};
pub use start::Worker;
