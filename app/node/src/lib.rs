//! What runs in one process of a cluster, put together once: for the binary, the Python package, benchmarks and tests.
//!
//! Owns: what the roles of a process share (where the coordinator is, what they show and admit, how freed memory is kept), where a
//! worker's parts lie in a folder, and the order in which they start and stop.
//!
//! Never does: the query engine, its scheduler and executors, HTTP and configuration, which are the binary's.
//!
//! Start with [`Node::lead`], or [`Node::join`] where the coordinator is another process's.

#![warn(unreachable_pub)]

mod arenas;
mod node;

pub use arenas::few_arenas;
pub use forebay_s3::{AccessRule, GatewaySettings};
pub use node::Node;
