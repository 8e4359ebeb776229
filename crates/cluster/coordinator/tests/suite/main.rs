//! The coordinator over real connections and real databases.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod leadership;
mod members;
mod mounts;
#[path = "../../../../platform/metadata/tests/suite/postgres_server.rs"]
mod postgres_server;
mod restart;
mod security;
