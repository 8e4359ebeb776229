//! Renames and drains that stop between two steps, calls whose answers are lost, and calls beside others.
//!
//! Owns: tests that take the steps of `rename`, `handover` and `fence` one by one, with workers that are killed after any of them.
//!
//! Never does: anything that is shipped; what clients see of the same is in the client's suite.
//!
//! Start with `rename`.

mod beside;
mod drain;
mod fence;
mod once;
mod rename;
