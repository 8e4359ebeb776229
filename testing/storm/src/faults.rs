//! What is done to a cluster: one fault at a time, begun and ended.

use std::io::{self, Error};
use std::sync::Arc;
use std::time::Duration;

use forebay_testing::{Fault as StoreFault, S3Server};
use rustix::process::{Resource, Signal};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, LINKED, Postgres, Process, SmallDisk, SqlRoles, WORKERS, Wanted, Way};
use crate::load::Kind;

/// What a store takes that is slow.
const SLOW_STORE: Duration = Duration::from_millis(800);
/// Requests that a store refuses, or more than come in the time.
const MANY: usize = 1 << 20;
/// Pause between two answers that are lost, or broken off.
const FAULT_EVERY: Duration = Duration::from_millis(100);
/// Where an answer is broken off, in bytes.
const CUT_AT: u64 = 5_000;
/// What a slow link carries, in bytes a second a connection.
const SLOW_LINK: u64 = 512 << 10;
/// Memory that a process has left under a limit, in bytes of addresses.
const MEMORY_LEFT: u64 = 8 << 20;
/// Descriptors that a process has left under a limit.
const DESCRIPTORS_LEFT: u64 = 2;

/// A fault that can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: what the others are compared with.
    Calm,
    /// A worker is stopped (SIGSTOP), and goes on.
    WorkerStopped,
    /// The coordinator is stopped, and goes on.
    CoordinatorStopped,
    /// A worker is killed, and started again.
    WorkerKilled,
    /// The coordinator is killed, and started again.
    CoordinatorKilled,
    /// The gateway is killed, and started again.
    GatewayKilled,
    /// Each request to the store takes longer.
    StoreSlow,
    /// The store answers 503 to everything.
    StoreRefuses,
    /// The store does what it is asked, but ten answers a second are lost.
    StoreAnswersLost,
    /// Ten bodies a second are broken off.
    StoreBodiesCut,
    /// The disk of a worker is full.
    DiskFull,
    /// A worker can open nothing more.
    Descriptors,
    /// A worker gets no more memory; it may end.
    Memory,
    /// Nothing comes to a worker or from it, but for the store.
    Partition,
    /// Nothing comes to a worker; what it sends arrives.
    PartitionOneWay,
    /// A worker's links are slow.
    LinkSlow,
    /// A worker is drained, and takes part again.
    Drained,
    /// A worker is drained and stopped, and started again.
    ScaleIn,
    /// One more worker joins, and is drained and stopped again.
    ScaleOut,
    /// PostgreSQL crashes, and is started again.
    PostgresRestarted,
    /// Under clients of a dataset of shards, as the others below: a worker is killed, and started again.
    ShardsWorkerKilled,
    /// A worker is stopped, and goes on.
    ShardsWorkerStopped,
    /// The coordinator is killed, and started again.
    ShardsCoordinatorKilled,
    /// The store answers 503 to everything.
    ShardsStoreRefuses,
    /// Under statements in the process that asks and on executors, as the others below: a worker is killed, and started again.
    SqlWorkerKilled,
    /// An executor is killed, and started again.
    SqlExecutorKilled,
    /// The scheduler is killed while another one stands by, and started again.
    SqlSchedulerKilled,
    /// The coordinator is killed, and started again.
    SqlCoordinatorKilled,
}

/// All that can be called, in the order of the table.
pub const FAULTS: [Fault; 28] = [
    Fault::Calm,
    Fault::WorkerStopped,
    Fault::WorkerKilled,
    Fault::CoordinatorStopped,
    Fault::CoordinatorKilled,
    Fault::GatewayKilled,
    Fault::StoreSlow,
    Fault::StoreRefuses,
    Fault::StoreAnswersLost,
    Fault::StoreBodiesCut,
    Fault::DiskFull,
    Fault::Descriptors,
    Fault::Memory,
    Fault::Partition,
    Fault::PartitionOneWay,
    Fault::LinkSlow,
    Fault::Drained,
    Fault::ScaleIn,
    Fault::ScaleOut,
    Fault::PostgresRestarted,
    Fault::ShardsWorkerKilled,
    Fault::ShardsWorkerStopped,
    Fault::ShardsCoordinatorKilled,
    Fault::ShardsStoreRefuses,
    Fault::SqlWorkerKilled,
    Fault::SqlExecutorKilled,
    Fault::SqlSchedulerKilled,
    Fault::SqlCoordinatorKilled,
];

