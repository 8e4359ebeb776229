//! `forebay shard`.

mod files;
mod served;
mod simulated;
