//! Frames on their way: batches and pools of buffers, one connection's two ends, what waits to go out, and the reader of what comes in.

pub(crate) mod batch;
pub(crate) mod buffers;
pub(crate) mod frame_reader;
pub(crate) mod link;
pub(crate) mod outbox;
pub(crate) mod turns;
