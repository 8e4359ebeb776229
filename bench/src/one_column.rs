//! One column of twenty of a table file of 200 MB, cold, through a worker: what shared storage gives for it.

use std::time::Duration;

use bytes::Bytes;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::same_answer;
use forebay_types::{Error, Result};

use crate::rig::{Rig, RigSettings, mounted};
use forebay_bench_harness::{Bar, Figure};

const COLUMNS: usize = 20;
/// Of eight bytes a column.
const ROWS: u64 = 1_250_000;
const NAME: &str = "wide.albis";
/// What is on its way when the answer is there counts as well.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// A sum over the column in the middle, by an engine that knows nothing of the file.
pub async fn one_column() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join(NAME);
    let at = format!("file://{}", file.display());
    let columns: Vec<_> = (0..COLUMNS).map(|ix| format!("value * {} % 4294967279 as c{ix}", 40_503 + 2 * ix)).collect();
    let local = Engine::over_object_store(Vec::new(), EngineSettings::default());
    let copy = format!("copy (select {} from range(0, {ROWS})) to '{at}'", columns.join(", "));
    local.execute(&copy).await?.collect().await?;
    let expected = sum(&local, &at).await?;

    let mut rig = Rig::start(RigSettings::default()).await?;
    rig.s3.put(NAME, Bytes::from(std::fs::read(&file)?)).await?;
    rig.s3.take_counters()?;
    let engine = Engine::over_client(rig.client.clone(), EngineSettings::default());
    let found = sum(&engine, &format!("{}/{NAME}", mounted())).await?;
    tokio::time::sleep(ON_ITS_WAY).await;
    let fetched = rig.s3.take_counters()?;
    same_answer(1, &expected, &found).map_err(Error::internal)?;
    let (what, column) = ("one column of 20 of a table file of 200 MB, cold: bytes fetched", ROWS * 8);
    let (fetched, column) = (fetched.bytes_out as f64 / 1e6, column as f64 / 1e6);
    Ok(vec![Figure::new(what, fetched, "MB", "the column's bytes", column, Bar::RatioAtMost(1.05))])
}

async fn sum(engine: &Engine, table: &str) -> Result<Vec<RecordBatch>> {
    engine.execute(&format!("select sum(c{}) from '{table}'", COLUMNS / 2)).await?.collect().await
}
