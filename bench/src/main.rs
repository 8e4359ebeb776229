//! Forebay's benchmarks: one name a benchmark, one line a figure, the peer in the same run.

mod cluster;
mod engine;
mod hot;
mod loops;
mod losses;
mod mixapart;
mod one_column;
mod point;
mod polls;
mod recorder;
mod shuffle;
mod tables;
mod ways;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use forebay_bench_harness::{Figure, exit};
use forebay_bench_reads::{Reads, Serve, heap, rig, traffic};
use forebay_types::Result;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// Measures Forebay against its peers.
#[derive(Parser)]
#[command(name = "forebay-bench", version)]
struct Arguments {
    /// Print a JSON line a figure.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// All of the below but `losses`, which takes half an hour and kills processes, `polls`, which nothing else should run beside,
    /// `hot-liquid-cache`, whose peer is built by itself, and `limits`, which is held to nothing.
    #[command(alias = "all")]
    Spine,
    /// TPC-H SF1 through a mount: answers equal to the published ones, cold, warm, with a worker killed.
    Tpch,
    /// Warm against the same files local: median of 7 alternated runs.
    Warm,
    /// TPC-H over decoded columns against the same Parquet warm in the tier: median of 7 alternated runs.
    HotForm,
    /// TPC-H over rows that a worker selects for clients of another host against the same Parquet from it, over links of 1 and 10 Gbit/s:
    /// median of 3 alternated runs.
    HotAfar,
    /// TPC-H over decoded columns against LiquidCache, warm and with as much memory, in a process that `make peers` builds: median of 5
    /// alternated runs.
    HotLiquidCache,
    /// Aggregates over decoded columns of CSV and JSON against the same lines warm in the tier: median of 5 alternated runs.
    HotText,
    /// A wide table, over decoded columns, as Parquet warm in the tier, and as local files: right answers, and the median of 5 alternated runs.
    HotWide(hot::WideArgs),
    /// Cold against ingest-then-compute, at the bandwidth where ingesting takes as long as computing.
    Ingest,
    /// Bytes fetched cold against the union of ranges that the engine asks for without Forebay.
    Amplification,
    /// A sum over one column of twenty of a table file of 200 MB, cold: bytes fetched against those of the column.
    OneColumn,
    /// TPC-H over table files on a cluster of four workers: right answers, and a scan against one process.
    Tables,
    /// A record of a shard by its key, in SQL, against a get of the client.
    Point,
    #[command(flatten)]
    Reads(Reads),
    /// A table read by SQL, then through the S3 gateway, then as Python does, on four workers: bytes fetched twice.
    FetchedTwice,
    /// MixApart's workload on distributed SQL: four workers of two slots in this process.
    Mixapart {
        /// What of it is measured.
        #[arg(value_enum)]
        what: Mixapart,
    },
    /// What workers measure and what is decided by it, on processes of their own.
    Loops {
        /// What of it is measured.
        #[arg(value_enum)]
        what: loops::Loops,
    },
    /// What passes between stages of distributed queries: temporary nodes against files, on disk and on tmpfs.
    Shuffle(shuffle::ShuffleArgs),
    /// What a question for a task takes at a scheduler of many executors, which run nothing.
    Polls(polls::PollsArgs),
    /// A cluster of real processes under clients, with processes killed and started again: what is done, wrong, failed or hung.
    Losses(losses::LossesArgs),
    #[command(flatten)]
    Serve(Serve),
}

/// What of MixApart is measured, in the order in which all of it is.
#[derive(Clone, Copy, ValueEnum)]
enum Mixapart {
    /// A cold job against ingesting first, where ingesting takes as long as computing.
    Cold,
    /// I/O-intensive by reuse against all data local.
    IoReuse,
    /// CPU-intensive by reuse against all data local.
    CpuReuse,
    /// The data scheduler on against fetching on demand, at reuse 0.2 to 0.6.
    Schedule,
    /// Tasks that ran where their input was.
    Locality,
    /// The 22 queries of TPC-H as a batch, cold.
    Tpch,
    /// How exactly the bound holds over four workers.
    Traffic,
    /// A small job beside a large one, under Fair.
    Fair,
    /// A late job of high priority, under FIFO.
    Fifo,
}

impl Mixapart {
    async fn figures(self) -> Result<Vec<Figure>> {
        match self {
            Self::Cold => mixapart::cold().await,
            Self::IoReuse => mixapart::io_reuse().await,
            Self::CpuReuse => mixapart::cpu_reuse().await,
            Self::Schedule => mixapart::schedule().await,
            Self::Locality => mixapart::locality().await,
            Self::Tpch => mixapart::tpch().await,
            Self::Traffic => mixapart::traffic().await,
            Self::Fair => mixapart::fair().await,
            Self::Fifo => mixapart::fifo().await,
        }
    }
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()))
        .init();
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    exit("forebay-bench", rig::with_credentials().and_then(|()| runtime?.block_on(run(arguments))))
}

/// Runs one benchmark and says whether all its bars are met.
async fn run(arguments: Arguments) -> Result<bool> {
    let mut all_met = true;
    let mut print = |figures: Vec<Figure>| {
        for figure in figures {
            figure.print(arguments.json);
            all_met &= figure.met;
        }
    };
    match arguments.name {
        Name::Serve(serve) => serve.run().await?,
        Name::Spine => {
            for one in Reads::ALL {
                print(one.figures().await?);
            }
            print(engine::amplification().await?);
            print(one_column::one_column().await?);
            print(tables::tables().await?);
            print(point::point().await?);
            print(engine::tpch().await?);
            print(engine::warm().await?);
            print(hot::hot_form().await?);
            print(hot::hot_afar().await?);
            print(hot::hot_text().await?);
            print(hot::wide(&hot::WideArgs::default()).await?);
            print(engine::ingest().await?);
            print(ways::fetched_twice().await?);
            for one in loops::Loops::value_variants() {
                print(one.figures().await?);
            }
            for one in Mixapart::value_variants() {
                print(one.figures().await?);
            }
            print(shuffle::shuffle(&shuffle::ShuffleArgs::default()).await?);
        }
        Name::Loops { what } => print(what.figures().await?),
        Name::Mixapart { what } => print(what.figures().await?),
        Name::Shuffle(arguments_of) => print(shuffle::shuffle(&arguments_of).await?),
        Name::Polls(arguments_of) => print(polls::polls(arguments_of).await?),
        Name::Losses(arguments_of) => print(losses::losses(arguments_of, arguments.json).await?),
        Name::Reads(one) => print(one.figures().await?),
        Name::OneColumn => print(one_column::one_column().await?),
        Name::Tables => print(tables::tables().await?),
        Name::Point => print(point::point().await?),
        Name::Amplification => print(engine::amplification().await?),
        Name::Tpch => print(engine::tpch().await?),
        Name::Warm => print(engine::warm().await?),
        Name::HotForm => print(hot::hot_form().await?),
        Name::HotAfar => print(hot::hot_afar().await?),
        Name::HotLiquidCache => print(hot::hot_liquid_cache().await?),
        Name::HotText => print(hot::hot_text().await?),
        Name::HotWide(arguments_of) => print(hot::wide(&arguments_of).await?),
        Name::Ingest => print(engine::ingest().await?),
        Name::FetchedTwice => print(ways::fetched_twice().await?),
    }
    Ok(all_met)
}
