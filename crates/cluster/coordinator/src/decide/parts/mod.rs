//! What the state has of each worker: that it is a member, what it has heard of changes, and its targets of each bound.

mod hearing;
mod members;
mod targets;

pub(super) use hearing::{Hearing, Losses, Settling};
pub(super) use members::{MEMBERS_MAX, Member, Members};
pub(super) use targets::Targets;
