//! What is asked of the coordinator, and what it answers.

mod mounts;
mod request;

use std::time::Duration;

use forebay_types::{
    CallerInfo, Error, ErrorKind, ForebayPath, HostId, Mount, MountId, ObjectVersion, PlanTurn, TokenInfo, Verifier, WorkerId,
};
use serde::{Deserialize, Deserializer, Serialize};
use strum::VariantNames;

use crate::limits::{MOUNTS_MAX, PLANS_MAX, USES_MAX, at_most};
use crate::placement::{Order, OrderEnd, PlacementStatus, WindowReport};
use crate::report::{StorageCounters, WorkerReport};
use crate::routes::RoutesDelta;
use crate::version::{read_since, write_since};

pub use request::{AdminRequest, ControlCall, ControlRequest, MemberRequest};

/// A worker as it introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Kept over restarts.
    pub id: WorkerId,
    /// The host it runs on.
    pub host: HostId,
    /// `host:port` of the data plane.
    pub address: String,
    /// Path of the Unix socket for clients of the same host; none with `--no-in-place`.
    pub unix_socket: Option<String>,
    /// Capacity of the DRAM tier in bytes.
    pub dram_bytes: u64,
    /// Capacity of the disk tier in bytes.
    pub disk_bytes: u64,
    /// Its turn among those that joined; the coordinator gives one to a worker that says 0. The first of the live workers has
    /// the root of the temporary namespace.
    pub turn: u64,
    /// Where it is, as administrators name places: a host or a rack. Temporary nodes may ask for one.
    pub location: String,
    /// It gives up its temporary data, and is to be given nothing new.
    pub draining: bool,
    /// The newest version of the protocol that it speaks; 0 where it is of one before 9, which did not say.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
    pub protocol: u16,
}

impl WorkerInfo {
    /// One without tiers or a place of its own, which has no turn yet.
    pub fn new(id: WorkerId, host: HostId, address: impl Into<String>) -> Self {
        let (address, location) = (address.into(), String::new());
        let (unix_socket, dram_bytes, disk_bytes, turn, draining, protocol) = (None, 0, 0, 0, false, 0);
        Self { id, host, address, unix_socket, dram_bytes, disk_bytes, turn, location, draining, protocol }
    }
}

/// Where a worker stands with the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerState {
    /// Its lease holds.
    Live,
    /// Its lease ran out; reads go elsewhere.
    Lost,
}

/// Sent by a worker every second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The worker.
    pub worker: WorkerId,
    /// Version of the view it has.
    pub have: u64,
    /// Bytes a second that it would take from each mount with a bound, were there none, for what somebody waits for.
    #[serde(deserialize_with = "at_most::<MOUNTS_MAX, _, _>")]
    pub demand: Vec<(MountId, u64)>,
    /// For status and metrics.
    pub report: WorkerReport,
    /// What was read, once after a window has closed.
    pub window: Option<WindowReport>,
    /// How orders ended since the last heartbeat that was answered.
    #[serde(deserialize_with = "at_most::<USES_MAX, _, _>")]
    pub ended: Vec<OrderEnd>,
    /// Object versions that were written here or discovered since then.
    #[serde(deserialize_with = "at_most::<USES_MAX, _, _>")]
    pub fresh: Vec<ObjectVersion>,
    /// The number with which it was last told to forget what it knew of versions and listings, and did.
    pub heard: Option<u64>,
    /// Bytes a second that background work would take beside `demand`.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "mounts_since_9")]
    pub background: Vec<(MountId, u64)>,
    /// What it would take beside `demand` to bring what plans will read, the first plan of a mount before its others.
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "plans_since_9")]
    pub ahead: Vec<AheadNeed>,
}

impl Heartbeat {
    /// One that says no more than that the worker is there.
    pub fn silent(worker: WorkerId) -> Self {
        Self {
            worker,
            have: 0,
            demand: Vec::new(),
            report: WorkerReport::default(),
            window: None,
            ended: Vec::new(),
            fresh: Vec::new(),
            heard: None,
            background: Vec::new(),
            ahead: Vec::new(),
        }
    }
}

/// What a worker would take of a mount with a bound for one plan, were there none, ahead of who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AheadNeed {
    /// The mount.
    pub mount: MountId,
    /// Where the plan stands among all others.
    pub turn: PlanTurn,
    /// Bytes a second.
    pub bytes_per_sec: u64,
}

/// Of a worker of the version before: it counted background work as demand.
fn mounts_since_9<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(MountId, u64)>, D::Error> {
    read_since::<9, Rates, D>(deserializer).map(|Rates(rates)| rates)
}

#[derive(Default, Deserialize)]
struct Rates(#[serde(deserialize_with = "at_most::<MOUNTS_MAX, _, _>")] Vec<(MountId, u64)>);

/// The same of what is brought ahead.
fn plans_since_9<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AheadNeed>, D::Error> {
    read_since::<9, Plans, D>(deserializer).map(|Plans(plans)| plans)
}

#[derive(Default, Deserialize)]
struct Plans(#[serde(deserialize_with = "at_most::<PLANS_MAX, _, _>")] Vec<AheadNeed>);

/// A worker's share of a mount's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountShare {
    /// The mount.
    pub mount: MountId,
    /// Bytes a second; none without a bound.
    pub bytes_per_sec: Option<u64>,
    /// Bytes that may be taken at once.
    pub burst_bytes: u64,
}

/// A client's share of a mount's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLease {
    /// What may be taken.
    pub share: MountShare,
    /// For how long.
    pub lasts: Duration,
}

