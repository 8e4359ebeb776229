//! What passes between the stages of distributed queries, in temporary nodes against Ballista's own in files: a sort, a
//! group-by, a broadcast and TPC-H, on a cluster of this process, one way after the other in one run.

mod bed;
mod work;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use forebay_client::StorageClass;
use forebay_distributed::Shuffle;
use forebay_types::{ByteSize, Error, Result};
use serde::Serialize;

use bed::{Bed, Measured};
use work::Work;

use crate::cluster::Shape;
use forebay_bench_harness::{Bar, Figure, median};

/// Which bars, and how large.
#[derive(Args)]
pub struct ShuffleArgs {
    /// One of them; all when nothing is said.
    work: Option<WorkName>,
    /// Bytes of the rows that are sorted and grouped.
    #[arg(long, default_value = "4GB")]
    bytes: ByteSize,
    /// Storage class of the nodes.
    #[arg(long, value_enum, default_value_t = Class::Dram)]
    storage_class: Class,
    /// Executors read over TCP, as from another host.
    #[arg(long)]
    tcp: bool,
    /// Scale factor of TPC-H.
    #[arg(long, default_value_t = 3.0)]
    scale: f64,
    /// Alternated runs of each way.
    #[arg(long, default_value_t = 1)]
    runs: usize,
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
    secs: f64,
    write_secs: f64,
    fetch_secs: f64,
    cpu_secs: f64,
    bytes_passed: u64,
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
    let (class, nodes) = match arguments.storage_class {
        Class::Dram => (StorageClass::Dram, "nodes"),
        Class::Disk => (StorageClass::Disk, "nodes on disk"),
    };
    let ways = [
        Way { name: nodes, shuffle: Shuffle::Nodes(class), folder: on_disk.path().join("nodes") },
        Way { name: "files on disk", shuffle: Shuffle::Files, folder: on_disk.path().join("files") },
        Way { name: "files on tmpfs", shuffle: Shuffle::Files, folder: in_memory.path().join("files") },
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
    let mut answer: Option<String> = None;
    for _ in 0..arguments.runs.max(1) {
        for (way, all) in ways.iter().zip(&mut measured) {
            let bed = Bed::start(&way.shape(&work, arguments.tcp), &data, &work).await?;
            let found = bed.measure(&work).await?;
            bed.stop().await;
            print(&work, way, &found);
            match &answer {
                Some(answer) if *answer != found.answer => {
                    return Err(Error::internal(format!("{}: the answer was {answer} and is {}", way.name, found.answer)));
                }
                _ => answer = Some(found.answer.clone()),
            }
            all.push(found);
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
        WorkName::Tpch => vec![figure("whole", |run| run.secs, 1.0)],
        WorkName::Broadcast => vec![figure("fetch", |run| run.fetch_secs, 0.3)],
        _ if on_disk => vec![figure("write + fetch", passing, 1.0), figure("whole", |run| run.secs, 1.0)],
        _ => vec![figure("write + fetch", passing, 0.5), figure("whole", |run| run.secs, 0.9)],
    }
}

#[expect(clippy::print_stdout, reason = "figures are the program's output")]
fn print(work: &Work, way: &Way, run: &Measured) {
    let line = Line {
        work: &work.what,
        way: way.name,
        secs: run.secs,
        write_secs: run.write_secs,
        fetch_secs: run.fetch_secs,
        cpu_secs: run.cpu_secs,
        bytes_passed: run.bytes_passed,
    };
    println!("{}", serde_json::to_string(&line).expect("figures are plain"));
}
