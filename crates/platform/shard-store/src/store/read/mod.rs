//! Answers: records by key, and keys by what their records hold.

mod far;
mod get;
mod search;
mod sent;
mod view_search;

pub use far::{FarAnswer, FarQuestion};
pub use sent::{SentRecord, Wanted, read_keys, read_records, write_keys};
