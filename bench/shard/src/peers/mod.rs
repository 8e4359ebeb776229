//! What shards are compared with: plain records in hash maps (the ceiling), and what one would build instead.

mod blocks;
mod elias_fano;
mod plain;
mod row;

pub(crate) use blocks::Blocks;
pub(crate) use plain::Plain;
pub(crate) use row::Row;
