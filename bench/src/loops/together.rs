//! SQL in this process, S3 and the client API at once under one bound, all of it cold: whether the bound holds, how much longer they
//! take while a load goes on in the background, and whether what comes ahead of its readers comes plan by plan.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure, Rounds};
use forebay_client::Client;
use forebay_shared_storage::{GetRange, Storage};
use forebay_sql::{Engine, EngineSettings};
use forebay_types::{Error, ObjectVersion, Result, Standing};
use futures::future::{join, try_join_all, try_join3};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::bed::{get, put};
use crate::rig::{Rig, RigSettings, mounted};
use crate::traffic::Traffic;

/// Bytes a second.
const BOUND: u64 = 20_000_000;
const FILE_BYTES: usize = 8_000_000;
/// Files of each way in, and where the bound is looked at: what takes longer than five seconds.
const FILES: usize = 3;
const FILES_WATCHED: usize = 9;
const ROUNDS: usize = 4;
/// What is loaded is more than what all others leave.
const BACKGROUND_BYTES: usize = 256 << 20;
/// What each of two plans brings: less than a plan may be ahead of its reader.
const PLAN_BYTES: usize = 48 << 20;
/// What of the later plan may be on its way as the earlier one ends: what the mount gives in a tenth of a second.
const WINDOW_BYTES: u64 = BOUND / 10;
/// How often is looked at what has come.
const LOOK: Duration = Duration::from_millis(20);
/// Both plans, and all that goes before them, come in much less.
const BROUGHT_WITHIN: Duration = Duration::from_secs(120);
/// Until a load is under way, and until what was under way has ended.
const PAUSE: Duration = Duration::from_millis(500);

/// Who reads.
struct Ways {
    engine: Engine,
    gateway: Storage,
    client: Client,
}

/// Files that nobody has read, of each way in.
struct Files {
    sql: String,
    by_s3: Vec<ObjectVersion>,
    by_client: Vec<ObjectVersion>,
}

pub(super) async fn together() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings { bound: Some(BOUND), ..RigSettings::default() }).await?;
    let engine = Engine::over_client(rig.client.clone(), EngineSettings::default());
    let ways = Ways { engine, gateway: rig.node.gateway()?, client: rig.client.clone() };
    let background = put(&mut rig, "background", Bytes::from(vec![5; BACKGROUND_BYTES])).await?;
    // The worker's share arrives with a heartbeat.
    sleep(4 * PAUSE).await;
    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        let [mut with, mut without] = [0.0; 2];
        for loads in [round % 2 == 0, round % 2 != 0] {
            let files = Files::put(&mut rig, &format!("round-{round}-{loads}"), FILES).await?;
            let load = loads.then(|| in_background(&ways.client, &background));
            sleep(PAUSE).await;
            let began = Instant::now();
            ways.read(files).await?;
            *(if loads { &mut with } else { &mut without }) = began.elapsed().as_secs_f64();
            end(load)?;
            sleep(PAUSE).await;
        }
        rounds.push(with, without);
    }
    let (with, without) = rounds.medians();
    let files = Files::put(&mut rig, "watched", FILES_WATCHED).await?;
    let load = in_background(&ways.client, &background);
    let is_over = Cell::new(false);
    let reading = async {
        let read = ways.read(files).await;
        is_over.set(true);
        read
    };
    let (read, traffic) = join(reading, Traffic::watch(|| rig.node.socket_bytes_in(), || is_over.get())).await;
    read?;
    end(Some(load))?;
    let what = "SQL, S3 and the client API at once, bound of 160 Mbit/s";
    sleep(PAUSE).await;
    let early = early(&mut rig, &ways, &background).await?;
    Ok(vec![
        Figure::alone(format!("{what}: with a load in the background"), with, "s", Bar::RatioAtMost(1.05))
            .beside("without", without),
        traffic?.kept(what, BOUND),
        Figure::alone(format!("{what}: of a later plan before an earlier one's end"), early, "%", Bar::ValueAtMost(1.0)),
    ])
}

