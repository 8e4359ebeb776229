//! The names on the command line: of what is measured, and of the processes that it runs against.

use std::time::Duration;

use clap::Subcommand;
use forebay_bench_harness::Figure;
use forebay_types::Result;

use crate::serve::{NodeShape, WorkerShape};
use crate::{ahead, limits, objects, reads, serve, sizes};

/// What is measured.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Reads {
    /// How exactly a bandwidth bound holds while data is missing.
    Bound,
    /// 1,500 random reads of 64 KB, cold.
    Random,
    /// Warm sequential read in place against the page cache, and against memory.
    Sequential,
    /// Warm sequential read over TCP against plain TCP.
    Tcp,
    /// Round trip of a warm random read of 64 KiB.
    Latency,
    /// 10,000 objects of 50 KB, warm.
    Objects,
    /// Reads of 1 B to 1 GiB, warm, of objects and of temporary data.
    Sizes,
    /// Requests for one read of an unknown object.
    Unknown,
    /// The worker's memory beyond its tiers.
    Memory,
    /// What is brought ahead and evicted before it is read, in tiers about as large as what is read.
    AheadEvicted,
    /// What huge pages, and sending without a copy, would give at most; only when it is named.
    Limits,
}

impl Reads {
    /// All that are held to something, in the order in which they are run together.
    pub const ALL: [Self; 10] = [
        Self::Unknown,
        Self::Random,
        Self::Bound,
        Self::Sequential,
        Self::Tcp,
        Self::Latency,
        Self::Objects,
        Self::Sizes,
        Self::Memory,
        Self::AheadEvicted,
    ];

    /// Measures it.
    ///
    /// # Errors
    /// What a process of the benchmark or a read fails with.
    pub async fn figures(self) -> Result<Vec<Figure>> {
        match self {
            Self::Bound => reads::bound().await,
            Self::Random => reads::random().await,
            Self::Sequential => reads::sequential().await,
            Self::Tcp => reads::tcp().await,
            Self::Latency => reads::latency().await,
            Self::Objects => objects::objects().await,
            Self::Sizes => sizes::sizes().await,
            Self::Unknown => reads::unknown().await,
            Self::Memory => reads::memory().await,
            Self::AheadEvicted => ahead::evicted().await,
            Self::Limits => limits::limits(),
        }
    }
}

/// A process that benchmarks run against; the program starts itself again as one.
#[derive(Debug, Subcommand)]
pub enum Serve {
    /// An S3 server behind a link.
    #[command(hide = true)]
    ServeS3 {
        /// Of its buckets.
        folder: String,
        /// Of the link; 0 for no limit.
        bytes_per_sec: u64,
        /// Of a request.
        latency_ms: u64,
    },
    /// A coordinator and a worker.
    #[command(hide = true)]
    ServeNode {
        /// Of its metadata and tiers.
        folder: String,
        /// Of the DRAM tier; 0 for a coordinator without a worker.
        dram_bytes: u64,
        /// Of the disk tier; 0 for none.
        disk_bytes: u64,
        /// Where the worker listens; at any port when not set.
        listen: Option<String>,
        /// Where others are told that it does.
        advertise: Option<String>,
        /// A window of popularity; as users have it when not set.
        #[arg(long)]
        window_ms: Option<u64>,
    },
    /// A worker of a coordinator that runs elsewhere.
    #[command(hide = true)]
    ServeWorker {
        /// Of its tiers.
        folder: String,
        /// Where the coordinator listens.
        coordinator: String,
        /// Of the DRAM tier.
        dram_bytes: u64,
        /// Bytes a second that it sends at most, to all as to who is on another host.
        #[arg(long)]
        sends: Option<u64>,
    },
}

impl Serve {
    /// Serves until the input ends.
    ///
    /// # Errors
    /// What it can't start with, or a request that it does not know.
    pub async fn run(self) -> Result<()> {
        match self {
            Self::ServeS3 { folder, bytes_per_sec, latency_ms } => serve::s3(folder, bytes_per_sec, latency_ms),
            Self::ServeNode { folder, dram_bytes, disk_bytes, listen, advertise, window_ms } => {
                let worker = WorkerShape { dram_bytes, disk_bytes, listen, advertise, sends: None };
                serve::node(folder, NodeShape { worker, window: window_ms.map(Duration::from_millis) }).await
            }
            Self::ServeWorker { folder, coordinator, dram_bytes, sends } => {
                let shape = WorkerShape { dram_bytes, disk_bytes: 0, listen: None, advertise: None, sends };
                serve::worker(folder, coordinator, shape).await
            }
        }
    }
}