/// What is not tried yet, and why.
pub const NOT_TRIED: [(&str, &str); 5] = [
    ("failing disk", "wants a device that fails on demand (device mapper)"),
    ("clock ±10 min", "wants a clock of the process's own (time namespace or a preloaded library)"),
    ("hung NFS", "wants an NFS client of the kernel's"),
    ("PostgreSQL failed over", "wants a second server that follows the first"),
    ("rolling upgrade", "wants the binary of another version"),
];

impl Fault {
    /// The word for it on the command line and in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::WorkerStopped => "worker-stopped",
            Self::CoordinatorStopped => "coordinator-stopped",
            Self::WorkerKilled => "worker-killed",
            Self::CoordinatorKilled => "coordinator-killed",
            Self::GatewayKilled => "gateway-killed",
            Self::StoreSlow => "store-slow",
            Self::StoreRefuses => "store-503",
            Self::StoreAnswersLost => "store-answers-lost",
            Self::StoreBodiesCut => "store-bodies-cut",
            Self::DiskFull => "disk-full",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Partition => "partition",
            Self::PartitionOneWay => "partition-one-way",
            Self::LinkSlow => "link-slow",
            Self::Drained => "drain",
            Self::ScaleIn => "scale-in",
            Self::ScaleOut => "scale-out",
            Self::PostgresRestarted => "postgres-restarted",
            Self::ShardsWorkerKilled => "shards-worker-killed",
            Self::ShardsWorkerStopped => "shards-worker-stopped",
            Self::ShardsCoordinatorKilled => "shards-coordinator-killed",
            Self::ShardsStoreRefuses => "shards-store-503",
            Self::SqlWorkerKilled => "sql-worker-killed",
            Self::SqlExecutorKilled => "sql-executor-killed",
            Self::SqlSchedulerKilled => "sql-scheduler-killed",
            Self::SqlCoordinatorKilled => "sql-coordinator-killed",
        }
    }

    /// What clients do meanwhile.
    pub fn load(self) -> Kind {
        match self {
            Self::ShardsWorkerKilled | Self::ShardsWorkerStopped | Self::ShardsCoordinatorKilled | Self::ShardsStoreRefuses => {
                Kind::Records
            }
            Self::SqlWorkerKilled | Self::SqlExecutorKilled | Self::SqlSchedulerKilled | Self::SqlCoordinatorKilled => {
                Kind::Statements
            }
            _ => Kind::Mixed,
        }
    }

    /// What is done, whatever clients do meanwhile.
    fn harm(self) -> Self {
        match self {
            Self::ShardsWorkerKilled | Self::SqlWorkerKilled => Self::WorkerKilled,
            Self::ShardsWorkerStopped => Self::WorkerStopped,
            Self::ShardsCoordinatorKilled | Self::SqlCoordinatorKilled => Self::CoordinatorKilled,
            Self::ShardsStoreRefuses => Self::StoreRefuses,
            _ => self,
        }
    }

    /// What the cluster must have for it.
    pub fn wants(self) -> Wanted {
        Wanted {
            postgres: self == Self::PostgresRestarted,
            small_disk: self == Self::DiskFull,
            sql: self.load() == Kind::Statements,
        }
    }

    /// Whether somebody stands by for what is killed.
    pub fn has_standby(self) -> bool {
        self == Self::SqlSchedulerKilled
    }

    /// Why it can't be tried here; none where it can.
    pub fn hindrance(self) -> Option<&'static str> {
        match self {
            Self::DiskFull if !SmallDisk::may_mount() => Some("needs root, which may mount a small disk"),
            Self::PostgresRestarted if !Postgres::is_installed() => Some("needs PostgreSQL: make test-deps"),
            _ => None,
        }
    }

    /// Whether temporary data may be lost by it: a worker ends, or is away for longer than its lease.
    pub fn may_lose(self) -> bool {
        let stopped_or_killed = matches!(self, Self::WorkerStopped | Self::WorkerKilled);
        stopped_or_killed || matches!(self, Self::Memory | Self::Descriptors | Self::Partition | Self::PartitionOneWay)
    }

    /// Whether a process may end by itself.
    pub fn may_end(self) -> bool {
        self == Self::Memory
    }
}

