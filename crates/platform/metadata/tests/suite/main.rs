//! One conformance suite for both databases, then what is particular to each.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod fuzz;
mod postgres;
mod postgres_server;
mod sqlite;
