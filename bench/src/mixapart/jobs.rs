//! Bars of several jobs at once and of the link: Fair's shares, FIFO's order, and how exactly the bound holds.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use forebay_distributed::Policy;
use forebay_types::{Error, Result};

use super::bed::Bed;
use super::pages::{FILES_FEW, Work};
use super::views::Views;
use crate::cluster::Shape;
use crate::traffic::Traffic;
use forebay_bench_harness::{Bar, Figure, median};

/// So little, in bytes a second, that jobs wait for it and not for this machine's cores.
const BOUND: u64 = 48_000_000;
/// How often the transfers under way are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A small job beside one that is ten times larger, under Fair, against the small one alone on half the cluster.
pub async fn fair() -> Result<Vec<Figure>> {
    const RUNS: usize = 3;
    let shape = Shape { order: Policy::Fair, ..Shape::default() };
    let mut half = Bed::start(&Shape { workers: 2, ..shape.clone() }).await?;
    let small = Views::make(&mut half, "small", Work::Io, 4).await?;
    small.local(&half).await?;
    half.bound(Some(BOUND / 2)).await?;
    let mut alone = Vec::new();
    for _ in 0..RUNS {
        half.free(&small.keys).await?;
        alone.push(small.run(&half).await?.secs);
    }
    half.stop().await;

    let mut bed = Bed::start(&shape).await?;
    let small = Views::make(&mut bed, "small", Work::Io, 4).await?;
    let large = Views::make(&mut bed, "large", Work::Io, 40).await?;
    small.local(&bed).await?;
    bed.bound(Some(BOUND)).await?;
    let mut beside = Vec::new();
    for _ in 0..RUNS {
        bed.free(&small.keys).await?;
        bed.free(&large.keys).await?;
        let job = large.start(&bed, 0).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        beside.push(small.run(&bed).await?.secs);
        if job.is_finished() {
            return Err(Error::internal("the large job ended before the small one"));
        }
        ended(job).await?;
    }
    bed.stop().await;
    Ok(vec![
        Figure::alone("two jobs under Fair, one ten times larger: the small one", median(beside), "s", Bar::RatioAtMost(1.3))
            .beside("alone on half the cluster", median(alone)),
    ])
}

/// A late job of high priority under FIFO: transfers of the other job that start before its own are all under way.
pub async fn fifo() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(&Shape::default()).await?;
    let late = Views::make(&mut bed, "late", Work::Io, 4).await?;
    let early = Views::make(&mut bed, "early", Work::Io, 40).await?;
    late.local(&bed).await?;
    bed.bound(Some(BOUND)).await?;
    bed.free(&late.keys).await?;
    bed.free(&early.keys).await?;
    let first = early.start(&bed, 0).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = late.start(&bed, 10).await?;
    let submitted = Instant::now();

    let control = bed.control()?;
    // Whether each transfer was the late job's, in the order in which they were seen.
    let (mut seen, mut late_seen, mut order) = (BTreeSet::new(), 0, Vec::new());
    let mut waited = None;
    while !second.is_finished() {
        for transfer in control.transfers().await? {
            let is_late = transfer.path.contains("/late/");
            if !seen.insert((transfer.path, transfer.start)) {
                continue;
            }
            order.push(is_late);
            if is_late {
                waited.get_or_insert(submitted.elapsed());
                late_seen += transfer.bytes;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    ended(second).await?;
    ended(first).await?;
    bed.stop().await;
    let first = order.iter().position(|late| *late).unwrap_or(0);
    let last = order.iter().rposition(|late| *late).unwrap_or(0);
    let between = order[first..=last].iter().filter(|late| !**late).count();
    let waited = waited.ok_or_else(|| Error::internal("no transfer of the late job was seen"))?;
    let what = format!(
        "a late job of high priority: transfers of the other job started between its first ({} ms after it was submitted) and \
         its last",
        waited.as_millis()
    );
    Ok(vec![Figure::new(what, between as f64, "", "its own bytes seen", late_seen as f64, Bar::ValueAtMost(0.0))])
}

/// How exactly the bound holds while a job runs, over all four workers.
pub async fn traffic() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(&Shape::default()).await?;
    let views = Views::make(&mut bed, "views", Work::Io, FILES_FEW).await?;
    views.local(&bed).await?;
    bed.bound(Some(BOUND)).await?;
    bed.free(&views.keys).await?;
    let job = views.start(&bed, 0).await?;
    let traffic = Traffic::watch(|| Ok(bed.socket_bytes_in()), || job.is_finished()).await?;
    ended(job).await?;
    bed.stop().await;
    Ok(traffic.figures("four workers, cold job", BOUND))
}

async fn ended<T>(job: tokio::task::JoinHandle<Result<T>>) -> Result<T> {
    job.await.map_err(|error| Error::internal(format!("a job: {error}")))?
}
