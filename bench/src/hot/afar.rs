//! TPC-H over rows that the worker of another host selects of decoded columns, against the same Parquet from it.

use forebay_client::Client;
use forebay_tpch::QUERIES;
use forebay_types::Result;

use super::parquet::{decode, geometric};
use super::{Engines, engine, median_ms};
use forebay_bench_harness::{Bar, Figure};

/// Alternated runs of each query.
const RUNS: usize = 5;
const MB: f64 = 1e6;

/// Both engines read over TCP, as from another host; the network between is this machine's own.
pub async fn hot_afar() -> Result<Vec<Figure>> {
    let engines = Engines::start().await?;
    let (far, plain) = (engines.rig.node.client(false).await?, engines.rig.node.client(false).await?);
    let engines = Engines { hot: engine(&far, true).await?, raw: engine(&plain, false).await?, ..engines };
    let right = decode(&engines).await?;

    let (mut walls, mut lines, mut of_far, mut of_plain) = (Vec::new(), Vec::new(), 0.0, 0.0);
    for (at, query) in QUERIES.iter().enumerate() {
        let before = (sent(&far), sent(&plain));
        let (hot, raw) = engines.alternated(query, RUNS).await?;
        let (wall_hot, wall_raw) = (median_ms(&hot, |it| it.wall), median_ms(&raw, |it| it.wall));
        let each = |now: f64, before: f64| (now - before) / RUNS as f64 / MB;
        let (mb_hot, mb_raw) = (each(sent(&far), before.0), each(sent(&plain), before.1));
        (of_far, of_plain) = (of_far + mb_hot, of_plain + mb_raw);
        walls.push(wall_raw / wall_hot);
        let what = format!("TPC-H SF1 from another host, query {} ({mb_hot:.1} MB sent against {mb_raw:.1})", at + 1);
        lines.push(Figure::new(what, wall_hot, "ms", "Parquet from its worker", wall_raw, Bar::RatioAtMost(1.0 / 0.95)));
    }
    let peer = "Parquet from its worker";
    let mut figures = vec![
        Figure::new(
            "TPC-H SF1, rows from afar: right answers",
            right,
            "of 22",
            "published answers",
            22.0,
            Bar::RatioAtLeast(1.0),
        ),
        Figure::new("TPC-H SF1, rows from afar: bytes sent", of_far, "MB", peer, of_plain, Bar::RatioAtMost(0.3)),
        Figure::new(
            "TPC-H SF1, rows from afar: geometric mean of 22 speed-ups",
            geometric(&walls),
            "x",
            peer,
            1.0,
            Bar::RatioAtLeast(1.0),
        ),
    ];
    figures.extend(lines);
    Ok(figures)
}

/// Bytes that workers have sent to a client.
fn sent(client: &Client) -> f64 {
    client.counters().bytes_socket as f64
}
