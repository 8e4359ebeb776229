//! Datasets of shards as tables: conditions become searches and reads by key, which workers answer from compressed data.
//!
//! Owns: which conditions a shard answers, and whether all of it ([`conditions`], and [`tested`] for one column), and where keys of
//! ranges are ([`ranges`]); records as
//! Arrow columns ([`records`]); which keys a join names, and whether these are looked up ([`joined`]); statements for the
//! record of one key ([`Point`]); records without a statement ([`ShardBatches`]).
//! Never does: hold more than a page of a shard's records, or answer from a manifest other than the one it was opened at.
//! Start with [`ShardTable`].

mod batches;
mod conditions;
mod joined;
mod pages;
mod point;
mod ranges;
mod records;
mod scan;
mod table;
mod tested;
mod travel;

pub use batches::ShardBatches;
pub(crate) use point::Point;
pub(crate) use scan::{takes_keys, with_keys};
pub(crate) use table::{ShardTable, has_manifest, is_dataset};
pub(crate) use travel::is_shard_scan;
pub use travel::{shard_scan_of, shard_scan_to_bytes};
