//! A compressed, searchable shard of records whose size-for-speed setting turns while it serves (Succinct, NSDI'15;
//! BlowFish, NSDI'16).
//!
//! Owns: the bytes of a shard (docs/specs/shard.md), how they are built, searched and read, which layers there are and
//! which the dial adds next; which shard of a dataset has a key ([`KeyMap`]).
//! Never does: files, mapping, threads, logs, clocks. Parts come and go as [`bytes::Bytes`]; long work comes as steps that
//! the caller's threads run.
//!
//! Start with [`Builder`] (records to parts), [`Shard`] (parts to answers), [`LayerBuilder`] (more speed for more bytes)
//! and [`SuffixStore`] (updates that are not compressed yet); [`ColdTail`] for records that are far away.

mod base;
mod bits;
mod bounds;
mod build;
mod cold;
mod flat;
mod interval;
mod inverted;
mod keys;
mod layers;
mod mapping;
mod model;
mod part;
#[cfg(test)]
mod planted;
mod psi;
mod query;
mod record;
mod sampling;
mod sections;
mod shard;
mod sources;
mod steps;
mod suffix;
mod window;

pub use bounds::{Bounds, is_excluded};
pub use build::assemble::BuiltShard;
pub use build::{Builder, INPUT_BYTES_MAX};
pub use cold::{ColdFile, ColdRange, ColdTail, ColdWriter};
pub use flat::FlatText;
pub use flat::build::build_flat;
pub use flat::layers::FlatLayerBuilder;
pub use keys::Keys;
pub use layers::build::LayerBuilder;
pub use layers::id::{LayerId, LayerKind};
pub use layers::layered::Layered;
pub use layers::{LayerInfo, VerifiedLayer};
pub use mapping::{KeyMap, KeyRange, KeySample, SPLIT_BYTES_MAX, key_hash};
pub use model::key::{Key, KeyType};
pub use model::schema::{ATTRIBUTES_MAX, Attribute, Schema};
pub use model::value::{Value, ValueType};
pub use query::predicate::Query;
pub use query::waited::GoOn;
pub use query::work::{steps_of_get, worked};
pub use record::Record;
pub use sampling::QueryCounters;
pub use sections::{VerifiedSections, at_hand};
pub use shard::{Page, Shard, ShardInfo};
pub use sources::{LeftKeys, SourceChanges, SourceVersion, is_like, plan_sources};
pub use suffix::SuffixStore;
pub use suffix::build::SuffixStoreBuilder;
