//! The table format: bytes to Arrow and back, for scans at the speed of memory (Albis, ATC'18).
//!
//! A table is cut into row groups and column groups; where the two meet is a cell, one range of bytes or a few. A group of
//! one column keeps Arrow's own layout, so that a [`Chunk`] hands out batches that point into the bytes it was given; a
//! group of several columns keeps rows, which are read in place ([`Row`]) or transposed to Arrow. Nothing is encoded or
//! compressed. The metadata stands apart from the data, so one look-up tells every range that a query will touch.
//!
//! Start with [`Writer`] and [`Table`]. A reader asks for bytes in two steps, since it does no I/O: a [`Plan`] says which
//! ranges, [`Plan::open`] takes them. What can be read by a function call is a [`Source`].
//!
//! Tables are made of Parquet files, among others: a [`ParquetColumn`] tells which of their pages are not to be decoded.
//!
//! Owns: the layout of files, docs/specs/table.md. Never does: I/O, threads; trust in an offset that it has read.

mod bloom;
mod cell;
mod fields;
mod foreign;
mod layout;
mod metadata;
mod read;
mod schema;
mod select;
mod write;

pub use bloom::BloomFilter;
pub use cell::{Row, RowCell, Value};
pub use foreign::{
    PARQUET_TAIL_BYTES, PageFault, ParquetColumn, ParquetCompressed, ParquetCopies, ParquetPage, ParquetText,
    check_parquet_footer, parquet_footer_bytes,
};
pub use layout::{Group, Grouping, Layout, Suggested, suggest};
pub use metadata::{BloomInfo, CellInfo, FOOTER_BYTES, Footer, SEGMENT_BYTES};
pub use read::{Batches, Chunk, ColumnStatistics, Plan, Selection, Source, Table, Verified, take};
pub use schema::{Leaf, Projection, TableSchema, schema_from_bytes, schema_to_bytes};
pub use select::{Coded, Narrow, Selected, Selecting, pack, select, unpack};
pub use write::{Blooms, Encoder, Options, RowGroup, Summary, Writer, key_hashes};
