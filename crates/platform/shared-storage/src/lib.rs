//! The only door to shared storage: S3 and what speaks it, GCS, Azure, and directories (NFS among them).
//!
//! Owns: requests and their signatures, credentials, retries, byte-exact keys, the bandwidth bound and the counters of
//! one mount.
//!
//! Never does: caching, single flight, or anything else that remembers an object. Credentials never reach an error, a log
//! or a counter.
//!
//! Start with [`Storage::open`], then [`Storage::get`]: one request gives an object's version and its bytes.
//!
//! # The bandwidth bound
//!
//! [`Storage::set_share`] bounds what is *read from sockets*, headers and all, where the reading happens: a connection
//! that has no share of the bound left doesn't read, and TCP holds the sender back. Demand reads before prefetch. Bytes
//! that are sent (PUT) are counted, but not bounded.

#![warn(unreachable_pub)]

mod backend;
mod bandwidth;
mod body;
mod counters;
mod files;
mod forward;
mod http;
mod location;
mod objects;
mod request;
mod resume;
mod retry;
mod s3;
mod settings;
mod storage;
mod upload;

pub use body::Body;
pub use forward::{Forward, ForwardBody, Forwarded, PayloadHash, Place};
pub use request::{Class, Get, GetRange, ListPage, PutCondition};
pub use settings::{AccessKey, StorageSettings};
pub use storage::Storage;
pub use upload::Upload;
