//! The coordinator over real connections and real databases.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod leadership;
mod members;
mod mounts;
mod restart;
mod security;
