//! The processes of a cluster that serves shards; each runs until its input ends.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use forebay_bench_harness::{say, security, until_input_ends};
use forebay_node::Node;
use forebay_types::Result;
use forebay_worker::Tuning;

/// Bytes of a worker's DRAM tier: nothing but manifests and logs goes through it.
const DRAM_BYTES: u64 = 64 << 20;

/// A process of a cluster that serves shards.
#[derive(Debug, Subcommand)]
pub(crate) enum Process {
    /// A coordinator
    #[command(name = "serve-coordinator", hide = true)]
    Coordinator {
        /// Of its metadata
        folder: PathBuf,
        /// Where it listens; at any port without it
        address: Option<String>,
    },
    /// What answers each call with as many bytes as a record has
    #[command(name = "serve-echo", hide = true)]
    Echo {
        /// Where it listens
        address: String,
    },
    /// What has messages on its disk, and answers each with a byte
    #[command(name = "serve-disk", hide = true)]
    Disk {
        /// Of its file
        folder: PathBuf,
        /// Of a message
        message_bytes: usize,
    },
    /// A worker
    #[command(name = "serve-shards", hide = true)]
    Shards {
        /// Of its tiers and shards
        folder: PathBuf,
        /// Where the coordinator listens
        coordinator: String,
        /// Of shards on its disk
        shard_bytes: u64,
        /// Between two looks at its queues
        navigate_ms: u64,
    },
}

impl Process {
    /// Serves until the input ends.
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Coordinator { folder, address } => coordinator(folder, address).await,
            Self::Echo { address } => {
                let server = super::echo::serve(address.parse()?).await?;
                say(&server.local_address().to_string())?;
                until_input_ends().await;
                server.shutdown().await;
                Ok(())
            }
            Self::Disk { folder, message_bytes } => {
                say(&super::ack::serve(&folder, message_bytes)?.to_string())?;
                until_input_ends().await;
                Ok(())
            }
            Self::Shards { folder, coordinator, shard_bytes, navigate_ms } => {
                worker(folder, coordinator, shard_bytes, Duration::from_millis(navigate_ms)).await
            }
        }
    }
}

async fn coordinator(folder: PathBuf, address: Option<String>) -> Result<()> {
    let mut settings = Node::coordinator_in(&folder, security());
    if let Some(address) = address {
        settings.listen = address.parse()?;
    }
    let node = Node::lead(settings).await?;
    say(&node.coordinator_at().to_string())?;
    until_input_ends().await;
    node.shutdown().await;
    Ok(())
}

async fn worker(folder: PathBuf, coordinator: String, shard_bytes: u64, navigate_every: Duration) -> Result<()> {
    let mut node = Node::join(coordinator.parse()?, security());
    let mut settings = node.worker_in(&folder, DRAM_BYTES);
    settings.shard_bytes = shard_bytes;
    let worker = node.start_worker_with(settings, Tuning { navigate_every, ..Tuning::default() }).await?.id();
    say(&worker.to_string())?;
    until_input_ends().await;
    node.shutdown().await;
    Ok(())
}
