//! TPC-H over decoded columns against LiquidCache, which keeps columns of the same files in memory in a form of its own: a process of its
//! own (`bench/peers/liquid-cache`), at an older DataFusion, with as much memory as the worker's tier.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use forebay_tpch::QUERIES;
use forebay_types::{Error, Result, ResultExt};

use super::Engines;
use super::parquet::{decode, geometric};
use super::peer::{Answer, Peer};
use forebay_bench_harness::{Bar, Figure, cache, median};

/// Alternated runs of each query, after so many of all of them by which the peer fills its cache.
const RUNS: usize = 5;
const WARM_ROUNDS: usize = 3;
const PEER: &str = "LiquidCache 0.1.13 on DataFusion 53, warm";

pub async fn hot_liquid_cache() -> Result<Vec<Figure>> {
    // Before minutes are spent on all else.
    let program = program()?;
    let engines = Engines::start().await?;
    let right = decode(&engines).await?;
    let folder = tempfile::tempdir()?;
    let tables = std::path::absolute(&engines.tables.folder)?;
    let mut command = Command::new(&program);
    command.arg(tables).arg(folder.path()).arg(Engines::settings().dram_bytes.to_string());
    let mut peer = Peer::start("LiquidCache", command)?;
    for _ in 0..WARM_ROUNDS {
        for query in QUERIES {
            peer.run(query)?;
        }
    }

    let (mut speed_ups, mut lines) = (Vec::new(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            // Who goes first has caches as the last one left them, so each does.
            let first = (run % 2 == 1).then(|| peer.run(query)).transpose()?;
            let began = Instant::now();
            let answer = engines.hot.run(query).await.context(|| query.to_string())?;
            ours.push(began.elapsed().as_secs_f64() * 1e3);
            let Answer { rows, ms } = if let Some(answer) = first { answer } else { peer.run(query)? };
            theirs.push(ms);
            let own: usize = answer.iter().map(|batch| batch.num_rows()).sum();
            if rows != own {
                return Err(Error::internal(format!("query {}: {rows} rows where there are {own}", at + 1)));
            }
        }
        let (ours, theirs) = (median(ours), median(theirs));
        speed_ups.push(theirs / ours);
        lines.push(Figure::new(format!("TPC-H SF1 warm, query {}", at + 1), ours, "ms", PEER, theirs, Bar::Nothing));
    }
    let mut figures = vec![
        Figure::alone("TPC-H SF1 beside LiquidCache, decoded columns: right answers", right, "of 22", Bar::RatioAtLeast(1.0))
            .beside("published answers", 22.0),
        Figure::alone(
            "TPC-H SF1 beside LiquidCache, geometric mean of 22 speed-ups",
            geometric(&speed_ups),
            "x",
            Bar::RatioAtLeast(1.3),
        )
        .beside(PEER, 1.0),
    ];
    figures.extend(lines);
    Ok(figures)
}

/// What `make peers` has built.
fn program() -> Result<PathBuf> {
    let program = cache().join("liquid-cache/release/forebay-peer-liquid-cache");
    match program.exists() {
        true => Ok(program),
        false => Err(Error::not_found(format!("{} is not there: make peers builds it", program.display()))),
    }
}
