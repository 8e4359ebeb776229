//! TPC-H over rows that the worker of another host selects of decoded columns, against the same Parquet from it, over links of 1 and 10
//! Gbit/s.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use forebay_client::Client;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, Tpch};
use forebay_types::{Result, ResultExt};

use super::link::Link;
use super::parquet::{decode, geometric};
use super::{Engines, engine};
use crate::rig::{RigSettings, mounted};
use forebay_bench_harness::{Bar, Figure, median};

/// Runs of each query by each engine, in turns.
const RUNS: usize = 5;
/// Bytes a second that a link carries, and its name.
const LINKS: [(u64, &str); 2] = [(125_000_000, "1 Gbit/s"), (1_250_000_000, "10 Gbit/s")];
const MB: f64 = 1e6;
const PEER: &str = "Parquet from its worker, with filters in the reader or without, whichever is less";

/// What a query took: milliseconds, and megabytes that the link carried both ways.
#[derive(Clone, Copy)]
struct Taken {
    ms: f64,
    mb: f64,
}

/// All engines read by TCP through one link, as from another host.
pub async fn hot_afar() -> Result<Vec<Figure>> {
    let worker = free_address()?;
    let link = Link::open(worker)?;
    let behind = Some((worker.to_string(), link.address().to_string()));
    let engines = Engines::start_in(RigSettings { behind, ..Engines::settings() }).await?;
    let client = async || engines.rig.node.client(false).await;
    let plain = engine(&client().await?, false).await?;
    let filtering = filtering(&client().await?).await?;
    let hot = engine(&client().await?, true).await?;
    let engines = Engines { hot, ..engines };
    let right = decode(&engines).await?;

    let mut figures = vec![Figure::new(
        "TPC-H SF1, rows from afar: right answers",
        right,
        "of 22",
        "published answers",
        22.0,
        Bar::RatioAtLeast(1.0),
    )];
    for (bytes_per_sec, name) in LINKS {
        link.set(bytes_per_sec);
        figures.extend(over(&link, name, [&engines.hot, &plain, &filtering]).await?);
    }
    Ok(figures)
}

/// Over one link: of all queries together, and of each.
async fn over(link: &Link, name: &str, engines: [&Tpch; 3]) -> Result<Vec<Figure>> {
    let (mut ours, mut peers, mut speed_ups, mut lines) = (Taken::none(), Taken::none(), Vec::new(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let [hot, plain, filtering] = in_turns(link, query, engines).await?;
        let raw = Taken { ms: plain.ms.min(filtering.ms), mb: plain.mb.min(filtering.mb) };
        (ours, peers) = (ours.and(hot), peers.and(raw));
        speed_ups.push(raw.ms / hot.ms);
        let what = |of: &str| format!("TPC-H SF1 over {name}, query {}{of}", at + 1);
        lines.push(Figure::new(what(""), hot.ms, "ms", PEER, raw.ms, Bar::RatioAtMost(1.0 / 0.95)));
        lines.push(Figure::new(what(": bytes sent"), hot.mb, "MB", PEER, raw.mb, Bar::Nothing));
    }
    let what = |of: &str| format!("TPC-H SF1 over {name}, rows from afar: {of}");
    let mut figures = vec![
        Figure::new(what("bytes sent"), ours.mb, "MB", PEER, peers.mb, Bar::RatioAtMost(0.3)),
        Figure::new(what("all 22 queries"), ours.ms, "ms", PEER, peers.ms, Bar::RatioAtMost(1.0)),
        Figure::new(what("geometric mean of 22 speed-ups"), geometric(&speed_ups), "x", PEER, 1.0, Bar::RatioAtLeast(1.0)),
    ];
    figures.extend(lines);
    Ok(figures)
}

/// The median of what each engine takes for a query. Who goes first has caches as another left them, so that each does.
async fn in_turns(link: &Link, query: &str, engines: [&Tpch; 3]) -> Result<[Taken; 3]> {
    let mut taken: [Vec<Taken>; 3] = Default::default();
    for run in 0..RUNS {
        for turn in 0..engines.len() {
            let who = (run + turn) % engines.len();
            let (began, before) = (Instant::now(), link.carried());
            engines[who].run(query).await.context(|| query.to_string())?;
            let mb = (link.carried() - before) as f64 / MB;
            taken[who].push(Taken { ms: began.elapsed().as_secs_f64() * 1e3, mb });
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

/// An engine over the file's bytes whose reader filters while it reads.
async fn filtering(client: &Client) -> Result<Tpch> {
    let engine = Engine::over_client(client.clone(), EngineSettings { hot_form: false, ..EngineSettings::default() });
    engine.execute("set datafusion.execution.parquet.pushdown_filters = true").await?.collect().await?;
    Tpch::new(engine, &mounted()).await
}

/// Where nobody listens yet.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
