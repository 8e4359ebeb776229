//! Answers: records by key, and keys by what their records hold.

mod get;
mod search;
mod view_search;

pub(super) use search::search_updates;