/// Mounts, pins and workers, as every process needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterView {
    /// Grows with every change; never 0.
    pub version: u64,
    /// Grows when another coordinator takes over.
    pub epoch: u64,
    /// All mounts.
    #[serde(with = "mounts::all")]
    pub mounts: Vec<Mount>,
    /// All pins of the administrator.
    pub pins: Vec<Pin>,
    /// Live workers, by id.
    pub workers: Vec<WorkerInfo>,
    /// How often clients ask for view and routing table; none: as they are set.
    pub poll: Option<Duration>,
    /// Grows whenever a worker is lost, and with each epoch: what is remembered of ways that may lead over lost workers is old.
    pub losses: u64,
}

impl ClusterView {
    /// The workers that may be given something new: those that are not draining, or all if all are draining.
    pub fn placeable(&self) -> impl Iterator<Item = &WorkerInfo> {
        let all_drain = self.workers.iter().all(|worker| worker.draining);
        self.workers.iter().filter(move |worker| all_drain || !worker.draining)
    }

    /// The worker that has the root of the temporary namespace.
    pub fn root(&self) -> Option<&WorkerInfo> {
        self.workers.iter().min_by_key(|worker| (worker.turn, worker.id))
    }
}

/// A pin of the administrator: everything below a path is kept in the tiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The mount.
    pub mount: MountId,
    /// Keys start with this.
    pub prefix: forebay_types::Key,
}

/// An external table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDefinition {
    /// Its name, as SQL has it.
    pub name: String,
    /// The `CREATE EXTERNAL TABLE` statement that makes it.
    pub statement: String,
}

/// A mount with its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountStatus {
    /// The mount.
    #[serde(with = "mounts::Told")]
    pub mount: Mount,
    /// Summed over all workers.
    pub counters: StorageCounters,
}

/// What `forebay status` shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The coordinator's version of Forebay.
    pub forebay_version: String,
    /// Its epoch.
    pub epoch: u64,
    /// Since it started.
    pub uptime: Duration,
    /// `sqlite` or `postgres`.
    pub metadata: String,
    /// All mounts.
    pub mounts: Vec<MountStatus>,
    /// All pins, as paths.
    pub pins: Vec<ForebayPath>,
    /// All workers that ever registered since the coordinator's start.
    pub workers: Vec<(WorkerInfo, WorkerState, WorkerReport)>,
}

/// What the coordinator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, VariantNames)]
pub enum ControlReply {
    /// It failed.
    Failed {
        /// What the caller must do.
        kind: ErrorKind,
        /// What happened and the remedy.
        message: String,
    },
    /// To `Register` and `View`.
    View(ClusterView),
    /// To `View` and `News` when nothing has changed.
    Unchanged,
    /// To `Heartbeat`.
    Beat {
        /// The view, when the worker's is old.
        view: Option<ClusterView>,
        /// Its shares of the bounds; they hold until `lease` after this.
        shares: Vec<MountShare>,
        /// How long the worker counts as live without another heartbeat.
        lease: Duration,
        /// The counting period that closed last; a worker that has not reported it does so now.
        window: u64,
        /// What it is to hold and to drop, until it says how that ended.
        orders: Vec<Order>,
        /// Version of the routing table.
        routes: u64,
        /// Version of the credentials; a worker that has another one asks for them.
        credentials: u64,
        /// Whether every other worker tells this one of what it changes, until `lease` after this. None: not all know of it
        /// yet, so it asks shared storage at every open. A number that it has not had before: it may not have been told of
        /// a change, and forgets what it knows of versions and listings before it does anything else.
        hears: Option<u64>,
        /// The oldest view that a live worker has said to have: what a later one says is not known to all yet.
        settled: u64,
    },
    /// To `MountAdd` and `MountSet`.
    Mount(#[serde(with = "mounts::Told")] Mount),
    /// To `Tables`.
    Tables(Vec<TableDefinition>),
    /// To `Budget`.
    Budget(BudgetLease),
    /// To `Status`.
    Status(Box<ClusterStatus>),
    /// To what has no answer but that it is done.
    Done,
    /// To `Routes`.
    Routes(RoutesDelta),
    /// To `Placement`.
    Placement(Box<PlacementStatus>),
    /// To `Scheduler`: the `host:port` of the one that spoke last; none when there is none.
    Scheduler(Option<String>),
    /// To `Tokens`.
    Tokens(Vec<TokenInfo>),
    /// To `WhoAmI`.
    Caller(CallerInfo),
    /// To `Credentials`.
    Credentials {
        /// Grows with every change.
        version: u64,
        /// All of them.
        verifiers: Vec<Verifier>,
    },
    /// To `Unheard` as long as the worker has not forgotten what it knew.
    Unheard {
        /// To ask again with.
        number: u64,
    },
}

impl ControlReply {
    /// The reply that carries an error.
    pub fn failed(error: &Error) -> Self {
        Self::Failed { kind: error.kind(), message: error.message().to_string() }
    }

    /// The error of who asked for another reply than this.
    pub fn unexpected(&self) -> Error {
        Error::internal(format!("unexpected answer of the coordinator: {self:?}: run the same version of forebay on both sides"))
    }
}
