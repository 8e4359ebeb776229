//! What the tests stand on: a small cluster with a gateway, and a client that can be wrong.

pub mod client;
pub mod cluster;
pub mod fickle;
pub mod parrot;
