//! Shards on disk: real files, killed processes, damaged bytes, readers beside writers.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod asked;
mod background;
mod beside;
mod crash;
mod damage;
mod full;
mod fuzz;
mod layers;
mod log;
mod merge;
mod refresh;
mod store;
mod support;