/// A fault that has begun.
pub struct Struck {
    fault: Fault,
    victim: usize,
    store: Arc<S3Server>,
    again: Option<JoinHandle<()>>,
}

impl Struck {
    /// Begins a fault; `seed` says which of the workers has it.
    pub async fn strike(fault: Fault, cluster: &mut Cluster, store: &Arc<S3Server>, seed: u64) -> io::Result<Self> {
        let fault = fault.harm();
        let victim = match fault {
            Fault::DiskFull => 0,
            _ => (seed % WORKERS as u64) as usize,
        };
        let mut struck = Self { fault, victim, store: Arc::clone(store), again: None };
        match fault {
            Fault::Drained => cluster.drain(cluster.reached[victim], true).await?,
            Fault::ScaleIn => {
                cluster.drain(cluster.reached[victim], true).await?;
                cluster.drained(cluster.reached[victim]).await?;
                cluster.workers[victim].end()?;
            }
            Fault::ScaleOut => cluster.spare.start()?,
            _ => struck.begin(cluster)?,
        }
        Ok(struck)
    }

    fn begin(&mut self, cluster: &mut Cluster) -> io::Result<()> {
        let worker = &mut cluster.workers[self.victim];
        match self.fault {
            // What is done to workers in good order has been done.
            Fault::Calm | Fault::Drained | Fault::ScaleIn | Fault::ScaleOut => {}
            Fault::WorkerStopped => worker.signal(Signal::STOP)?,
            Fault::CoordinatorStopped => cluster.coordinator.signal(Signal::STOP)?,
            Fault::WorkerKilled => worker.kill()?,
            Fault::CoordinatorKilled => cluster.coordinator.kill()?,
            Fault::GatewayKilled => cluster.gateway.kill()?,
            Fault::StoreSlow => self.store.set_latency(SLOW_STORE),
            Fault::StoreRefuses => self.store.inject(StoreFault::Status(503), MANY),
            Fault::StoreAnswersLost => self.again = Some(repeat(Arc::clone(&self.store), StoreFault::LoseAnswer)),
            Fault::StoreBodiesCut => self.again = Some(repeat(Arc::clone(&self.store), StoreFault::CutAfter(CUT_AT))),
            Fault::DiskFull => disk(cluster)?.fill()?,
            Fault::Descriptors => worker.limit(Resource::Nofile, Some(worker.descriptors()? + DESCRIPTORS_LEFT))?,
            Fault::Memory => worker.limit(Resource::As, Some(worker.address_bytes()? + MEMORY_LEFT))?,
            Fault::Partition => {
                cluster.to_worker.set(Way::Cut, Way::Cut);
                cluster.to_coordinator.set(Way::Cut, Way::Cut);
            }
            // What comes to the worker: questions of others, and answers of the coordinator.
            Fault::PartitionOneWay => {
                cluster.to_worker.set(Way::Cut, Way::Open);
                cluster.to_coordinator.set(Way::Open, Way::Cut);
            }
            Fault::LinkSlow => {
                cluster.to_worker.set(Way::Slow(SLOW_LINK), Way::Slow(SLOW_LINK));
                cluster.to_coordinator.set(Way::Slow(SLOW_LINK), Way::Slow(SLOW_LINK));
            }
            Fault::PostgresRestarted => postgres(cluster)?.crash()?,
            Fault::SqlExecutorKilled => sql(cluster)?.executors[0].kill()?,
            Fault::SqlSchedulerKilled => sql(cluster)?.schedulers[0].kill()?,
            Fault::ShardsWorkerKilled
            | Fault::ShardsWorkerStopped
            | Fault::ShardsCoordinatorKilled
            | Fault::ShardsStoreRefuses
            | Fault::SqlWorkerKilled
            | Fault::SqlCoordinatorKilled => {
                unreachable!("the harm of a fault under another load")
            }
        }
        Ok(())
    }

