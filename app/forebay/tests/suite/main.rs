//! The built binary, run as users run it: real processes, a real S3 server, files on disk.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod cluster;
mod commands;
mod config;
mod distributed;
mod drain;
mod errors;
mod full_disk;
mod gateway;
mod losses;
mod mixapart;
mod nodes;
mod observed;
mod placement;
mod roles;
mod shard;
mod sql;
mod support;
mod tutorial;
