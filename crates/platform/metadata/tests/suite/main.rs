//! One conformance suite for both databases, then what is particular to each.

mod conformance;
mod postgres;
mod postgres_server;
mod sqlite;
