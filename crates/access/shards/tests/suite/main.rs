//! Datasets of shards, served by workers over a real S3 server.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod acks;
mod answers;
mod bed;
mod bringing;
mod changes;
mod far;
mod garbage;
mod linearizable;
mod load;
mod losses;
mod moves;
mod refresh;
mod refused;
mod reshard;
