//! What a worker is, and where its parts are.

use std::path::PathBuf;
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_shard_store::GARBAGE_AFTER;
use forebay_shared_storage::StorageSettings;
use forebay_transport::{Address, Security, ServerLimits};

/// What a worker is, and where its parts are.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// The coordinator.
    pub coordinator: Address,
    /// Where the data plane listens.
    pub listen: Address,
    /// Where it listens for clients of the same host, who read in place; none turns reading in place off.
    pub unix_socket: Option<PathBuf>,
    /// The tiers. Their folder keeps the worker's id too.
    pub store: StoreSettings,
    /// The cluster's token and TLS.
    pub security: Security,
    /// `host:port` by which others reach the data plane; what it listens on when not set.
    pub advertise: Option<String>,
    /// Where it is, as administrators name places, so that temporary nodes may ask for it; the host's name when not set.
    pub location: Option<String>,
    /// Bytes a second that it sends to readers and other workers at most; none for as much as it can. Reads in place
    /// don't count.
    pub serve_bytes_per_sec: Option<u64>,
    /// Share of the tiers that temporary nodes may take, 0 to 1; the cache gives way to them within it.
    pub temporary_share: f64,
    /// Share of its storage beyond which it drops segments that no reads are routed to (Getafix, section 4.4).
    pub storage_share: f64,
    /// Bytes of disk that served shards may take, below the tiers' folder.
    pub shard_bytes: u64,
    /// Bytes that may wait for the shared storage of a mount: readers of more are told to come later, loads from a quarter of it on, and what
    /// is brought ahead from half of it on.
    pub storage_queue_bytes: u64,
}

impl WorkerSettings {
    /// Bytes of disk for served shards when nobody says.
    pub const SHARD_BYTES: u64 = 8 << 30;
    /// Bytes that may wait for shared storage when nobody says: half a minute of 1 Gbit/s.
    pub const STORAGE_QUEUE_BYTES: u64 = 4 << 30;

    /// A worker on TCP only, without a token.
    pub fn new(coordinator: Address, listen: Address, store: StoreSettings) -> Self {
        Self {
            coordinator,
            listen,
            unix_socket: None,
            store,
            security: Security::default(),
            advertise: None,
            location: None,
            serve_bytes_per_sec: None,
            temporary_share: 0.5,
            storage_share: 0.8,
            shard_bytes: Self::SHARD_BYTES,
            storage_queue_bytes: Self::STORAGE_QUEUE_BYTES,
        }
    }
}

/// What rarely needs another value than the default.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Deadlines and retries of requests to shared storage.
    pub storage: StorageSettings,
    /// Limits of the data plane's server.
    pub limits: ServerLimits,
    /// How long a reader waits for all of an object of more than 6 MiB that is held to its checksum: what is not there by then is read as it
    /// comes. Less than clients wait for a worker.
    pub judged_within: Duration,
    /// Time between two heartbeats.
    pub beat: Duration,
    /// How long a block of temporary data that was moved to another worker is still there for readers under way.
    pub reclaim_after: Duration,
    /// How long the first registration may take before the start fails.
    pub register_within: Duration,
    /// Bytes of the tiers that are verified a second, in the background; 0 for none.
    pub scrub_bytes_per_sec: u64,
    /// Time between two looks at the queues of served shards.
    pub navigate_every: Duration,
    /// How long objects of datasets stay that no manifest names.
    pub garbage_after: Duration,
    /// Bytes of shards that are copied from other workers a second, at most.
    pub copy_bytes_per_sec: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            storage: StorageSettings::default(),
            limits: ServerLimits::default(),
            judged_within: Duration::from_secs(10),
            beat: Duration::from_secs(1),
            reclaim_after: Duration::from_secs(10),
            register_within: Duration::from_secs(30),
            scrub_bytes_per_sec: 8 << 20,
            navigate_every: Duration::from_secs(10),
            garbage_after: GARBAGE_AFTER,
            copy_bytes_per_sec: 128 << 20,
        }
    }
}
