//! The engine over stores in memory, and over a cluster in this process with a real S3 server.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod albis;
mod cluster;
mod formats;
mod hot;
mod keys;
mod output;
mod prefetch;
mod reach;
mod rules;
mod same_names;
mod shards;
mod statements;
mod stores;
mod support;
mod tables;
mod tpch;
mod zones;
