//! The processes of a cluster that serves shards; each runs until its input ends.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use forebay_bench_harness::security;
use forebay_block_store::StoreSettings;
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_transport::Address;
use forebay_types::Result;
use forebay_worker::{Tuning, Worker, WorkerSettings};

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
    },
    /// What answers each call with as many bytes as a record has
    #[command(name = "serve-echo", hide = true)]
    Echo {
        /// Where it listens
        address: String,
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
            Self::Coordinator { folder } => coordinator(folder).await,
            Self::Echo { address } => {
                let server = super::echo::serve(address.parse()?).await?;
                say(&server.local_address().to_string())?;
                until_input_ends().await;
                server.shutdown().await;
                Ok(())
            }
            Self::Shards { folder, coordinator, shard_bytes, navigate_ms } => {
                worker(folder, coordinator, shard_bytes, Duration::from_millis(navigate_ms)).await
            }
        }
    }
}

async fn coordinator(folder: PathBuf) -> Result<()> {
    let metadata_url = format!("sqlite:{}", folder.join("metadata.db").display());
    let listen = Address::Tcp("127.0.0.1:0".to_string());
    let settings = CoordinatorSettings { security: security(), ..CoordinatorSettings::new(listen, metadata_url) };
    let coordinator = Coordinator::start(settings).await?;
    say(&coordinator.address().to_string())?;
    until_input_ends().await;
    coordinator.shutdown().await;
    Ok(())
}

async fn worker(folder: PathBuf, coordinator: String, shard_bytes: u64, navigate_every: Duration) -> Result<()> {
    let store = StoreSettings::new(folder.join("tiers"), DRAM_BYTES);
    let mut settings = WorkerSettings::new(coordinator.parse()?, Address::Tcp("127.0.0.1:0".to_string()), store);
    settings.security = security();
    settings.unix_socket = Some(folder.join("worker.sock"));
    settings.shard_bytes = shard_bytes;
    let worker = Worker::start_with(settings, Tuning { navigate_every, ..Tuning::default() }).await?;
    say("joined")?;
    until_input_ends().await;
    worker.shutdown().await;
    Ok(())
}

fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// It ends with whoever started this process.
async fn until_input_ends() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().for_each(drop);
        // The process may be on its way out already.
        let _ = ended.send(());
    });
    let _ = end.await;
}
