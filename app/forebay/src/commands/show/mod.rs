//! What a running cluster says of itself: its processes and mounts, its segments, and both again and again.

pub(super) mod explain;
#[cfg(feature = "cluster")]
pub(crate) mod jobs;
pub(super) mod segments;
pub(super) mod stat;
pub(super) mod status;
