use bytes::Bytes;
use forebay_distributed::Policy;
use forebay_tpch::{QUERIES, TABLES, prepare};
use forebay_types::{Error, Result};

use super::cluster::{Bed, Shape, timed};
use super::pages::{DAYS, FILES_A_DAY, SQL, compressed, file};
use crate::figure::{Bar, Figure, median};

const FILES: usize = DAYS * FILES_A_DAY;

fn shape() -> Shape {
    Shape { workers: 4, slots: 2, partitions: FILES, order: Policy::Fifo, ahead: true }
}

/// The page views in the bucket of a cluster; their keys and bytes.
async fn views(bed: &mut Bed, compress: bool) -> Result<(Vec<String>, u64)> {
    let (mut keys, mut bytes) = (Vec::new(), 0);
    for ix in 0..FILES {
        let plain = file(ix as u64);
        let (data, ending) = if compress { (compressed(&plain)?, "csv.zst") } else { (plain, "csv") };
        let key = format!("views/day-{:02}-{}.{ending}", ix / FILES_A_DAY + 1, ix % FILES_A_DAY);
        bytes += data.len() as u64;
        put(bed, &key, data).await?;
        keys.push(key);
    }
    Ok((keys, bytes))
}

async fn put(bed: &mut Bed, key: &str, data: Bytes) -> Result<()> {
    bed.s3.put(key, data).await.map(|_| ())
}

/// A cold job against ingesting first, where ingesting takes as long as computing (figure 3a).
pub async fn cold() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(shape()).await?;
    let (keys, bytes) = views(&mut bed, false).await?;
    let engine = bed.engine(0).await?;
    timed(&engine, SQL).await?;
    let (compute, answer) = timed(&engine, SQL).await?;
    bed.bound(Some((bytes as f64 / compute) as u64)).await?;
    let (mut colds, transfer) = (Vec::new(), compute);
    for _ in 0..3 {
        bed.free(&keys).await?;
        let (secs, again) = timed(&engine, SQL).await?;
        same(&answer, &again)?;
        colds.push(secs);
    }
    let cold = median(colds);
    bed.stop().await;
    Ok(vec![
        Figure::new(
            "figure 3a: cold job, ingesting takes as long as computing",
            cold,
            "s",
            "ingest, then compute",
            transfer + compute,
            Bar::RatioAtMost(0.55),
        ),
        Figure::new(
            "figure 3a: the same",
            cold,
            "s",
            "floor: the longer of transfer and compute",
            transfer,
            Bar::RatioAtMost(1.1),
        ),
    ])
}

/// I/O-intensive at reuse 0.8 and CPU-intensive at reuse 0.5, at (1 - reuse) x the scan rate (figures 3b and 3c).
pub async fn reuse() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (what, compress, share) in [("I/O-intensive, reuse 0.8", false, 0.8), ("CPU-intensive, reuse 0.5", true, 0.5)] {
        let mut bed = Bed::start(shape()).await?;
        let (keys, bytes) = views(&mut bed, compress).await?;
        let engine = bed.engine(0).await?;
        timed(&engine, SQL).await?;
        let (local, answer) = timed(&engine, SQL).await?;
        let missing = &keys[(FILES as f64 * share) as usize..];
        bed.bound(Some((bytes as f64 / local * (1.0 - share)) as u64)).await?;
        let mut with = Vec::new();
        for _ in 0..3 {
            bed.free(missing).await?;
            let (secs, again) = timed(&engine, SQL).await?;
            same(&answer, &again)?;
            with.push(secs);
        }
        bed.stop().await;
        figures.push(Figure::new(what, median(with), "s", "all data local", local, Bar::RatioAtMost(1.1)));
    }
    Ok(figures)
}

