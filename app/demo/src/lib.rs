//! A real S3 server in process, for the demo, and for tests and benchmarks.
//!
//! Owns: [`S3Server`], which speaks signed S3 over HTTP from a folder, with a bound on its bandwidth, a latency, counters
//! and faults on demand. Keys are byte-exact, every write has its ETag from the start, a GET reads one open file and
//! obeys `If-Match`.
//!
//! Never does: durability. Writes are atomic but not synced; this server stands in for a store, it isn't one.
//!
//! It runs on a thread of its own, so that what it does is neither scheduled with nor blocked by what is tested.

mod bodies;
mod counters;
mod faults;
mod gate;
mod pace;
mod server;
mod service;
mod settings;
mod store;

pub use counters::S3Counters;
pub use faults::Fault;
pub use server::S3Server;
pub use settings::{ACCESS_KEY, S3Settings, SECRET_KEY};
