//! Updates on their way into a shard: searched by a suffix array as it is (Succinct, section 4.1: the SuffixStore).

pub(crate) mod build;
mod search;
pub(crate) mod store;