    /// Ends it. What was killed is started, and not yet up.
    pub async fn heal(mut self, cluster: &mut Cluster) -> io::Result<()> {
        if let Some(again) = self.again.take() {
            again.abort();
        }
        self.store.clear_faults();
        self.store.set_latency(Duration::ZERO);
        cluster.to_worker.set(Way::Open, Way::Open);
        cluster.to_coordinator.set(Way::Open, Way::Open);
        let spare = cluster.reached[WORKERS];
        match self.fault {
            Fault::Drained => return cluster.drain(cluster.reached[self.victim], false).await,
            Fault::ScaleOut => {
                cluster.drain(spare, true).await?;
                cluster.drained(spare).await?;
                return cluster.spare.end();
            }
            _ => {}
        }
        let worker = &mut cluster.workers[self.victim];
        match self.fault {
            Fault::WorkerStopped => worker.signal(Signal::CONT),
            Fault::CoordinatorStopped => cluster.coordinator.signal(Signal::CONT),
            Fault::WorkerKilled | Fault::ScaleIn => worker.start(),
            Fault::CoordinatorKilled => cluster.coordinator.start(),
            Fault::GatewayKilled => cluster.gateway.start(),
            Fault::DiskFull => disk(cluster)?.free(),
            Fault::Descriptors => worker.limit(Resource::Nofile, None),
            Fault::Memory => unlimited(worker),
            Fault::SqlExecutorKilled => sql(cluster)?.executors[0].start(),
            Fault::SqlSchedulerKilled => sql(cluster)?.schedulers[0].start(),
            Fault::PostgresRestarted => {
                postgres(cluster)?.resume()?;
                // It ends where it has lost its leadership, and whoever runs it starts it again.
                cluster.coordinator.revive().map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The worker that has it, where a worker has it.
    pub fn victim(&self) -> usize {
        match self.fault {
            Fault::Partition | Fault::PartitionOneWay | Fault::LinkSlow => LINKED,
            _ => self.victim,
        }
    }
}

/// A process that memory was refused may have ended.
fn unlimited(worker: &mut Process) -> io::Result<()> {
    if !worker.revive()? {
        worker.limit(Resource::As, None)?;
    }
    Ok(())
}

fn repeat(store: Arc<S3Server>, fault: StoreFault) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            store.inject(fault, 1);
            tokio::time::sleep(FAULT_EVERY).await;
        }
    })
}

fn disk(cluster: &Cluster) -> io::Result<&SmallDisk> {
    cluster.disk.as_ref().ok_or_else(|| Error::other("the cluster has no small disk"))
}

fn sql(cluster: &mut Cluster) -> io::Result<&mut SqlRoles> {
    cluster.sql.as_mut().ok_or_else(|| Error::other("the cluster has no scheduler"))
}

fn postgres(cluster: &Cluster) -> io::Result<&Postgres> {
    cluster.postgres.as_ref().ok_or_else(|| Error::other("the cluster's metadata is not in PostgreSQL"))
}
