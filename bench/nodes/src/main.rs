//! Temporary nodes against Redis, plain sockets and their own limits.
//!
//! `forebay-bench-nodes [NAME..]`: a JSON line a figure, with the peer's figure in the same run, the ratio and the bar. The
//! worker is a process of its own with one thread. Needs `redis-server` and `redis-benchmark` (apt: redis-server).

#![allow(clippy::unwrap_used, reason = "a benchmark that meets the unexpected ends")]
#![allow(clippy::print_stdout, reason = "its figures are its output")]

mod bag;
mod clock;
mod disk;
mod echo;
mod enumerate;
mod file;
mod kv;
mod large;
mod metadata;
mod plain;
mod redis;
mod rig;
mod same_host;
mod sequential;
mod waiting;

use clap::{Parser, ValueEnum};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bar {
    /// Get and put of 64 B and 1 KB, one at a time and 16 in flight, over TCP and Unix sockets.
    Kv,
    /// Get of 64 KB and 1 MB over TCP.
    Large,
    /// Sequential reads and writes of a file in requests of 1 MB.
    File,
    /// Get of 1 MB on the same host: in place, and copied.
    SameHost,
    /// Storage class `disk`: sequential and random, against plain reads and writes of the device.
    Disk,
    /// Lookup, create and delete, one at a time and many in flight.
    Metadata,
    /// Lookups and creates of 1, 2, 4 and 8 threads at the namespace itself, without sockets.
    Namespace,
    /// A million entries.
    Enumerate,
    /// Memory of a million key-values of 100 bytes.
    Memory,
    /// A bag on four workers behind links of 1 Gbit/s each, in network namespaces: needs root; only when it is named.
    Bag,
    /// What an answering side that never waits for its sockets would give; only when it is named.
    Waiting,
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
    /// Bytes of that worker's disk tier.
    #[arg(long, hide = true, default_value_t = 0)]
    disk_bytes: u64,
    /// Runs the smallest program that can be called, with this Unix socket.
    #[arg(long, hide = true)]
    echo: Option<std::path::PathBuf>,
    /// Runs a worker of the bag's, which joins this coordinator.
    #[arg(long, hide = true, requires_all = ["listen", "folder"])]
    worker: Option<String>,
    #[arg(long, hide = true)]
    listen: Option<String>,
    #[arg(long, hide = true)]
    folder: Option<std::path::PathBuf>,
    /// Runs a plain sender that listens there.
    #[arg(long, hide = true)]
    send: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    if let Some(folder) = &args.serve {
        return rig::serve(folder, args.disk_bytes).await;
    }
    if let Some(socket) = &args.echo {
        return echo::serve(socket);
    }
    if let (Some(join), Some(listen), Some(folder)) = (&args.worker, &args.listen, &args.folder) {
        return bag::work(join, listen, folder).await;
    }
    if let Some(listen) = &args.send {
        return bag::send(listen);
    }
    let wanted = |bar: &Bar| match bar {
        // It makes network namespaces, which not everybody may; and what nobody does has no bar.
        Bar::Bag | Bar::Waiting => args.bars.contains(bar),
        _ => args.bars.is_empty() || args.bars.contains(bar),
    };
    for bar in Bar::value_variants().iter().filter(|bar| wanted(bar)) {
        match bar {
            Bar::Kv => kv::all(args.requests, args.rounds).await,
            Bar::Large => large::all(args.requests, args.rounds).await,
            Bar::File => file::all(args.rounds).await,
            Bar::SameHost => same_host::all(args.requests, args.rounds).await,
            Bar::Disk => disk::all(args.rounds).await,
            Bar::Metadata => metadata::all(args.requests, args.rounds).await,
            Bar::Namespace => metadata::threads::all(args.requests, args.rounds),
            // One run gives both.
            Bar::Memory if wanted(&Bar::Enumerate) => {}
            Bar::Enumerate | Bar::Memory => enumerate::all().await,
            Bar::Bag => bag::all(args.rounds).await,
            Bar::Waiting => waiting::all(args.requests, args.rounds),
        }
    }
}
