//! The S3 way in: a bucket is a mount, a key is what stands below it, byte for byte.
//!
//! Owns: the HTTP server, signatures and access keys, the S3 dialect (conditions, ranges, listings, errors).
//!
//! Never does: keep bytes. Reads come from the tiers through the client, and go to the socket from where they are. What
//! only a store can do (writes, multipart uploads, metadata) is passed on to it under the mount's credentials, so that it
//! means there what it means here; writes are acknowledged when shared storage has them.
//!
//! The way of a request: `server`, `connection` -> `warm` (what is at hand is answered, and that is the end) -> `handle`: `auth`
//! (who asks), `route` (what is asked), `rights` (whether it may) -> `objects`, `buckets`, `forward`, or `temporary` for the bucket
//! of temporary data.
//!
//! The floors, from the ground up; each knows only those below it:
//! - `dialect` (S3's words), `settings`, `mounts`, `meters`;
//! - `auth` (who asks), then `audit`, `request` and `body` (what comes); `answer` (what goes), `drafts` (what waits to be whole);
//! - `context`, what all requests share, then `rights`, and with its proofs `store`, the door;
//! - `forward` and `temporary`, then `objects`, then `buckets`: what each request is answered with;
//! - `route` and `handle`, beside them `warm`; then `connection`, then `server`.
//!
//! Invariant: what reads or changes a mount takes a proof of `rights` that its caller may.
//!
//! Start with [`Gateway::start`].

mod answer;
mod audit;
mod auth;
mod body;
mod buckets;
mod connection;
mod context;
mod dialect;
mod drafts;
mod forward;
mod handle;
mod meters;
mod mounts;
mod objects;
mod request;
mod rights;
mod route;
mod server;
mod settings;
mod store;
mod temporary;
mod warm;

pub use server::{Gateway, Holding};
pub use settings::{AccessRule, Anonymous, GatewaySettings, NewBuckets, Secret};
