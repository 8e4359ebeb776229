//! What passes between the stages of distributed queries, in temporary nodes against Ballista's own in files: a sort, a
//! group-by, a broadcast and TPC-H, on a cluster of this process, the ways in turns in one run. Bytes are compressed the same in all of
//! them: not at all where nodes are in memory, by LZ4 where they are on disk.

mod bed;
mod work;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay_client::StorageClass;
use forebay_distributed::Shuffle;
use forebay_types::{ByteSize, Result};
use serde::Serialize;

use bed::{Bed, Measured};
use work::{Answers, Work};

use crate::cluster::Shape;
use forebay_bench_harness::{Bar, Figure, median};

const BYTES: u64 = 4_000_000_000;
const SCALE: f64 = 3.0;
const RUNS: usize = 3;

/// Which bars, and how large.
#[derive(Args)]
pub struct ShuffleArgs {
    /// One of them; all when nothing is said.
    work: Option<WorkName>,
    /// Bytes of the rows that are sorted and grouped.
    #[arg(long, default_value_t = ByteSize(BYTES))]
    bytes: ByteSize,
    /// Storage class of the nodes.
    #[arg(long, value_enum, default_value_t = Class::Dram)]
    storage_class: Class,
    /// Executors read over TCP, as from another host.
    #[arg(long)]
    tcp: bool,
    /// Scale factor of TPC-H.
    #[arg(long, default_value_t = SCALE)]
    scale: f64,
    /// Runs of each way, in turns; another one begins each time.
    #[arg(long, default_value_t = RUNS)]
    runs: usize,
}