/// The data scheduler on against fetching on demand, at reuse 0.2 to 0.6.
pub async fn schedule() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut secs = Vec::new();
    for ahead in [true, false] {
        let mut bed = Bed::start(Shape { ahead, ..shape() }).await?;
        let (keys, bytes) = views(&mut bed, false).await?;
        let engine = bed.engine(0).await?;
        timed(&engine, SQL).await?;
        let (local, _) = timed(&engine, SQL).await?;
        let mut of = Vec::new();
        for share in [0.2, 0.4, 0.6] {
            bed.bound(Some((bytes as f64 / local * (1.0 - share)) as u64)).await?;
            let missing = &keys[(FILES as f64 * share) as usize..];
            let mut runs = Vec::new();
            for _ in 0..3 {
                bed.free(missing).await?;
                runs.push(timed(&engine, SQL).await?.0);
            }
            of.push((share, median(runs)));
        }
        bed.stop().await;
        secs.push(of);
    }
    for (on, off) in secs[0].iter().zip(&secs[1]) {
        let what = format!("data scheduler on, reuse {}", on.0);
        figures.push(Figure::new(what, on.1, "s", "fetched on demand", off.1, Bar::RatioAtMost(1.0)));
    }
    Ok(figures)
}

/// Tasks that ran where most of their input was or was arriving, at reuse 0.8; the last wave aside.
pub async fn locality() -> Result<Vec<Figure>> {
    let mut bed = Bed::start(shape()).await?;
    let (keys, bytes) = views(&mut bed, false).await?;
    let engine = bed.engine(0).await?;
    timed(&engine, SQL).await?;
    let (local, _) = timed(&engine, SQL).await?;
    bed.bound(Some((bytes as f64 / local * 0.2) as u64)).await?;
    bed.free(&keys[FILES * 8 / 10..]).await?;
    timed(&engine, SQL).await?;
    let job = bed.last_job().await?;
    bed.stop().await;
    let last_wave = (shape().workers * shape().slots) as f64;
    let (near, all) = (job.tasks_local as f64, job.tasks_with_input as f64);
    let share = near.min(all - last_wave) / (all - last_wave);
    Ok(vec![Figure::new(
        "tasks beside their input, reuse 0.8, 4 workers of 2 slots",
        share,
        "",
        "all",
        1.0,
        Bar::ValueAtLeast(0.95),
    )])
}

/// The 22 queries of TPC-H queued as a batch, cold, on a link where the transfer takes as long as the batch computes.
pub async fn tpch() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let tables = prepare(folder.path(), 0.2, |_, _| ()).await?;
    let mut bed = Bed::start(Shape { partitions: 8, ..shape() }).await?;
    let mut keys = Vec::new();
    for table in TABLES {
        for file in std::fs::read_dir(tables.folder.join(table))? {
            let file = file?;
            let key = format!("{table}/{}", file.file_name().to_string_lossy());
            put(&mut bed, &key, Bytes::from(std::fs::read(file.path())?)).await?;
            keys.push(key);
        }
    }
    let engine = bed.engine(0).await?;
    for table in TABLES {
        let view = format!("create view {table} as select * from '{}/{table}/*.parquet'", crate::rig::mounted());
        engine.execute(&view).await?.collect().await?;
    }
    batch(&engine).await?;
    let compute = batch(&engine).await?;
    bed.free(&keys).await?;
    bed.s3.take_counters()?;
    batch(&engine).await?;
    let bytes = bed.s3.take_counters()?.bytes_out;
    bed.bound(Some((bytes as f64 / compute) as u64)).await?;
    bed.free(&keys).await?;
    let cold = batch(&engine).await?;
    bed.stop().await;
    Ok(vec![Figure::new(
        "TPC-H SF0.2, 22 queries as a batch, cold",
        cold,
        "s",
        "floor: the longer of transfer and compute",
        compute,
        Bar::RatioAtMost(1.15),
    )])
}

/// Seconds of the 22 queries, all queued at once.
async fn batch(engine: &forebay_sql::Engine) -> Result<f64> {
    let start = std::time::Instant::now();
    let queries = QUERIES.iter().map(|sql| async move { engine.execute(sql).await?.collect().await });
    for answer in futures::future::join_all(queries).await {
        answer?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn same(expected: &str, found: &str) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::internal(format!("the answer was {expected} and is {found}"))),
    }
}
