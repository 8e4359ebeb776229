//! One conformance suite for the databases, then what is particular to each.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conformance;
mod fuzz;
mod memory;
mod postgres;
mod sqlite;
