//! SQL over columns that a worker keeps decoded, against the same files warm in the same tier.

mod afar;
mod link;
mod liquid_cache;
mod parquet;
mod peer;
mod text;
mod wide;

use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, Client};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{Tables, Tpch};
use forebay_types::{HotForm, MountOptions, Result, ResultExt};

pub use afar::hot_afar;
pub use liquid_cache::hot_liquid_cache;
pub use parquet::hot_form;
pub use text::hot_text;
pub use wide::{WideArgs, wide};

use crate::engine::{data, upload};
use crate::rig::{MOUNT, Rig, RigSettings, mounted};
use forebay_bench_harness::cpu;

/// Two engines that read the same client, worker and tier; only one looks for decoded columns.
struct Engines {
    tables: Tables,
    rig: Rig,
    hot: Tpch,
    raw: Tpch,
}

#[derive(Clone, Copy)]
struct Taken {
    wall: Duration,
    cpu: Duration,
}

impl Engines {
    /// Over TPC-H at scale factor 1.
    async fn start() -> Result<Self> {
        Self::start_in(Self::settings()).await
    }

    /// Room for all files, and for all of their columns decoded.
    fn settings() -> RigSettings {
        RigSettings { dram_bytes: 6 << 30, ..RigSettings::default() }
    }

    async fn start_in(settings: RigSettings) -> Result<Self> {
        let tables = data().await?;
        let mut rig = Rig::start(settings).await?;
        upload(&mut rig, &tables.folder).await?;
        take_decoded(&rig.client).await?;
        let (hot, raw) = (engine(&rig.client, true).await?, engine(&rig.client, false).await?);
        Ok(Self { tables, rig, hot, raw })
    }

    /// What a query takes decoded, and what it takes raw, in so many runs each.
    async fn alternated(&self, query: &str, runs: usize) -> Result<(Vec<Taken>, Vec<Taken>)> {
        let [of_hot, of_raw] = in_turns([self.hot.engine(), self.raw.engine()], query, runs).await?;
        Ok((of_hot, of_raw))
    }
}

/// What a query takes in each of these places, in so many runs: who goes first has caches as the last one left them, so each does.
async fn in_turns<const N: usize>(places: [&Engine; N], query: &str, runs: usize) -> Result<[Vec<Taken>; N]> {
    let mut taken = [const { Vec::new() }; N];
    for run in 0..runs {
        for place in (0..N).map(|place| (run + place) % N) {
            let (began, before) = (Instant::now(), cpu::own());
            let ran = async { places[place].execute(query).await?.collect().await };
            ran.await.context(|| query.to_string())?;
            taken[place].push(Taken { wall: began.elapsed(), cpu: cpu::own().saturating_sub(before) });
        }
    }
    Ok(taken)
}

/// Columns of the mount's files are decoded as soon as they are asked for often enough.
async fn take_decoded(client: &Client) -> Result<()> {
    let mount = client.mount(&MOUNT.parse()?).await?;
    let options = MountOptions { hot_form: HotForm::Table, ..mount.options.clone() };
    client.control(AdminRequest::MountSet { name: mount.name.clone(), options }).await.map(drop)
}

async fn engine(client: &Client, hot_form: bool) -> Result<Tpch> {
    let settings = EngineSettings { hot_form, ..EngineSettings::default() };
    Tpch::new(Engine::over_client(client.clone(), settings), &mounted()).await
}

fn median_ms(taken: &[Taken], of: fn(&Taken) -> Duration) -> f64 {
    forebay_bench_harness::median(taken.iter().map(|it| of(it).as_secs_f64() * 1e3).collect())
}
