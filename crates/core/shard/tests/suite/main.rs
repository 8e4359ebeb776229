//! The shard against brute force.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod cold;
mod corrupt;
mod flat;
mod fuzz;
mod mapping;
mod model;
mod pages;
mod sources;
mod text;
