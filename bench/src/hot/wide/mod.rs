//! A wide table as services that count visits to websites have: a hundred columns, most of which a query does not want, many texts, many of them
//! empty. Over decoded columns, the same Parquet warm in the tier, and the same files where they lie.

mod columns;
mod duckdb;
mod queries;
mod rows;

use clap::Args;
use forebay_client::Client;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::same_answer;
use forebay_types::{Error, Result, ResultExt};

use super::parquet::{geometric, until_decoded};
use super::{Engines, in_turns, median_ms, take_decoded};
use crate::engine::{cache, upload};
use crate::rig::{Rig, mounted};
use forebay_bench_harness::{Bar, Figure};
use queries::QUERIES;

/// Rows where nobody says otherwise.
const ROWS: u64 = 2_000_000;
/// Alternated runs of each query.
const RUNS: usize = 5;
const WARM: &str = "Parquet warm in the tier";
const LOCAL: &str = "the engine over local files";

/// How large the table is.
#[derive(Args)]
pub struct WideArgs {
    /// Rows of the table, which grows with them.
    #[arg(long, default_value_t = ROWS)]
    rows: u64,
    /// DuckDB over the same local files as well, in a process by what `make peers` has installed.
    #[arg(long)]
    duckdb: bool,
}

impl Default for WideArgs {
    fn default() -> Self {
        Self { rows: ROWS, duckdb: false }
    }
}

pub async fn wide(arguments: &WideArgs) -> Result<Vec<Figure>> {
    let (folder, rows) = (cache()?, arguments.rows);
    let made = tokio::task::spawn_blocking(move || rows::prepare(&folder, rows)).await;
    let folder = made.map_err(|error| Error::internal(format!("making the data ended early: {error}")))??;
    let mut duckdb = arguments.duckdb.then(|| duckdb::start(&folder)).transpose()?;
    let mut rig = Rig::start(Engines::settings()).await?;
    upload(&mut rig, &folder).await?;
    take_decoded(&rig.client).await?;
    let hot = with_view(over(&rig.client, true), &mounted()).await?;
    let raw = with_view(over(&rig.client, false), &mounted()).await?;
    let place = format!("file://{}", std::path::absolute(&folder)?.display());
    let local = with_view(Engine::over_object_store(Vec::new(), EngineSettings::default()), &place).await?;

    let mut expected = Vec::new();
    for query in QUERIES {
        expected.push(run(&local, query).await?);
    }
    let raw_right = right(&raw, &expected).await?;
    let hot_right = until_decoded(&rig.client, async || right(&hot, &expected).await).await?;
    let (mut speed_ups, mut lines) = (SpeedUps::default(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let taken = in_turns([&hot, &raw, &local], query, RUNS).await?;
        let [hot, raw, local] = taken.map(|taken| median_ms(&taken, |it| it.wall));
        speed_ups.to_raw.push(raw / hot);
        speed_ups.to_local.push(local / hot);
        speed_ups.raw_to_local.push(local / raw);
        if let Some(duckdb) = &mut duckdb {
            let rows: usize = expected[at].iter().map(RecordBatch::num_rows).sum();
            speed_ups.to_duckdb.push(duckdb::median_ms(duckdb, query, rows, RUNS)? / hot);
        }
        lines.push(Figure::new(format!("wide table, query {}", at + 1), hot, "ms", WARM, raw, Bar::RatioAtMost(1.0 / 0.95)));
    }
    let is_right = |what: &str, right: f64| {
        Figure::alone(format!("wide table, {what}: right answers"), right, "of 22", Bar::RatioAtLeast(1.0))
            .beside(LOCAL, QUERIES.len() as f64)
    };
    let mut figures = vec![is_right("Parquet", raw_right), is_right("decoded columns", hot_right)];
    figures.extend(speed_ups.figures());
    figures.extend(lines);
    Ok(figures)
}

/// How many times as long each query takes elsewhere.
#[derive(Default)]
struct SpeedUps {
    to_raw: Vec<f64>,
    to_local: Vec<f64>,
    raw_to_local: Vec<f64>,
    /// Of none, unless it was asked for.
    to_duckdb: Vec<f64>,
}

impl SpeedUps {
    fn figures(&self) -> Vec<Figure> {
        let mean = |what: &str, ratios: &[f64], peer: &str, bar: Bar| {
            let what = format!("wide table, {what}: geometric mean of 22 speed-ups");
            Figure::alone(what, geometric(ratios), "x", bar).beside(peer, 1.0)
        };
        let least = self.to_raw.iter().copied().fold(f64::INFINITY, f64::min);
        let mut figures = vec![
            mean("decoded columns", &self.to_raw, WARM, Bar::RatioAtLeast(1.0)),
            mean("decoded columns beside local files", &self.to_local, LOCAL, Bar::Nothing),
            mean("Parquet beside local files", &self.raw_to_local, LOCAL, Bar::RatioAtLeast(0.95)),
            Figure::alone("wide table, decoded columns: least speed-up of a query", least, "x", Bar::RatioAtLeast(0.95))
                .beside(WARM, 1.0),
        ];
        if !self.to_duckdb.is_empty() {
            figures.push(mean("decoded columns beside DuckDB", &self.to_duckdb, duckdb::NAME, Bar::Nothing));
        }
        figures
    }
}

fn over(client: &Client, hot_form: bool) -> Engine {
    Engine::over_client(client.clone(), EngineSettings { hot_form, ..EngineSettings::default() })
}

async fn with_view(engine: Engine, place: &str) -> Result<Engine> {
    run(&engine, &format!("create view visits as select * from '{place}/visits/*.parquet'")).await?;
    Ok(engine)
}

async fn run(engine: &Engine, statement: &str) -> Result<Vec<RecordBatch>> {
    engine.execute(statement).await.context(|| statement.to_string())?.collect().await.context(|| statement.to_string())
}

/// How many answers are those of the engine over local files.
async fn right(engine: &Engine, expected: &[Vec<RecordBatch>]) -> Result<f64> {
    let mut right = 0.0;
    for (at, query) in QUERIES.iter().enumerate() {
        match same_answer(at + 1, &expected[at], &run(engine, query).await?) {
            Ok(()) => right += 1.0,
            Err(wrong) => tracing::warn!(query, wrong, "answer is not the one that was expected"),
        }
    }
    Ok(right)
}
