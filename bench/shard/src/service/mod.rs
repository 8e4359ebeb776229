//! Shards as a cluster serves them: coordinator, workers and S3 server in processes of their own, and what there would be instead
//! beside them.

mod ack;
mod cold;
mod data;
mod echo;
mod equal;
mod gets;
mod history;
mod kill;
mod load;
mod merge;
mod redis;
mod rig;
mod serve;
mod wait;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use forebay_types::{Error, Result};

pub(crate) use serve::Process;

/// What is measured of served shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cell {
    /// A worker is killed under load: wrong and failed answers, and the time until p99 is back
    Kill,
    /// One of twelve workers is lost: the bytes and the time until all replicas are there again: only when it is named
    Repair,
    /// Gets a second, all in memory, against Redis over the same kind of socket
    Gets,
    /// Gets against Redis with the same memory, which both have too little of for the records as they are
    Equal,
    /// Requests and bytes that questions to a shard take that no worker has
    Cold,
    /// Puts that two workers' disks acknowledge, against those that a store of 10 ms does: only when it is named
    Ack,
    /// Changes that are merged: bytes written, memory, and p99 of gets meanwhile: only when it is named
    Merge,
    /// Puts, gets and searches of many at once while workers are killed, in an order that explains them: only when it is named
    History,
    /// Three times the load at once on one shard, and back: only when it is named, since it takes many minutes
    Load,
    /// More load than three replicas sustain, one of which can't grow: only when it is named
    Replicas,
    /// Bytes that a substring takes of a shard that no worker has: only when it is named, since there are many
    Substring,
}

impl Cell {
    /// Whether it is measured where none is named.
    fn is_short(self) -> bool {
        matches!(self, Self::Kill | Self::Gets | Self::Equal | Self::Cold)
    }
}

/// How served shards are measured.
#[derive(Debug, Args)]
pub(crate) struct Service {
    /// Which; when none is named, those that take a minute or two
    #[arg(value_enum)]
    cells: Vec<Cell>,
    /// Rounds, in turns with the peer's; the middle one counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of a round, and of the load before and after a kill
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Operations of `history`
    #[arg(long, default_value_t = 10_000)]
    operations: usize,
    /// `history` kills the coordinator, too, as one of the processes
    #[arg(long)]
    kill_coordinator: bool,
    /// Bytes of values that `substring` searches, at least
    #[arg(long, default_value_t = 256 << 20)]
    substring_bytes: usize,
    /// Milliseconds between two looks of a worker at its queues, its patience with it, for `load` and `replicas`; 10 s in a cluster
    #[arg(long, default_value_t = 1000)]
    period_ms: u64,
    /// The folder that `load` draws its curves into; none without it
    #[arg(long)]
    curves: Option<PathBuf>,
}

/// The roles that this program starts itself again as.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Of the benchmarks of reads, whose S3 server this one uses
    #[command(flatten)]
    Reads(forebay_bench_reads::Serve),
    /// Of a cluster that serves shards
    #[command(flatten)]
    Shards(Process),
}

impl Role {
    /// Serves until the input ends.
    pub(crate) fn run(self) -> Result<()> {
        // As processes of the binary have them.
        forebay_node::few_arenas();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match self {
            Self::Reads(role) => runtime.block_on(role.run()),
            Self::Shards(role) => runtime.block_on(role.run()),
        }
    }
}

pub(crate) fn measure(service: &Service, values_bytes: usize) -> Result<()> {
    forebay_bench_reads::rig::with_credentials()?;
    if service.rounds == 0 || service.seconds == 0 {
        return Err(Error::invalid("--rounds and --seconds are 1 at least"));
    }
    let wanted = |cell: &Cell| service.cells.contains(cell) || (service.cells.is_empty() && cell.is_short());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let data = data::Data::lineitem(values_bytes)?;
        for cell in Cell::value_variants().iter().filter(|cell| wanted(cell)) {
            match cell {
                Cell::Kill => kill::figures(&data, service.seconds).await?,
                Cell::Repair => kill::repair::figures(&data, service.seconds).await?,
                Cell::Gets => gets::figures(&data, service.rounds, service.seconds).await?,
                Cell::Equal => {
                    equal::figures("lineitems", &data, service.rounds, service.seconds).await?;
                    equal::figures("requests", &data::Data::requests(values_bytes), service.rounds, service.seconds).await?;
                }
                Cell::Cold => cold::figures(&data).await?,
                Cell::Ack => ack::figures(&data, service.rounds, service.seconds).await?,
                Cell::Merge => merge::figures(&data, service.seconds).await?,
                Cell::History => history::figures(&data, service.operations, service.kill_coordinator).await?,
                Cell::Load => load::figures(&data, service.period_ms, service.curves.as_deref()).await?,
                Cell::Replicas => load::replicas::figures(&data, Duration::from_millis(service.period_ms)).await?,
                Cell::Substring => cold::substring(service.substring_bytes).await?,
            }
        }
        Ok(())
    })
}
