//! Answers: records by key, and keys by what their records hold.

mod far;
mod get;
mod search;
mod view_search;

pub use far::{FarAnswer, FarQuestion};
