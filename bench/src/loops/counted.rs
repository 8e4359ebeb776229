//! Operations that are reported in a window against those that were issued in it, by each way in. Python's package needs an interpreter: here
//! is the call that its reads are, of this process.

use std::time::Duration;

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure};
use forebay_client::{Client, RangeSpec};
use forebay_shared_storage::{GetRange, Storage};
use forebay_sql::{Engine, EngineSettings};
use forebay_types::{Error, ForebayPath, ObjectVersion, Result};

use super::bed::{at_rate, get, put, told, window_begins};
use super::statements::{Executors, Flight};
use crate::rig::{Rig, RigSettings, mounted, path};

/// Users have a minute; what is counted does not go by it.
const WINDOW: Duration = Duration::from_secs(3);
/// Of a window, so that the last operations are told in the same: a statement of a cluster takes a while, with others beside it.
const LASTS: Duration = Duration::from_millis(1500);
/// Operations a second that are issued, if the machine gives them.
const RATES: [u64; 4] = [1, 100, 2_000, 20_000];
const ERROR_PERCENT_MAX: f64 = 5.0;

#[derive(Clone, Copy)]
enum Way {
    InPlace,
    Socket,
    S3,
    Python,
    Sql,
    Flight,
    Executors,
}

impl Way {
    const ALL: [(Self, &str); 7] = [
        (Self::InPlace, "in place"),
        (Self::Socket, "over a socket"),
        (Self::S3, "by S3"),
        (Self::Python, "as Python reads"),
        (Self::Sql, "by SQL, embedded"),
        (Self::Flight, "by Flight SQL"),
        (Self::Executors, "by SQL on an executor"),
    ];
}

struct Ways {
    client: Client,
    socket: Client,
    gateway: Storage,
    engine: Engine,
    flight: Flight,
    executors: Executors,
}

/// What is read, and how it is named.
struct Object {
    version: ObjectVersion,
    path: ForebayPath,
    sql: String,
}

/// By each way at each rate, one window after the other. An object is read in one window only.
pub(super) async fn counted() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings { window: Some(WINDOW), dram_bytes: 1 << 30, ..RigSettings::default() }).await?;
    let ways = Ways::of(&mut rig).await?;
    let mut objects = Vec::new();
    for at in 0..Way::ALL.len() * RATES.len() {
        objects.push(Object::put(&mut rig, &format!("counted/{at}.csv")).await?);
    }
    window_begins(&mut rig).await?;
    let mut figures = Vec::new();
    for ((way, said), objects) in Way::ALL.into_iter().zip(objects.chunks(RATES.len())) {
        let mut largest = 0.0f64;
        for (rate, object) in RATES.into_iter().zip(objects) {
            let issued = at_rate(rate, LASTS, async || ways.once(way, object).await).await? as f64;
            let told = told(&rig.client, &object.version.key).await? as f64;
            largest = largest.max((told / issued - 1.0).abs() * 100.0);
            let given = (issued / LASTS.as_secs_f64()).round();
            let what = format!("operations counted {said}, {rate} a second asked for, {given} given");
            figures.push(Figure::new(what, told, "operations", "issued", issued, Bar::Nothing));
        }
        let what = format!("operations counted {said}: largest error");
        figures.push(Figure::alone(what, largest, "%", Bar::ValueAtMost(ERROR_PERCENT_MAX)));
    }
    Ok(figures)
}

impl Object {
    async fn put(rig: &mut Rig, key: &str) -> Result<Self> {
        let lines: String = (0..500).map(|line| format!("{line}\n")).collect();
        let version = put(rig, key, Bytes::from(format!("number\n{lines}"))).await?;
        let sql = format!("select max(number) from '{}/{key}'", mounted());
        Ok(Self { version, path: path(key)?, sql })
    }
}

impl Ways {
    async fn of(rig: &mut Rig) -> Result<Self> {
        let engine = Engine::over_client(rig.client.clone(), EngineSettings::default());
        let view = rig.client.view();
        let worker = view.workers.first().ok_or_else(|| Error::internal("the node has no worker"))?.id;
        Ok(Self {
            client: rig.client.clone(),
            socket: rig.node.client(false).await?,
            gateway: rig.node.gateway()?,
            flight: Flight::start(&engine).await?,
            executors: Executors::start(&rig.node, worker).await?,
            engine,
        })
    }

    async fn once(&self, way: Way, object: &Object) -> Result<()> {
        let version = &object.version;
        match way {
            Way::InPlace => self.client.read(self.client.operation(), version, 0..version.size).await.map(|_| ()),
            Way::Socket => self.socket.read(self.socket.operation(), version, 0..version.size).await.map(|_| ()),
            Way::S3 => get(&self.gateway, &version.key, GetRange::All).await.map(|_| ()),
            Way::Python => {
                let all = RangeSpec::From { start: 0 };
                self.client.read_latest(self.client.operation(), &object.path, all).await.map(|_| ())
            }
            Way::Sql => self.engine.execute(&object.sql).await?.collect().await.map(|_| ()),
            Way::Flight => self.flight.once(&object.sql).await,
            Way::Executors => self.executors.once(&object.sql).await,
        }
    }
}
