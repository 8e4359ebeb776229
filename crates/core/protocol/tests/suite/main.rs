//! Messages and frame headers: what is read is what was written, what is no message is refused, and the bytes are
//! those of docs/specs/protocol.md.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod frames;
mod golden;
mod messages;
mod nodes;
mod samples;
mod versions;
