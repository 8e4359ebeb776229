//! How a server is set up, with one fixed pair of keys that any client can be given.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The access key that the server knows.
pub const ACCESS_KEY: &str = "testkey";
/// The secret that goes with [`ACCESS_KEY`].
pub const SECRET_KEY: &str = "testsecret";

/// How a [`crate::S3Server`] is set up.
#[derive(Clone, Debug)]
pub struct S3Settings {
    /// Where objects are kept, in a form of the server's own; an empty path is a temporary folder that goes with the server.
    pub folder: PathBuf,
    /// What is written is kept in memory alone, and is gone with the server.
    pub in_memory: bool,
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// Bytes a second over all connections together, each way; none when not set.
    pub bandwidth: Option<u64>,
    /// Time before a request is looked at.
    pub latency: Duration,
    /// Buckets that are there from the start.
    pub buckets: Vec<String>,
    /// Requests without a signature are let in; wrong signatures never are.
    pub anonymous: bool,
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            folder: PathBuf::new(),
            in_memory: false,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            bandwidth: None,
            latency: Duration::ZERO,
            buckets: Vec::new(),
            anonymous: false,
        }
    }
}
