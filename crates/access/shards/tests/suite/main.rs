//! Datasets of shards, served by workers over a real S3 server.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod answers;
mod bed;
mod bringing;
mod changing;
mod far;
mod garbage;
mod load;
mod losses;
mod moves;
mod ranges;
mod refused;
