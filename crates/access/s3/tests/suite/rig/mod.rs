//! What the tests stand on: a small cluster with a gateway, a client that can be wrong, and a store that others wrote.

pub mod client;
pub mod cluster;
pub mod store;
