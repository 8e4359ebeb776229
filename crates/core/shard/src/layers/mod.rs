//! Layers: what a shard can have beyond its base, to answer faster. Each is cut into slices that come and go singly.

pub(crate) mod build;
pub(crate) mod filling;
pub(crate) mod id;
mod pass;
pub(crate) mod plan;
pub(crate) mod set;
pub(crate) mod shape;
mod sink;
pub(crate) mod sliced;
pub(crate) mod texts;
mod write;
