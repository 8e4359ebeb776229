//! Aggregates over decoded columns against the same lines.

use std::time::Duration;

use forebay_tpch::Tpch;
use forebay_types::{Error, Result, ResultExt};

use super::{Engines, median_ms};
use crate::rig::mounted;
use forebay_bench_harness::{Bar, Figure};

/// Alternated runs of each query.
const RUNS: usize = 5;
/// Rounds in which the columns have to be decoded, those in a row that decode nothing any more (what does not pay yet is looked at
/// again after twenty seconds), and how long is waited after each.
const ROUNDS_MAX: usize = 90;
const ROUNDS_SAME: usize = 12;
const BETWEEN: Duration = Duration::from_secs(2);

/// A file of 1.5 million lines, of each kind.
const FILES: [(&str, &str); 2] = [("CSV", "lineitem.csv"), ("JSON", "lineitem.json")];
/// Over any file.
const AGGREGATES: [&str; 3] = [
    "select count(*), sum(l_quantity), sum(l_extendedprice) from '{}'",
    "select l_returnflag, l_linestatus, sum(l_quantity), avg(l_discount), count(*) from '{}' group by 1, 2 order by 1, 2",
    "select sum(l_extendedprice * l_discount) from '{}' where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01'",
];

pub async fn hot_text() -> Result<Vec<Figure>> {
    let engines = Engines::start().await?;
    let mut figures = Vec::new();
    for (kind, name) in FILES {
        let path = format!("{}/text/{name}", mounted());
        let copy = format!("copy (select * from lineitem limit 1500000) to '{path}'");
        engines.raw.run(&copy).await.context(|| path.clone())?;
        for (at, query) in AGGREGATES.iter().enumerate() {
            let query = query.replace("{}", &path);
            decode(&engines.hot, &query).await?;
            let (of_hot, of_raw) = engines.alternated(&query, RUNS).await?;
            let (hot, raw) = (median_ms(&of_hot, |it| it.wall), median_ms(&of_raw, |it| it.wall));
            let what = format!("{kind} of 1,500,000 lines, aggregate {}", at + 1);
            let peer = format!("{kind} warm in the tier");
            figures.push(Figure::new(what, hot, "ms", peer, raw, Bar::RatioAtMost(0.5)));
        }
    }
    Ok(figures)
}

/// Runs a query until it reads as many chunks decoded as in the rounds before, and some.
async fn decode(hot: &Tpch, query: &str) -> Result<()> {
    let (mut before, mut same) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let now = decoded(hot, query).await?;
        same = if now == before && now > 0 { same + 1 } else { 0 };
        if same == ROUNDS_SAME {
            tracing::info!(query, chunks = now, "decoded");
            return Ok(());
        }
        before = now;
        tokio::time::sleep(BETWEEN).await;
    }
    Err(Error::internal(format!("after {ROUNDS_MAX} rounds columns are still being decoded: {query}")))
}

/// Chunks that a query reads decoded.
async fn decoded(hot: &Tpch, query: &str) -> Result<u64> {
    let batches = hot.run(&format!("explain analyze {query}")).await.context(|| query.to_string())?;
    let text = format!("{batches:?}");
    let counts = text.split("chunks_decoded=").skip(1);
    Ok(counts.filter_map(|rest| rest.split(|at: char| !at.is_ascii_digit()).next()?.parse::<u64>().ok()).sum())
}
