//! How much one call does at most, however large jobs and fleet are.

/// Tasks that a call takes in, and lets go, at most; a job of more is taken in and let go by several.
pub(super) const STEP_TASKS: usize = 64;
/// Tasks that a call starts at most.
pub(super) const STEP_STARTS: usize = 64;
/// Jobs, busiest workers and tasks of a job that are looked at, at most, for a task to take from elsewhere.
pub(super) const LOOK_MAX: usize = 64;