impl Default for ShuffleArgs {
    fn default() -> Self {
        let (bytes, storage_class) = (ByteSize(BYTES), Class::Dram);
        Self { work: None, bytes, storage_class, tcp: false, scale: SCALE, runs: RUNS }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WorkName {
    Sort,
    GroupBy,
    Broadcast,
    Tpch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Class {
    Dram,
    Disk,
}

/// One way of passing on what is between stages.
#[derive(Clone, Debug)]
struct Way {
    name: &'static str,
    shuffle: Shuffle,
    /// Executors have their folders here.
    folder: PathBuf,
    /// Settings of Ballista's own.
    sets: [String; 2],
}

impl Way {
    fn shape(&self, work: &Work, tcp: bool) -> Shape {
        let shape = Shape::default();
        // Room for all that passes, in either tier.
        let bytes = (work.bytes / shape.workers as u64 * 2).max(512 << 20);
        Shape {
            slots: work.slots,
            shuffle: self.shuffle,
            dram_bytes: bytes,
            disk_bytes: if self.shuffle == Shuffle::Nodes(StorageClass::Disk) { bytes } else { 0 },
            temporary_share: Some(0.8),
            in_place: !tcp,
            results: Some(self.folder.clone()),
            ..shape
        }
    }
}

/// A way's figures, as printed.
#[derive(Serialize)]
struct Line<'a> {
    work: &'a str,
    way: &'a str,
    #[serde(flatten)]
    run: &'a Measured,
}

/// Runs what was asked for.
pub async fn shuffle(arguments: &ShuffleArgs) -> Result<Vec<Figure>> {
    let works = match arguments.work {
        Some(work) => vec![work],
        None => vec![WorkName::Sort, WorkName::GroupBy, WorkName::Broadcast, WorkName::Tpch],
    };
    let mut figures = Vec::new();
    for work in works {
        figures.extend(one(work, arguments).await?);
    }
    Ok(figures)
}

async fn one(name: WorkName, arguments: &ShuffleArgs) -> Result<Vec<Figure>> {
    let (on_disk, in_memory) = (tempfile::tempdir()?, tempfile::tempdir_in("/dev/shm")?);
    let (class, nodes, codec) = match arguments.storage_class {
        Class::Dram => (StorageClass::Dram, "nodes", "none"),
        Class::Disk => (StorageClass::Disk, "nodes on disk", "lz4"),
    };
    let sets = [
        format!("set ballista.shuffle.compression.codec = '{codec}'"),
        // What an executor has written itself it opens in its folder, unless told otherwise; by `--tcp` ours has all of it by TCP.
        format!("set ballista.shuffle.force_remote_read = {}", arguments.tcp),
    ];
    let way = |name, shuffle, folder: PathBuf| Way { name, shuffle, folder, sets: sets.clone() };
    let ways = [
        way(nodes, Shuffle::Nodes(class), on_disk.path().join("nodes")),
        way("files on disk", Shuffle::Files, on_disk.path().join("files")),
        way("files on tmpfs", Shuffle::Files, in_memory.path().join("files")),
    ];
    let work = match name {
        WorkName::Sort => Work::sort(arguments.bytes.0),
        WorkName::GroupBy => Work::group_by(arguments.bytes.0),
        WorkName::Broadcast => Work::broadcast(),
        WorkName::Tpch => Work::tpch(arguments.scale),
    };
    let folder = tempfile::tempdir()?;
    let data = work.prepare(folder.path()).await?;
    let mut measured: [Vec<Measured>; 3] = Default::default();
    let mut first: Option<Answers> = None;
    for run in 0..arguments.runs.max(1) {
        for turn in 0..ways.len() {
            let at = (run + turn) % ways.len();
            let way = &ways[at];
            let bed = Bed::start(&way.shape(&work, arguments.tcp), &way.sets, &data, &work).await?;
            let (found, answers) = bed.measure(&work).await?;
            bed.stop().await;
            print(&work, way, &found);
            match &first {
                Some(first) => work.same(first, &answers).map_err(|error| error.context(way.name))?,
                None => first = Some(answers),
            }
            measured[at].push(found);
        }
    }
    Ok(figures(name, &work, arguments, &measured))
}

fn figures(name: WorkName, work: &Work, arguments: &ShuffleArgs, measured: &[Vec<Measured>; 3]) -> Vec<Figure> {
    let middle = |way: usize, of: fn(&Measured) -> f64| median(measured[way].iter().map(of).collect());
    let passing = |run: &Measured| run.write_secs + run.fetch_secs;
    // The better one of Ballista's own; for nodes on disk, that on tmpfs.
    let better = |of: fn(&Measured) -> f64| match arguments.storage_class {
        Class::Dram => middle(1, of).min(middle(2, of)),
        Class::Disk => middle(2, of),
    };
    let peer = if arguments.storage_class == Class::Disk {
        "Ballista's files on tmpfs"
    } else {
        "Ballista's files, the better of disk and tmpfs"
    };
    let figure = |what: &str, of: fn(&Measured) -> f64, bar: f64| {
        let what = format!("{}: {what}", work.what);
        Figure::new(what, middle(0, of), "s", peer, better(of), Bar::RatioAtMost(bar))
    };
    let on_disk = arguments.storage_class == Class::Disk;
    match name {
        WorkName::Tpch => vec![figure("whole", |run| run.secs, if on_disk { 1.0 } else { 0.75 })],
        WorkName::Broadcast => vec![figure("fetch", |run| run.fetch_secs, 0.1)],
        _ if on_disk => vec![figure("write + fetch", passing, 1.0), figure("whole", |run| run.secs, 1.0)],
        WorkName::Sort => vec![figure("write + fetch", passing, 0.5), figure("whole", |run| run.secs, 0.6)],
        WorkName::GroupBy => vec![figure("write + fetch", passing, 0.5), figure("whole", |run| run.secs, 0.7)],
    }
}

#[expect(clippy::print_stdout, reason = "figures are the program's output")]
fn print(work: &Work, way: &Way, run: &Measured) {
    let line = Line { work: &work.what, way: way.name, run };
    println!("{}", serde_json::to_string(&line).expect("figures are plain"));
}
