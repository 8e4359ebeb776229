//! TPC-H over table files on a cluster of four workers: its answers, and a scan beside one process that has the same cores.

use std::path::Path;
use std::time::Instant;

use forebay_protocol::AdminRequest;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, TABLES, check_answer, same_answer};
use forebay_types::{Error, MountOptions, Result, ResultExt};

use crate::cluster::{LocalCluster, Shape};
use crate::engine::{Answers, data, local_answers};
use crate::rig::{MOUNT, mounted};
use forebay_bench_harness::{Bar, Figure, median};

const RUNS: usize = 7;
const PARTITIONS: usize = 8;
/// All numbers and dates of the largest table.
const SCAN: &str = "select sum(l_orderkey), sum(l_partkey), sum(l_suppkey), sum(l_linenumber), sum(l_quantity), \
                    sum(l_extendedprice), sum(l_discount), sum(l_tax), max(l_shipdate), max(l_commitdate), max(l_receiptdate) \
                    from lineitem";

/// Scale factor 1; the scan is warm.
pub async fn tables() -> Result<Vec<Figure>> {
    let parquet = data().await?;
    let expected = local_answers(&parquet).await?;
    let folder = tempfile::tempdir()?;
    convert(&std::path::absolute(&parquet.folder)?, folder.path()).await?;
    let cluster = LocalCluster::start(&Shape { dram_bytes: 2 << 30, ..Shape::default() }).await?;
    let url = format!("file://{}", folder.path().display());
    let mount = AdminRequest::MountAdd { name: MOUNT.parse()?, url, options: MountOptions::default() };
    cluster.client.control(mount).await?;
    cluster.client.refresh_view().await?;
    let ours = with_views(cluster.engine(0, PARTITIONS).await?).await?;
    let alone = with_views(Engine::over_client(cluster.client.clone(), EngineSettings::default())).await?;
    let right = right(&ours, &expected).await?;
    if cluster.control()?.jobs().await?.len() < QUERIES.len() {
        return Err(Error::internal("a query did not run on the cluster"));
    }
    let mut secs: [Vec<f64>; 2] = Default::default();
    for run in 0..=RUNS {
        for who in [run % 2, 1 - run % 2] {
            let (began, engine) = (Instant::now(), [&ours, &alone][who]);
            engine.execute(SCAN).await?.collect().await?;
            // The first one brings what is not there yet.
            if run > 0 {
                secs[who].push(began.elapsed().as_secs_f64());
            }
        }
    }
    cluster.stop().await;
    let [ours, alone] = secs.map(median);
    let scan = "a scan of lineitem as a table file by a cluster of 4 workers, warm";
    Ok(vec![
        Figure::alone(
            "TPC-H SF1 over table files, a cluster of 4 workers: right answers",
            right,
            "of 22",
            Bar::RatioAtLeast(1.0),
        )
        .beside("published answers, and those of the local engine exactly", 22.0),
        Figure::new(scan, ours, "s", "one process with the same cores", alone, Bar::RatioAtMost(1.0 / 0.9)),
    ])
}

/// Writes each table as one table file.
async fn convert(from: &Path, to: &Path) -> Result<()> {
    let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
    for table in TABLES {
        let rows = format!("select * from 'file://{}/{table}/*.parquet'", from.display());
        engine.execute(&format!("copy ({rows}) to 'file://{}/{table}/0.albis'", to.display())).await?.collect().await?;
    }
    Ok(())
}

async fn with_views(engine: Engine) -> Result<Engine> {
    for table in TABLES {
        let view = format!("create view {table} as select * from '{}/{table}/*.albis'", mounted());
        engine.execute(&view).await?.collect().await?;
    }
    Ok(engine)
}

async fn right(engine: &Engine, expected: &Answers) -> Result<f64> {
    let mut right = 0.0;
    for (at, query) in QUERIES.iter().enumerate() {
        let answer = engine.execute(query).await?.collect().await.context(|| format!("query {}", at + 1))?;
        match check_answer(at + 1, &answer).and_then(|()| same_answer(at + 1, &expected[at], &answer)) {
            Ok(()) => right += 1.0,
            Err(wrong) => tracing::warn!(query = at + 1, wrong, "answer is not the one that was expected"),
        }
    }
    Ok(right)
}
