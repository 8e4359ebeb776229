//! MixApart's figure 3 with real jobs: cold and by reuse, against ingesting first, all data local, or no data scheduler.

use forebay_types::Result;

use super::bed::Bed;
use super::cores;
use super::pages::{FILES, FILES_FEW, Work};
use super::views::{Views, same};
use crate::cluster::Shape;
use forebay_bench_harness::{Bar, Figure, median};

const RUNS: usize = 3;
/// Shares of the input that are cached, in the curves of figures 3b and 3c.
const REUSE: [f64; 5] = [0.2, 0.4, 0.5, 0.6, 0.8];

/// With room for all of the large set.
fn roomy() -> Shape {
    Shape { dram_bytes: 2 << 30, ..Shape::default() }
}

/// A cold job against ingesting first, where ingesting takes as long as computing (figure 3a).
pub async fn cold() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(&roomy()).await?;
    let views = Views::make(&mut bed, "views", Work::Io, FILES).await?;
    let local = views.local(&bed).await?;
    bed.bound(Some((views.bytes as f64 / local.secs) as u64)).await?;
    let (mut colds, mut ingests, mut transfers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bed.free(&views.keys).await?;
        let cold = views.run(&bed).await?;
        same(&local.answer, &cold.answer)?;
        colds.push(cold.secs);
        bed.free(&views.keys).await?;
        let transfer = bed.load(&views.keys).await?;
        let compute = views.run(&bed).await?;
        ingests.push(transfer.secs + compute.secs);
        transfers.push((transfer.secs, (transfer.cpu_secs + compute.cpu_secs) / cores()));
    }
    bed.stop().await;
    let cold = median(colds);
    let transfer = median(transfers.iter().map(|it| it.0).collect());
    let cpu = median(transfers.iter().map(|it| it.1).collect());
    let floor = transfer.max(local.secs).max(cpu);
    let what = "figure 3a: cold job, ingesting takes as long as computing";
    let floor_is =
        format!("floor of transfer {transfer:.2} s, compute {:.2} s, CPU of both over the cores {cpu:.2} s", local.secs);
    Ok(vec![
        Figure::new(what, cold, "s", "ingest, then compute", median(ingests), Bar::RatioAtMost(0.55)),
        Figure::new(what, cold, "s", floor_is, floor, Bar::RatioAtMost(1.1)),
    ])
}

/// I/O-intensive by reuse, with all data local's time at 0.8 (figure 3b).
pub async fn io_reuse() -> Result<Vec<Figure>> {
    reuse("figure 3b: I/O-intensive", Work::Io, 0.8).await
}

/// CPU-intensive by reuse, with all data local's time at 0.5 (figure 3c).
pub async fn cpu_reuse() -> Result<Vec<Figure>> {
    reuse("figure 3c: CPU-intensive", Work::Cpu, 0.5).await
}

/// With a part of the data missing, at (1 - reuse) x the scan rate; the bar is on one reuse, that of the paper's panel.
async fn reuse(what: &str, work: Work, panel: f64) -> Result<Vec<Figure>> {
    let mut bed = Bed::start(&roomy()).await?;
    let views = Views::make(&mut bed, "views", work, FILES).await?;
    let local = views.local(&bed).await?;
    let mut figures = Vec::new();
    for share in REUSE {
        bed.bound(Some((views.bytes as f64 / local.secs * (1.0 - share)) as u64)).await?;
        let (mut with, mut all) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            all.push(views.run(&bed).await?.secs);
            bed.free(&views.missing(share)).await?;
            let run = views.run(&bed).await?;
            same(&local.answer, &run.answer)?;
            with.push(run.secs);
        }
        let bar = if (share - panel).abs() < 1e-9 { Bar::RatioAtMost(1.1) } else { Bar::Nothing };
        figures.push(Figure::new(format!("{what}, reuse {share}"), median(with), "s", "all data local", median(all), bar));
    }
    bed.stop().await;
    Ok(figures)
}

/// The data scheduler on against fetching on demand, at reuse 0.2 to 0.6.
pub async fn schedule() -> Result<Vec<Figure>> {
    let shares = [0.2, 0.3, 0.4, 0.5, 0.6];
    let (mut on, mut off) =
        (Bed::start(&Shape::default()).await?, Bed::start(&Shape { ahead: false, ..Shape::default() }).await?);
    let views = Views::make(&mut on, "views", Work::Io, FILES_FEW).await?;
    let same_views = Views::make(&mut off, "views", Work::Io, FILES_FEW).await?;
    let local = views.local(&on).await?;
    same(&local.answer, &same_views.local(&off).await?.answer)?;
    let mut figures = Vec::new();
    for share in shares {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            for (bed, views, secs) in [(&on, &views, &mut with), (&off, &same_views, &mut without)] {
                bed.bound(Some((views.bytes as f64 / local.secs * (1.0 - share)) as u64)).await?;
                bed.free(&views.missing(share)).await?;
                secs.push(views.run(bed).await?.secs);
            }
        }
        let what = format!("data scheduler on, I/O-intensive, reuse {share}");
        figures.push(Figure::new(what, median(with), "s", "fetched on demand", median(without), Bar::RatioAtMost(1.0)));
    }
    on.stop().await;
    off.stop().await;
    Ok(figures)
}

/// Tasks that ran where most of their input was or was arriving, at reuse 0.8: of all, the last wave with them.
pub async fn locality() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(&Shape::default()).await?;
    let views = Views::make(&mut bed, "views", Work::Io, FILES_FEW).await?;
    let local = views.local(&bed).await?;
    bed.bound(Some((views.bytes as f64 / local.secs * 0.2) as u64)).await?;
    bed.free(&views.missing(0.8)).await?;
    views.run(&bed).await?;
    let job = bed.last_job().await?;
    bed.stop().await;
    let (near, all) = (job.tasks_local as f64, job.tasks_with_input as f64);
    let what = format!("tasks beside their input, reuse 0.8, 4 workers of 2 slots ({near} of {all})");
    Ok(vec![Figure::new(what, near / all, "", "all", 1.0, Bar::ValueAtLeast(0.95))])
}
