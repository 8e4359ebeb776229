//! Aggregates over text in decoded columns against the same lines warm in the same tier.

use std::time::{Duration, Instant};

use forebay_client::{Client, ControlRequest};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::Tpch;
use forebay_types::{Error, HotForm, MountOptions, Result, ResultExt};

use crate::engine::{data, upload};
use crate::figure::{Bar, Figure, median};
use crate::rig::{MOUNT, Rig, RigSettings, mounted};

/// Alternated runs of each query.
const RUNS: usize = 5;
/// Rounds in which the columns have to be decoded, and how long is waited after each.
const ROUNDS_MAX: usize = 60;
const BETWEEN: Duration = Duration::from_secs(2);

/// A file of 1.5 million lines, of each kind.
const FILES: [(&str, &str); 2] = [("CSV", "lineitem.csv"), ("JSON", "lineitem.json")];
/// Over any file.
const AGGREGATES: [&str; 3] = [
    "select count(*), sum(l_quantity), sum(l_extendedprice) from '{}'",
    "select l_returnflag, l_linestatus, sum(l_quantity), avg(l_discount), count(*) from '{}' group by 1, 2 order by 1, 2",
    "select sum(l_extendedprice * l_discount) from '{}' where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01'",
];

/// Both engines read the same client, worker and tier; only one looks for decoded columns.
pub async fn hot_text() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let mut rig = Rig::start(RigSettings { dram_bytes: 6 << 30, ..RigSettings::default() }).await?;
    upload(&mut rig, &tables.folder).await?;
    let mount = rig.client.mount(&MOUNT.parse()?).await?;
    let options = MountOptions { hot_form: HotForm::Table, ..mount.options.clone() };
    rig.client.control(ControlRequest::MountSet { name: mount.name.clone(), options }).await?;
    let (hot, raw) = (engine(&rig.client, true).await?, engine(&rig.client, false).await?);
    let mut figures = Vec::new();
    for (kind, name) in FILES {
        let path = format!("{}/text/{name}", mounted());
        raw.run(&format!("copy (select * from lineitem limit 1500000) to '{path}'")).await.context(|| path.clone())?;
        for (at, query) in AGGREGATES.iter().enumerate() {
            let query = query.replace("{}", &path);
            decode(&hot, &query).await?;
            let (mut of_hot, mut of_raw) = (Vec::new(), Vec::new());
            for run in 0..RUNS {
                // Who goes first has caches as the other left them: in turns.
                for is_hot in if run % 2 == 0 { [true, false] } else { [false, true] } {
                    let (tpch, began) = (if is_hot { &hot } else { &raw }, Instant::now());
                    tpch.run(&query).await.context(|| query.clone())?;
                    if is_hot { &mut of_hot } else { &mut of_raw }.push(began.elapsed().as_secs_f64() * 1e3);
                }
            }
            let what = format!("{kind} of 1,500,000 lines, aggregate {}", at + 1);
            let peer = format!("{kind} warm in the tier");
            figures.push(Figure::new(what, median(of_hot), "ms", peer, median(of_raw), Bar::RatioAtMost(0.5)));
        }
    }
    Ok(figures)
}

async fn engine(client: &Client, hot_form: bool) -> Result<Tpch> {
    let settings = EngineSettings { hot_form, ..EngineSettings::default() };
    Tpch::new(Engine::over_client(client.clone(), settings), &mounted()).await
}

/// Runs a query until it reads as many chunks decoded as in the rounds before, and some.
async fn decode(hot: &Tpch, query: &str) -> Result<()> {
    let (mut before, mut same) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let now = decoded(hot, query).await?;
        same = if now == before && now > 0 { same + 1 } else { 0 };
        if same == 3 {
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
