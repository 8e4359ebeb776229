//! When bytes are brought, and how much of shared storage's bandwidth each of those who bring them may take.
//!
//! Owns: the split of a bandwidth bound ([`share_bound`]) and the bounded window in which a plan is prefetched
//! ([`Window`]). Never does: I/O and clocks; callers say what was read and what is asked for.

mod share;
mod window;

pub use share::share_bound;
pub use window::{PlannedRange, UNIT_BYTES_MAX, Window};
