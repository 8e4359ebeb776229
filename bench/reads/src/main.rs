//! `forebay-bench-reads NAME [--json]`: reads through the client's API, a line a figure, the peer in the same run.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use forebay_bench_harness::exit;
use forebay_bench_reads::{Reads, Serve, heap, rig};
use forebay_types::Result;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// Measures reads against their peers.
#[derive(Parser)]
#[command(name = "forebay-bench-reads", version)]
struct Arguments {
    /// Print a JSON line a figure.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    name: Name,
}

#[derive(Subcommand)]
enum Name {
    /// All of the below but `limits`, which is held to nothing.
    All,
    #[command(flatten)]
    Reads(Reads),
    #[command(flatten)]
    Serve(Serve),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    exit("forebay-bench-reads", rig::with_credentials().and_then(|()| runtime?.block_on(run(arguments))))
}

/// Runs what was named and says whether all its bars are met.
async fn run(arguments: Arguments) -> Result<bool> {
    match arguments.name {
        Name::All => measure(&Reads::ALL, arguments.json).await,
        Name::Reads(one) => measure(&[one], arguments.json).await,
        Name::Serve(serve) => serve.run().await.map(|()| true),
    }
}

async fn measure(wanted: &[Reads], json: bool) -> Result<bool> {
    let mut all_met = true;
    for one in wanted {
        for figure in one.figures().await? {
            figure.print(json);
            all_met &= figure.met;
        }
    }
    Ok(all_met)
}
