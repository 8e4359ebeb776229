//! The S3 gateway against what people put in front of S3 today, over the same store behind 1 Gbit/s.
//!
//! `forebay-bench-gateway [NAME..]`: a JSON line a figure, with the peer's figure in the same run, the ratio and the bar. Needs
//! `nginx` with the slice module and `wrk` (apt: nginx-light, wrk), and `rclone` (go install).

#![allow(clippy::unwrap_used, reason = "a benchmark that meets the unexpected ends")]
#![allow(clippy::print_stdout, reason = "its figures are its output")]

mod cold;
mod load;
mod memory;
mod peers;
mod plain;
mod rig;
mod rights;
mod sign;
mod warm;

use clap::{Parser, ValueEnum};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bar {
    /// 1,500 random 64 KiB ranges, cold: operations and bytes against reading the store directly.
    Ranges,
    /// 2,000 objects of 50 KB, cold.
    Small,
    /// 32 files of 30 MB, cold: against the link.
    Files,
    /// Warm ranges and objects by wrk, against nginx and rclone.
    Warm,
    /// Memory beyond the tiers, at work and with 10,000 idle connections.
    Memory,
    /// What it costs that every request is looked at, by CPU time.
    Rights,
}

/// Benchmarks of the S3 gateway.
#[derive(Parser)]
struct Args {
    /// Which; all when none is named.
    #[arg(value_enum)]
    bars: Vec<Bar>,
    /// Seconds of each warm run.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// Rounds of each warm run; the middle one counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Reads a round and side of `rights`.
    #[arg(long, default_value_t = 20_000)]
    reads: usize,
    /// Only be the idle clients of a gateway.
    #[arg(long, hide = true)]
    idle_clients_of: Option<std::net::SocketAddr>,
    /// Only be a cluster with a gateway, and an object of so many bytes.
    #[arg(long, hide = true)]
    serve: Option<usize>,
    /// Only be the smallest server of answers of so many bytes.
    #[arg(long, hide = true)]
    plain: Option<usize>,
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    if let Some(gateway) = args.idle_clients_of {
        return memory::idle_clients(gateway).await;
    }
    if let Some(bytes) = args.serve {
        return rig::serve(bytes).await;
    }
    if let Some(bytes) = args.plain {
        return plain::serve(bytes);
    }
    for bar in Bar::value_variants().iter().filter(|bar| args.bars.is_empty() || args.bars.contains(bar)) {
        match bar {
            Bar::Ranges => cold::ranges().await,
            Bar::Small => cold::small().await,
            Bar::Files => cold::files().await,
            Bar::Warm => warm::all(args.seconds, args.rounds).await,
            Bar::Memory => memory::all().await,
            Bar::Rights => rights::rights(args.reads).await,
        }
    }
}
