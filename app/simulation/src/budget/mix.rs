//! What is asked, and what each of it takes.

/// The memory that all share.
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
/// Who has bytes of it, in this order: cached blocks, decoded columns, layers of shards, temporary data.
pub(super) const OWNERS: usize = 4;
/// Seconds between two weighings.
pub(super) const WINDOW_SECS: f64 = 20.0;
/// Windows until the mix is swapped, and as many after that: ten minutes.
pub(super) const PHASE_WINDOWS: usize = 30;

/// What is asked in each second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mix {
    /// Blocks that are read, by S3 or by scans of files as they are.
    pub(super) reads: f64,
    /// Columns that are scanned.
    pub(super) scans: f64,
    /// Calls of shards, gets and searches.
    pub(super) calls: f64,
    /// Bytes that shuffles have under way at a time.
    pub(super) shuffled_bytes: u64,
}

/// By day tables are read, and by night shards are asked.
pub(super) const MIXES: [Mix; 2] = [
    Mix { reads: 100.0, scans: 20.0, calls: 50.0, shuffled_bytes: 300 << 20 },
    Mix { reads: 10.0, scans: 30.0, calls: 400.0, shuffled_bytes: 200 << 20 },
];

/// Things of one size that are asked for by rank, and what asking takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Things {
    pub(super) count: usize,
    pub(super) bytes: u64,
    pub(super) hit_secs: f64,
    pub(super) miss_secs: f64,
}

/// A block from shared storage: 10 ms until its first byte, then 100 MB/s.
pub(super) const BLOCKS: Things = Things { count: 4_000, bytes: 1 << 20, hit_secs: 0.3e-3, miss_secs: 20e-3 };
/// A column that is decoded at 0.4 GB/s, and read from memory at 4.
pub(super) const COLUMNS: Things = Things { count: 1_000, bytes: 4 << 20, hit_secs: 1e-3, miss_secs: 11e-3 };
/// How skewed all that is: Zipf's law.
pub(super) const THETA: f64 = 0.8;

pub(super) const SHARDS: usize = 20;
pub(super) const LAYERS: u32 = 16;
pub(super) const LAYER_BYTES: u64 = 16 << 20;
/// Bytes of layers that are made in a window at most.
pub(super) const MADE_BYTES: u64 = 512 << 20;

/// What a call takes of a shard with so many layers.
pub(super) fn service_secs(layers: u32) -> f64 {
    4e-3 / f64::from(1 + layers)
}

/// How often in a second what is shuffled is written and read once, and what each byte of that takes that has no room: to a disk and back.
pub(super) const SHUFFLES: f64 = 0.2;
pub(super) const SPILL_SECS: f64 = 1e-8;
