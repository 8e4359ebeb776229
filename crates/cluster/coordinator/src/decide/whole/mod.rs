//! What leaves the state whole where a decision fails in the middle, and what has one fail there in tests.

mod failpoint;
mod kept;

#[cfg(test)]
pub(crate) use failpoint::fail_at;
pub(super) use failpoint::failpoint;
pub(super) use kept::{Kept, Soft};
