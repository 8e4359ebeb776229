//! `forebay shard`.

mod files;
mod killed;
mod served;
mod simulated;
