//! What leaves a full tier next, and what is held there for who reads it soon.
//!
//! Owns: the policy of eviction ([`S3Fifo`]) with the uses that it spends ([`Uses`]), and the claims on what was brought ahead ([`Claims`]).
//! Never does: take anything out, hold a byte, or look at a clock; callers do that, the block store and the worker with memory and disks,
//! the model in `app/simulation` with counts and simulated time.
//!
//! The policy is from "FIFO queues are all you need for cache eviction" (SOSP'23).

#![warn(unreachable_pub)]

mod claims;
mod s3_fifo;
mod uses;

pub use claims::{Claims, HELD_MAX, HeldFor};
pub use s3_fifo::{S3Fifo, Verdict, fingerprint, marked};
pub use uses::Uses;
