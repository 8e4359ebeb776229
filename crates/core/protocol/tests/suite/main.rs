//! Messages and frame headers: what is read is what was written, what is no message is refused, and the bytes are
//! those of docs/specs/protocol.md.

mod frames;
mod golden;
mod messages;
mod samples;