/// What has come of a later plan as an earlier one of another client ends, beyond what may be on its way: in percent of the earlier one. All
/// others read beside them.
async fn early(rig: &mut Rig, ways: &Ways, background: &ObjectVersion) -> Result<f64> {
    let files = Files::put(rig, "ordered", FILES).await?;
    let mut versions = Vec::new();
    for key in ["ordered/earlier", "ordered/later"] {
        versions.push(put(rig, key, Bytes::from(vec![7; PLAN_BYTES])).await?);
    }
    let other = rig.node.client(true).await?;
    let load = in_background(&ways.client, background);
    sleep(PAUSE).await;
    let plan = |client: &Client, number: usize| {
        // Made before all that are here.
        let standing = Standing { priority: 0, began_ms: 1 + number as u64 };
        let whole = 0..versions[number].size;
        client.prefetch_in_turn(client.operation(), standing, vec![(versions[number].clone(), vec![whole])])
    };
    let earlier = plan(&other, 0);
    // What the later one brings before the worker has heard of the earlier one is no matter of their order.
    sleep(LOOK).await;
    let plans = (earlier, plan(&ways.client, 1));
    let (read, later) = join(ways.read(files), later_at_end(&other, &versions)).await;
    drop(plans);
    read?;
    end(Some(load))?;
    Ok(later?.saturating_sub(WINDOW_BYTES) as f64 / PLAN_BYTES as f64 * 100.0)
}

/// Bytes of the second version that are there as the first one is.
async fn later_at_end(client: &Client, versions: &[ObjectVersion]) -> Result<u64> {
    let began = Instant::now();
    loop {
        if let [earlier, later] = client.held(versions).await?[..]
            && earlier.bytes >= PLAN_BYTES as u64
        {
            return Ok(later.bytes);
        }
        if began.elapsed() > BROUGHT_WITHIN {
            return Err(Error::internal("the earlier plan did not come"));
        }
        sleep(LOOK).await;
    }
}

/// A load that goes on until it is ended.
fn in_background(client: &Client, version: &ObjectVersion) -> JoinHandle<()> {
    let (client, versions) = (client.clone(), vec![version.clone()]);
    tokio::spawn(async move {
        if let Err(error) = client.load(versions, false, |_| ()).await {
            tracing::warn!(%error, "the load in the background failed");
        }
    })
}

/// Ends a load, which must not have ended by itself: nothing went on beside the others then.
fn end(load: Option<JoinHandle<()>>) -> Result<()> {
    match load {
        Some(load) if load.is_finished() => Err(Error::internal("the load in the background ended before the others")),
        Some(load) => {
            load.abort();
            Ok(())
        }
        None => Ok(()),
    }
}

impl Files {
    async fn put(rig: &mut Rig, folder: &str, count: usize) -> Result<Self> {
        let mut text = String::with_capacity(FILE_BYTES + 16);
        text.push_str("number,of\n");
        while text.len() < FILE_BYTES {
            text.push_str("123456,7\n");
        }
        let (text, mut by_s3, mut by_client) = (Bytes::from(text), Vec::new(), Vec::new());
        for number in 0..count {
            rig.s3.put(&format!("{folder}/sql/{number}.csv"), text.clone()).await?;
            by_s3.push(put(rig, &format!("{folder}/s3/{number}"), text.clone()).await?);
            by_client.push(put(rig, &format!("{folder}/client/{number}"), text.clone()).await?);
        }
        Ok(Self { sql: format!("select sum(number), count(*) from '{}/{folder}/sql/*.csv'", mounted()), by_s3, by_client })
    }
}

impl Ways {
    /// All files at once, each whole.
    async fn read(&self, files: Files) -> Result<()> {
        let sql = async { self.engine.execute(&files.sql).await?.collect().await };
        let by_s3 = files.by_s3.iter().map(|file| get(&self.gateway, &file.key, GetRange::All));
        let operation = self.client.operation();
        let by_client = files.by_client.iter().map(|file| self.client.read(operation, file, 0..file.size));
        try_join3(sql, try_join_all(by_s3), try_join_all(by_client)).await.map(|_| ())
    }
}
