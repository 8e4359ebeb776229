//! Bar of a batch of queries on a cold cluster, against floors that know what reads what.

use bytes::Bytes;
use forebay_sql::Engine;
use forebay_tpch::{QUERIES, TABLES, prepare};
use forebay_types::Result;

use super::bed::{Bed, Run};
use crate::cluster::Shape;
use forebay_bench_harness::{Bar, Figure, median};

/// The 22 queries of TPC-H queued as a batch, cold, on a link where the transfer takes as long as the batch computes.
pub async fn tpch() -> Result<Vec<Figure>> {
    const RUNS: usize = 3;
    let folder = tempfile::tempdir()?;
    let tables = prepare(folder.path(), 0.2, |_, _| ()).await?;
    let mut bed = Bed::start(&Shape::default()).await?;
    let mut keys = Vec::new();
    for table in TABLES {
        for file in std::fs::read_dir(tables.folder.join(table))? {
            let file = file?;
            let key = format!("{table}/{}", file.file_name().to_string_lossy());
            bed.s3.put(&key, Bytes::from(std::fs::read(file.path())?)).await?;
            keys.push(key);
        }
    }
    let engine = bed.engine(0, 8).await?;
    for table in TABLES {
        let view = format!("create view {table} as select * from '{}/{table}/*.parquet'", crate::rig::mounted());
        engine.execute(&view).await?.collect().await?;
    }
    batch(&bed, &engine).await?;
    let compute = batch(&bed, &engine).await?.secs;
    bed.free(&keys).await?;
    bed.s3.take_counters()?;
    let both = batch(&bed, &engine).await?.cpu_secs / super::cores();
    let bytes = bed.s3.take_counters()?.bytes_out;
    let bound = (bytes as f64 / compute) as u64;
    bed.bound(Some(bound)).await?;
    let mut colds = Vec::new();
    for _ in 0..RUNS {
        bed.free(&keys).await?;
        colds.push(batch(&bed, &engine).await?.secs);
    }
    bed.bound(None).await?;
    let in_order = floor_in_order(&mut bed, &engine, &keys, bound).await?;
    bed.stop().await;
    let cold = median(colds);
    let floor = format!("floor of transfer and compute {compute:.2} s, CPU of both over the cores {both:.2} s");
    let what = format!("TPC-H SF0.2, 22 queries as a batch, cold over {:.0} Mbit/s", bound as f64 * 8e-6);
    Ok(vec![
        Figure::new(&what, cold, "s", floor, compute.max(both), Bar::RatioAtMost(1.15)),
        Figure::new(what, cold, "s", "floor of queries that compute when their input is there", in_order, Bar::RatioAtMost(1.15)),
    ])
}

/// A floor that knows what reads what: input comes in the order of the queries, and none computes before what was missing
/// for those before it is there; from then on all cores compute what is left.
async fn floor_in_order(bed: &mut Bed, engine: &Engine, keys: &[String], bound: u64) -> Result<f64> {
    let mut cpu_secs = Vec::new();
    for sql in QUERIES {
        let run = bed.measure(async { engine.execute(sql).await?.collect().await.map(|_| String::new()) }).await?;
        cpu_secs.push(run.cpu_secs / super::cores());
    }
    bed.free(keys).await?;
    bed.s3.take_counters()?;
    let (mut floor, mut here_secs) = (0.0_f64, 0.0);
    for (ix, sql) in QUERIES.iter().enumerate() {
        floor = floor.max(here_secs + cpu_secs[ix..].iter().sum::<f64>());
        engine.execute(sql).await?.collect().await?;
        here_secs += bed.s3.take_counters()?.bytes_out as f64 / bound as f64;
    }
    Ok(floor)
}

/// The 22 queries, all queued at once.
async fn batch(bed: &Bed, engine: &Engine) -> Result<Run> {
    bed.measure(async {
        let queries = QUERIES.iter().map(|sql| async move { engine.execute(sql).await?.collect().await });
        for answer in futures::future::join_all(queries).await {
            answer?;
        }
        Ok(String::new())
    })
    .await
}
