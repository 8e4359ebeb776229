//! TPC-H over decoded columns against the same Parquet warm in the same tier.

use std::time::{Duration, Instant};

use forebay_client::{Client, ControlReply, ControlRequest};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, Tpch, check_answer};
use forebay_types::{Error, HotForm, MountOptions, Result, ResultExt};

use crate::cpu;
use crate::engine::{data, upload};
use crate::figure::{Bar, Figure, median};
use crate::rig::{MOUNT, Rig, RigSettings, mounted};

/// Alternated runs of each query.
const RUNS: usize = 7;
/// Rounds of all queries in which the columns have to be decoded, and those in a row that decode nothing any more: what does
/// not pay yet is looked at again after twenty seconds.
const ROUNDS_MAX: usize = 40;
const ROUNDS_SAME: usize = 5;

/// Both engines read the same client, worker and tier; only one looks for decoded columns.
pub async fn hot_form() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let mut rig = Rig::start(RigSettings { dram_bytes: 6 << 30, ..RigSettings::default() }).await?;
    upload(&mut rig, &tables.folder).await?;
    let mount = rig.client.mount(&MOUNT.parse()?).await?;
    let options = MountOptions { hot_form: HotForm::Table, ..mount.options.clone() };
    rig.client.control(ControlRequest::MountSet { name: mount.name.clone(), options }).await?;
    let (hot, raw) = (engine(&rig.client, true).await?, engine(&rig.client, false).await?);
    let right = decode(&rig.client, &hot).await?;

    let (mut walls, mut cpus, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for (at, query) in QUERIES.iter().enumerate() {
        let name = || format!("query {}", at + 1);
        let (mut of_hot, mut of_raw) = (Vec::new(), Vec::new());
        for run in 0..RUNS {
            // Who goes first has caches as the other left them: in turns.
            for is_hot in if run % 2 == 0 { [true, false] } else { [false, true] } {
                let took = timed(if is_hot { &hot } else { &raw }, query).await.context(name)?;
                if is_hot { &mut of_hot } else { &mut of_raw }.push(took);
            }
        }
        let middle =
            |taken: &[Taken], of: fn(&Taken) -> Duration| median(taken.iter().map(|it| of(it).as_secs_f64() * 1e3).collect());
        let (wall_hot, wall_raw) = (middle(&of_hot, |it| it.wall), middle(&of_raw, |it| it.wall));
        let (cpu_hot, cpu_raw) = (middle(&of_hot, |it| it.cpu), middle(&of_raw, |it| it.cpu));
        walls.push(wall_raw / wall_hot);
        cpus.push(cpu_raw / cpu_hot);
        let what = format!("TPC-H SF1, query {} ({cpu_hot:.0} ms of CPU against {cpu_raw:.0})", at + 1);
        lines.push(Figure::new(what, wall_hot, "ms", "Parquet warm in the tier", wall_raw, Bar::RatioAtMost(1.0 / 0.95)));
    }
    let mut figures = vec![
        Figure::new(
            "TPC-H SF1, decoded columns: right answers",
            right,
            "of 22",
            "published answers",
            22.0,
            Bar::RatioAtLeast(1.0),
        ),
        Figure::new(
            "TPC-H SF1, geometric mean of 22 speed-ups",
            geometric(&walls),
            "x",
            "Parquet warm in the tier",
            1.0,
            Bar::RatioAtLeast(1.5),
        ),
        Figure::new(
            "TPC-H SF1, geometric mean of 22 ratios of CPU time",
            geometric(&cpus),
            "x",
            "Parquet warm in the tier",
            1.0,
            Bar::RatioAtLeast(1.0),
        ),
    ];
    figures.extend(lines);
    Ok(figures)
}

async fn engine(client: &Client, hot_form: bool) -> Result<Tpch> {
    let settings = EngineSettings { hot_form, ..EngineSettings::default() };
    Tpch::new(Engine::over_client(client.clone(), settings), &mounted()).await
}

/// Runs all queries until their columns are decoded; gives how many of the last round's answers are right.
async fn decode(client: &Client, hot: &Tpch) -> Result<f64> {
    let (mut bytes, mut same) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let mut right = 0.0;
        for (at, query) in QUERIES.iter().enumerate() {
            let answer = hot.run(query).await.context(|| format!("query {}", at + 1))?;
            match check_answer(at + 1, &answer) {
                Ok(()) => right += 1.0,
                Err(wrong) => tracing::warn!(query = at + 1, wrong, "answer is not the published one"),
            }
        }
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

struct Taken {
    wall: Duration,
    cpu: Duration,
}

async fn timed(tpch: &Tpch, query: &str) -> Result<Taken> {
    let (began, before) = (Instant::now(), cpu::own()?);
    tpch.run(query).await?;
    Ok(Taken { wall: began.elapsed(), cpu: cpu::own()?.saturating_sub(before) })
}

fn geometric(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
