//! The vocabulary of Forebay: what every other crate means by a key, a version, a segment, a page.
//!
//! Owns: identifiers, byte ranges, page sets, sizes and rates with units, mount options, and the one error type.
//! Never does: I/O, clocks, randomness, threads. Every function here is a pure function of its arguments.
//!
//! Start with [`ForebayPath`] (what a user writes), [`ObjectVersion`] (what a read is pinned to) and
//! [`SegmentId`] (what is placed, routed and counted).

#![warn(unreachable_pub)]

mod checksum;
mod error;
mod form;
mod grant;
mod key;
mod link_local;
mod mount;
mod pages;
mod path;
mod segment;
mod units;
mod version;
mod words;
mod worker;

pub use checksum::{crc32c, crc32c_append, digest, hex, mix64, split_mix};
pub use error::{Error, ErrorKind, Result, ResultExt};
pub use form::{
    Cell, CellSource, Comparison, CsvLines, ROW_TESTS_MAX, RowTest, TEXT_CHUNK_BYTES, TextForm, TextLines, at_most, text_chunk,
};
pub use grant::{CallerInfo, Grant, Role, Scope, TokenInfo, TokenKeys, Verifier, check_token_name};
pub use key::Key;
pub use link_local::{is_link_local, names_link_local};
pub use mount::{HotForm, Mount, MountId, MountName, MountOptions, Validate, Young};
pub use pages::{PageRun, PageSet};
pub use path::ForebayPath;
pub use segment::{
    OBJECT_BYTES_MAX, RouteKey, SegmentId, SegmentRange, check_object_bytes, segment_bytes, segment_count, split_range,
};
pub use units::{BitRate, ByteSize, date_of, day_of, format_bytes, format_duration, parse_duration};
pub use version::{Attributes, FormId, ObjectInfo, ObjectVersion, VersionTag};
pub use worker::{HostId, OperationId, Owner, PlanTurn, Standing, WorkerId};

/// Bytes of a page: the unit of presence, accounting, checksum and fetching.
pub const PAGE_BYTES: u64 = 4 << 10;
/// Bytes of a block: the unit of eviction.
pub const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes of a segment at most: the unit of popularity, placement, replication and routing.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Pages of a block.
pub const PAGES_PER_BLOCK: u32 = (BLOCK_BYTES / PAGE_BYTES) as u32;
/// Pages of a segment at most.
pub const PAGES_PER_SEGMENT: u32 = (SEGMENT_BYTES / PAGE_BYTES) as u32;
