//! TPC-H over decoded columns against the same Parquet.

use std::time::Duration;

use forebay_client::{Client, ControlReply, ControlRequest};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, Tpch};
use forebay_types::{Error, Result};

use super::{Engines, in_turns, median_ms};
use crate::engine::{local_answers, right};
use crate::rig::mounted;
use forebay_bench_harness::{Bar, Figure};

/// Alternated runs of each query.
const RUNS: usize = 7;
/// Rounds of all queries in which the columns have to be decoded, and those in a row that decode nothing any more: what does
/// not pay yet is looked at again after twenty seconds.
const ROUNDS_MAX: usize = 40;
const ROUNDS_SAME: usize = 5;

pub async fn hot_form() -> Result<Vec<Figure>> {
    let engines = Engines::start().await?;
    let right = decode(&engines).await?;
    // The limit: nothing is left but what the engine computes.
    let arrays = Engine::over_client(engines.rig.client.clone(), EngineSettings::default());
    let arrays = Tpch::in_memory(arrays, &mounted()).await?;

    let (mut walls, mut limits, mut cpus, mut lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let [of_hot, of_raw, of_arrays] =
            in_turns([engines.hot.engine(), engines.raw.engine(), arrays.engine()], query, RUNS).await?;
        let (wall_hot, wall_raw) = (median_ms(&of_hot, |it| it.wall), median_ms(&of_raw, |it| it.wall));
        let (cpu_hot, cpu_raw) = (median_ms(&of_hot, |it| it.cpu), median_ms(&of_raw, |it| it.cpu));
        walls.push(wall_raw / wall_hot);
        limits.push(wall_raw / median_ms(&of_arrays, |it| it.wall));
        cpus.push(cpu_raw / cpu_hot);
        let what = format!("TPC-H SF1, query {} ({cpu_hot:.0} ms of CPU against {cpu_raw:.0})", at + 1);
        lines.push(Figure::new(what, wall_hot, "ms", "Parquet warm in the tier", wall_raw, Bar::RatioAtMost(1.0 / 0.95)));
    }
    let mut figures = vec![
        Figure::alone("TPC-H SF1, decoded columns: right answers", right, "of 22", Bar::RatioAtLeast(1.0))
            .beside("published answers, and those of the local engine exactly", 22.0),
        Figure::alone("TPC-H SF1, geometric mean of 22 speed-ups", geometric(&walls), "x", Bar::RatioAtLeast(2.0))
            .beside("Parquet warm in the tier", 1.0),
        Figure::alone("TPC-H SF1, geometric mean of 22 speed-ups, beside arrays in memory", geometric(&walls), "x", Bar::Nothing)
            .beside("arrays in memory", geometric(&limits)),
        Figure::alone("TPC-H SF1, geometric mean of 22 ratios of CPU time", geometric(&cpus), "x", Bar::RatioAtLeast(1.0))
            .beside("Parquet warm in the tier", 1.0),
    ];
    figures.extend(lines);
    Ok(figures)
}

/// Runs all queries until their columns are decoded; gives how many of the last round's answers are right.
pub(super) async fn decode(engines: &Engines) -> Result<f64> {
    let expected = local_answers(&engines.tables).await?;
    until_decoded(&engines.rig.client, async || right(&engines.hot, &expected).await).await
}

/// Runs rounds of queries until their columns are decoded; gives what the last one gave.
pub(super) async fn until_decoded(client: &Client, round: impl AsyncFn() -> Result<f64>) -> Result<f64> {
    let (mut bytes, mut same) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let right = round().await?;
        // Decoding goes on behind the queries.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = decoded_bytes(client).await?;
        tracing::info!(bytes = now, "decoded");
        same = if now == bytes && now > 0 { same + 1 } else { 0 };
        if same == ROUNDS_SAME {
            return Ok(right);
        }
        bytes = now;
    }
    Err(Error::internal(format!("after {ROUNDS_MAX} rounds columns are still being decoded: {bytes} bytes")))
}

async fn decoded_bytes(client: &Client) -> Result<u64> {
    match client.control(ControlRequest::Status).await? {
        ControlReply::Status(status) => Ok(status.workers.iter().map(|(_, _, report)| report.form_bytes).sum()),
        _ => Err(Error::internal("the coordinator gave no status")),
    }
}

pub(super) fn geometric(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
