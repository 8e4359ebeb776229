//! What the suites of several crates stand on.
//!
//! Owns: a small cluster in this process ([`TestCluster`]), who issues certificates and connects over TLS ([`Authority`]), what logs were
//! told ([`EventLog`]), the spans of this process ([`Spans`]), a network that can be cut ([`Proxy`]), and waiting ([`until`]). Never does:
//! anything that is released; what goes wrong here fails the test.
//!
//! Start with [`TestCluster::start`].

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]
#![warn(unreachable_pub)]

mod authority;
mod cluster;
mod events;
mod proxy;
mod spans;
mod waiting;

pub use authority::{Authority, Secured};
pub use cluster::{BUCKET, TestCluster, add_mount, bytes};
pub use events::{EventLog, Told};
pub use forebay_demo::Fault;
pub use proxy::Proxy;
pub use spans::{Spans, trace_id, traceparent};
pub use waiting::{until, until_asked};
