//! Merges: compressed shards and updates become new compressed shards.
//!
//! Owns: the merge of a folder by itself ([`Store::merge`](super::Store::merge)), and that of a store that is only read into another
//! folder ([`rewrite`]), a part after the other, whatever it has.

mod local;
mod records;
mod rewrite;

pub use rewrite::Standing;
pub(crate) use rewrite::rewrite;
