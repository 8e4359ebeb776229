//! One record of a dataset of shards by its key, in SQL: what that takes beyond a get of the client.

use std::time::{Duration, Instant};

use forebay_bench_harness::{Bar, Figure, median};
use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Literal, Store};
use forebay_shards::{ReplicaStatus, Shards, create};
use forebay_sql::{Engine, EngineSettings, ParamValues, ScalarValue};
use forebay_types::{Error, Result};
use serde_json::json;

use crate::rig::{Rig, RigSettings, path};

const ROWS: i64 = 20_000;
/// Where records are copied as they are.
const SIZE: f64 = 1.5;
/// Of each way, in turns.
const TURNS: i64 = 500;
/// Until then a worker that has begun looks into shared storage for each answer.
const HEARD_AFTER: Duration = Duration::from_secs(125);
const SOON: Duration = Duration::from_millis(50);

/// With the key bound to the statement, and with a statement of its own for each key.
pub async fn point() -> Result<Vec<Figure>> {
    let rig = Rig::start(RigSettings::default()).await?;
    let heard = Instant::now() + HEARD_AFTER;
    let shards = dataset(&rig).await?;
    let engine = Engine::over_client(rig.client.clone(), EngineSettings::default());
    let table = format!("create external table points stored as shard location '{}'", shards.path());
    engine.execute(&table).await?.collect().await?;
    until_here(&shards).await?;
    tokio::time::sleep(heard.saturating_duration_since(Instant::now())).await;
    let mut us: [Vec<f64>; 3] = Default::default();
    for turn in 0..TURNS {
        let key = turn * 7919 % ROWS;
        let began = Instant::now();
        get(&shards, key).await?;
        us[0].push(began.elapsed().as_secs_f64() * 1e6);
        let values = ParamValues::from(vec![ScalarValue::Int64(Some(key))]);
        let statements = [("select note from points where id = $1".to_string(), Some(values))];
        let statements = statements.into_iter().chain([(format!("select note from points where id = {key}"), None)]);
        for (way, (sql, values)) in (1..).zip(statements) {
            let began = Instant::now();
            let mut query = match values {
                Some(values) => engine.execute_with(&sql, values).await?,
                None => engine.execute(&sql).await?,
            };
            let rows: usize = query.collect().await?.iter().map(|batch| batch.num_rows()).sum();
            us[way].push(began.elapsed().as_secs_f64() * 1e6);
            if rows != 1 {
                return Err(Error::internal(format!("{sql}: {rows} rows for {key}")));
            }
        }
    }
    let [get, bound, text] = us.map(median);
    let figure = |way: &str, us: f64, bar: f64| {
        let what = format!("point SELECT of a shard, {way}: beyond the client's get, p50");
        Figure::new(what, us - get, "us", "the client's get", get, Bar::ValueAtMost(bar))
    };
    Ok(vec![figure("its key bound", bound, 300.0), figure("a text of its own", text, 2000.0)])
}

/// One shard of two columns.
async fn dataset(rig: &Rig) -> Result<Shards> {
    let columns = Columns::new(vec![Column::new("id", ColumnKind::Int), Column::new("note", ColumnKind::Text)], "id")?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path().join("built");
    let mut building = Store::build(&folder, columns.clone(), SIZE)?;
    for key in 0..ROWS {
        building.push(Key::U64(key as u64), vec![Value::Text(format!("what there is to say of number {key}"))])?;
    }
    building.finish()?;
    let path = path("points.shards")?;
    let mut creating = create(&rig.client, &path, columns, vec![SIZE], false).await?;
    creating.push(&folder, |_| {}).await?;
    creating.finish().await?;
    Shards::open(&rig.client, &path).await
}

async fn get(shards: &Shards, key: i64) -> Result<()> {
    match shards.get(&Literal::from_json(&json!(key))?, None).await? {
        Some(_) => Ok(()),
        None => Err(Error::internal(format!("{key} has no record"))),
    }
}

/// Until the worker has the shard, at its size.
async fn until_here(shards: &Shards) -> Result<()> {
    let is_here = |replica: &ReplicaStatus| replica.bytes.is_some_and(|bytes| bytes > 0) && !replica.is_changing;
    for key in 0..1000 {
        get(shards, key).await?;
        if shards.status().await?.iter().all(|shard| shard.replicas.iter().any(is_here)) {
            return Ok(());
        }
        tokio::time::sleep(SOON).await;
    }
    Err(Error::internal("the shard does not come to its worker"))
}
