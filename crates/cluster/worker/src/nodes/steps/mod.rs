//! Renames and drains that stop between two steps, and calls whose answers are lost.

mod drain;
mod fence;
mod once;
mod rename;
