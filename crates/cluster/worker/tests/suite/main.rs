//! The worker against a real S3 server, a real coordinator and raw connections.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accesses;
mod bed;
mod by_hand;
mod cells;
mod cluster;
mod files;
mod fuzz;
mod in_place;
mod latest;
mod lists;
mod once;
mod partitions;
mod reads;
mod rights;
mod tiers;
mod versions;
mod waits;
mod writes;
