//! How much one message may name. What is longer is refused while it is read, before there is memory for it; who has more to ask
//! sends several.

pub(crate) use forebay_types::at_most;

/// Segments that are freed, kept or looked for: looked up one after the other, which takes a few milliseconds.
pub const SEGMENTS_MAX: usize = 10_000;
/// Runs of pages that are looked for, as above.
pub const RUNS_MAX: usize = 20_000;
/// Ranges that are fetched: more than any window of a prefetch has, each a flight of its own at worst.
pub const RANGES_MAX: usize = 10_000;
/// Pins given back, and reads counted, with one notice; twice what a client gathers.
pub const PINS_MAX: usize = 2_048;
/// Blocks of one value, one file's addition, or one answer: a value of 1 TiB.
pub const BLOCKS_MAX: usize = 1 << 20;
/// Blocks that one message claims.
pub const CLAIMS_MAX: usize = 10_000;
/// Values of one call.
pub const VALUES_MAX: usize = 10_000;
/// Mounts that a heartbeat tells of.
pub const MOUNTS_MAX: usize = 100_000;
/// Plans that a heartbeat tells of, of all mounts together.
pub const PLANS_MAX: usize = 4_096;
/// Segments of one window's report, orders that ended, and new objects, of one heartbeat.
pub const USES_MAX: usize = 1 << 20;
/// Roots of tables that one window's report names.
pub const ROOTS_MAX: usize = 256;
/// Accesses that one answer tells of: with the longest keys, two thirds of a message.
pub const ACCESSES_MAX: usize = 10_000;
/// Records that one object of a shard's log changes.
pub const CHANGES_MAX: usize = 8_192;
/// Bytes of an object of a shard's log that workers hear of with it: what is larger they read from shared storage.
pub const CAME_BYTES_MAX: usize = 256 << 10;
/// Objects of a log that one answer has.
pub const KEPT_MAX: usize = 1_024;
/// Values of a record that are asked for; a shard has no more attributes.
pub const ATTRIBUTES_MAX: usize = 128;
/// Columns of which rows are selected.
pub const ROW_COLUMNS_MAX: usize = 1_024;
/// Bytes of a table of such rows, before it is compressed.
pub const ROW_BYTES_MAX: u32 = 32 << 20;
/// Warnings of a worker.
pub const WARNINGS_MAX: usize = 1_024;
