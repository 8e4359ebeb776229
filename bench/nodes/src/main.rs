//! Temporary nodes against Redis, plain sockets and their own limits.
//!
//! `forebay-bench-nodes [NAME..]`: a JSON line a figure, with the peer's figure in the same run, the ratio and the bar. The
//! worker is a process of its own with one thread. Needs `redis-server` and `redis-benchmark` (apt: redis-server).

#![allow(clippy::unwrap_used, reason = "a benchmark that meets the unexpected ends")]
#![allow(clippy::print_stdout, reason = "its figures are its output")]

mod clock;
mod enumerate;
mod figure;
mod file;
mod kv;
mod large;
mod metadata;
mod redis;
mod rig;
mod serve;

use clap::Parser;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Bar {
    /// Get and put of 64 B and 1 KB, one at a time and 16 in flight, over TCP and Unix sockets.
    Kv,
    /// Get of 64 KB and 1 MB over TCP.
    Large,
    /// Sequential reads and writes of a file in requests of 1 MB.
    File,
    /// Lookup, create and delete, one at a time and many in flight.
    Metadata,
    /// A million entries.
    Enumerate,
    /// Memory of a million key-values of 100 bytes.
    Memory,
}

/// Benchmarks of temporary nodes.
#[derive(Parser)]
struct Args {
    /// Which; all when none is named.
    #[arg(value_enum)]
    bars: Vec<Bar>,
    /// Requests of each run.
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// Rounds, alternated with the peer's; the middle one counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Runs the worker that the others measure, in this folder.
    #[arg(long, hide = true)]
    serve: Option<std::path::PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    if let Some(folder) = &args.serve {
        return serve::serve(folder).await;
    }
    let wanted = |bar| args.bars.is_empty() || args.bars.contains(&bar);
    if wanted(Bar::Kv) {
        kv::all(args.requests, args.rounds).await;
    }
    if wanted(Bar::Large) {
        large::all(args.requests, args.rounds).await;
    }
    if wanted(Bar::File) {
        file::all(args.rounds).await;
    }
    if wanted(Bar::Metadata) {
        metadata::all(args.requests, args.rounds).await;
    }
    if wanted(Bar::Enumerate) || wanted(Bar::Memory) {
        enumerate::all().await;
    }
}
