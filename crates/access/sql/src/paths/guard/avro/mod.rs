//! Avro object container files.

mod blocks;
mod codec;
mod header;
mod rows;
mod scan;
mod schema;
mod shape;
mod varint;

pub(super) use scan::{AvroOpener, schema};
