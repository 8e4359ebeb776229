//! Renames and drains that stop between two steps, calls whose answers are lost, and calls beside others.

mod beside;
mod drain;
mod fence;
mod once;
mod rename;
