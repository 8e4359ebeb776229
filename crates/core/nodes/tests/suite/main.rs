//! The namespace by itself, with blocks in a map.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod conformance;
mod drain;
mod model;
mod moves;
mod offer;
mod once;
mod quota;
mod store;
mod value;
