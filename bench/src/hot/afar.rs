//! TPC-H over rows that the worker of another host selects of decoded columns, against the same engine with `rows-from-afar` off, which
//! reads the file's bytes from that worker: over links of 1 and 10 Gbit/s.
//!
//! All of it shares this machine's cores. The link's copying is the more work the more goes over it, and selecting is work that another
//! host would have to itself: at 10 Gbit/s the one is against the file's bytes, the other against rows.

use std::time::Instant;

use forebay_client::Client;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, Tpch};
use forebay_types::{Result, ResultExt};

use super::link::Link;
use super::parquet::{decode, geometric};
use super::{Engines, engine};
use crate::rig::{RigSettings, mounted};
use forebay_bench_harness::{Bar, Figure, free_address, median};

/// Runs of each query by each engine, in turns.
const RUNS: usize = 3;
/// Bytes a second that a link carries, and its name.
const LINKS: [(u64, &str); 2] = [(125_000_000, "1 Gbit/s"), (1_250_000_000, "10 Gbit/s")];
const MB: f64 = 1e6;
const PEER: &str = "Parquet from its worker";

/// What a query took: milliseconds, and megabytes that the link carried both ways.
#[derive(Clone, Copy)]
struct Taken {
    ms: f64,
    mb: f64,
}

/// Both engines read by TCP through one link, as from another host.
pub async fn hot_afar() -> Result<Vec<Figure>> {
    let worker = free_address()?;
    let link = Link::open(worker)?;
    let behind = Some((worker.to_string(), link.address.to_string()));
    let engines = Engines::start_in(RigSettings { behind, ..Engines::settings() }).await?;
    let client = async || engines.rig.node.client(false).await;
    let (raw, hot) = (without_rows(&client().await?).await?, engine(&client().await?, true).await?);
    let engines = Engines { hot, ..engines };
    let right = decode(&engines).await?;

    let mut figures = vec![
        Figure::alone("TPC-H SF1, rows from afar: right answers", right, "of 22", Bar::RatioAtLeast(1.0))
            .beside("published answers", 22.0),
    ];
    for (bytes_per_sec, name) in LINKS {
        link.set(bytes_per_sec);
        figures.extend(over(&link, name, [&engines.hot, &raw]).await?);
    }
    Ok(figures)
}

/// Over one link: of all queries together, and of each.
async fn over(link: &Link, name: &str, engines: [&Tpch; 2]) -> Result<Vec<Figure>> {
    // What is known of the link is that of the one before.
    for query in QUERIES {
        engines[0].run(query).await.context(|| query.to_string())?;
    }
    let (mut ours, mut peers, mut speed_ups, mut lines) = (Taken::none(), Taken::none(), Vec::new(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let [hot, raw] = in_turns(link, query, engines).await?;
        (ours, peers) = (ours.and(hot), peers.and(raw));
        speed_ups.push(raw.ms / hot.ms);
        let what = |of: &str| format!("TPC-H SF1 over {name}, query {}{of}", at + 1);
        lines.push(Figure::new(what(""), hot.ms, "ms", PEER, raw.ms, Bar::RatioAtMost(1.0 / 0.95)));
        lines.push(Figure::new(what(": bytes sent"), hot.mb, "MB", PEER, raw.mb, Bar::Nothing));
    }
    let slowest = speed_ups.iter().copied().fold(f64::INFINITY, f64::min);
    let what = |of: &str| format!("TPC-H SF1 over {name}, rows from afar: {of}");
    let mut figures = vec![
        Figure::new(what("bytes sent"), ours.mb, "MB", PEER, peers.mb, Bar::RatioAtMost(0.3)),
        Figure::new(what("all 22 queries"), ours.ms, "ms", PEER, peers.ms, Bar::RatioAtMost(1.0)),
        Figure::new(what("least speed-up of a query"), slowest, "x", PEER, 1.0, Bar::RatioAtLeast(0.95)),
        Figure::new(what("geometric mean of 22 speed-ups"), geometric(&speed_ups), "x", PEER, 1.0, Bar::RatioAtLeast(1.0)),
    ];
    figures.extend(lines);
    Ok(figures)
}

/// The median of what each engine takes for a query. Who goes first has caches as another left them, so that each does.
async fn in_turns(link: &Link, query: &str, engines: [&Tpch; 2]) -> Result<[Taken; 2]> {
    let mut taken: [Vec<Taken>; 2] = Default::default();
    for run in 0..RUNS {
        for turn in 0..engines.len() {
            let who = (run + turn) % engines.len();
            let (began, before) = (Instant::now(), link.carried());
            engines[who].run(query).await.context(|| query.to_string())?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            // What the query has not waited for is of its doing too, and must not hold up the next one.
            let mb = (link.quiet().await - before) as f64 / MB;
            taken[who].push(Taken { ms, mb });
        }
    }
    Ok(taken.map(|runs| {
        let of = |of: fn(&Taken) -> f64| median(runs.iter().map(of).collect());
        Taken { ms: of(|it| it.ms), mb: of(|it| it.mb) }
    }))
}

impl Taken {
    fn none() -> Self {
        Self { ms: 0.0, mb: 0.0 }
    }

    fn and(self, other: Self) -> Self {
        Self { ms: self.ms + other.ms, mb: self.mb + other.mb }
    }
}

/// An engine over the file's bytes, but for `rows-from-afar` as the other one is.
async fn without_rows(client: &Client) -> Result<Tpch> {
    let settings = EngineSettings { rows_from_afar: false, ..EngineSettings::default() };
    Tpch::new(Engine::over_client(client.clone(), settings), &mounted()).await
}
