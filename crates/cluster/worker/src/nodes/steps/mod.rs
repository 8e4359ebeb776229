//! Renames and drains that stop between two steps.

mod drain;
mod fence;
mod rename;
