//! The S3 way in: a bucket is a mount, a key is what stands below it, byte for byte.
//!
//! Owns: the HTTP server, signatures and access keys, the S3 dialect (conditions, ranges, listings, errors).
//!
//! Never does: keep bytes. Reads come from the tiers through the client, and go to the socket from where they are. What
//! only a store can do (writes, multipart uploads, metadata) is passed on to it under the mount's credentials, so that it
//! means there what it means here; writes are acknowledged when shared storage has them.
//!
//! The way of a request: `server`, `connection` -> `warm` (what is at hand is answered, and that is the end) -> `target` (bucket and key) -> `auth` (who asks) -> `route` (what is
//! asked) -> `rights` (whether it may) -> `objects`, `buckets`, `forward`, or `temporary` for the bucket of temporary data.
//!
//! Invariant: what reads or changes a mount takes a proof of `rights` that its caller may.
//!
//! Start with [`Gateway::start`].

mod audit;
mod auth;
mod body;
mod buckets;
mod connection;
mod context;
mod date;
mod error;
mod forward;
mod headers;
mod meters;
mod objects;
mod rights;
mod route;
mod server;
mod settings;
mod stall;
mod store;
mod subresource;
mod target;
mod temporary;
mod warm;
mod xml;

pub use server::Gateway;
pub use settings::{AccessRule, Anonymous, GatewaySettings, NewBuckets, Secret};
