//! Doing a fault to a cluster, and undoing it.

use std::io::{self, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_oracle::Violation;
use forebay_testing::{Fault as StoreFault, S3Server};
use rustix::process::{Resource, Signal};
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, FailingDisk, Hanging, LINKED, Pair, Postgres, Process, SmallDisk, SqlRoles, WORKERS, Way};
use crate::faults::Fault;
use crate::load;
use crate::works::Working;

/// What a store takes that is slow.
const SLOW_STORE: Duration = Duration::from_millis(800);
/// The same where there is to be something that two disks have and the store has not.
const BEHIND: Duration = Duration::from_millis(400);
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

/// A fault that has begun.
pub struct Struck {
    fault: Fault,
    victim: usize,
    store: Arc<S3Server>,
    again: Option<JoinHandle<()>>,
    working: Option<Working>,
}

impl Struck {
    /// Begins a fault; `seed` says which of the workers has it, `binary` what is tried.
    pub async fn strike(
        fault: Fault,
        cluster: &mut Cluster,
        store: &Arc<S3Server>,
        seed: u64,
        binary: &Path,
    ) -> io::Result<Self> {
        let working = match fault.work() {
            Some(work) => Some(Working::begin(work, cluster, seed).await?),
            None => None,
        };
        let part = fault.part();
        let fault = fault.harm();
        let victim = match (part, fault) {
            (Some(part), _) => {
                store.set_latency(BEHIND);
                load::claimant(cluster, part).await?
            }
            (None, Fault::DiskFull | Fault::DiskFails) => 0,
            _ => (seed % WORKERS as u64) as usize,
        };
        let mut struck = Self { fault, victim, store: Arc::clone(store), again: None, working };
        match fault {
            Fault::Drained => cluster.drain(cluster.reached[victim], true).await?,
            Fault::ScaleIn => {
                cluster.drain(cluster.reached[victim], true).await?;
                cluster.drained(cluster.reached[victim]).await?;
                cluster.workers[victim].end()?;
            }
            Fault::ScaleOut => cluster.spare.start()?,
            Fault::RollingUpgrade => cluster.upgrade(binary).await?,
            _ => struck.begin(cluster)?,
        }
        Ok(struck)
    }

    fn begin(&mut self, cluster: &mut Cluster) -> io::Result<()> {
        let worker = &mut cluster.workers[self.victim];
        match self.fault {
            // What is done to workers in good order has been done.
            Fault::Calm | Fault::Drained | Fault::ScaleIn | Fault::ScaleOut | Fault::RollingUpgrade => {}
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
            Fault::DiskFails => failing(cluster)?.fail(true),
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
            Fault::PostgresFailedOver => pair(cluster)?.fail_over()?,
            Fault::FolderHangs => hanging(cluster)?.hang(),
            Fault::SqlExecutorKilled => sql(cluster)?.executors[0].kill()?,
            Fault::SqlSchedulerKilled => sql(cluster)?.schedulers[0].kill()?,
            Fault::ShardsWorkerKilled
            | Fault::ShardsWorkerStopped
            | Fault::ShardsCoordinatorKilled
            | Fault::ShardsStoreRefuses
            | Fault::ShardsResharded
            | Fault::ShardsReshardedWorkerKilled
            | Fault::ShardsMergedWorkerKilled
            | Fault::ShardsRefreshed
            | Fault::ShardsRefreshedWorkerKilled
            | Fault::ShardsTwoDisksWriterKilled
            | Fault::ShardsTwoDisksSecondKilled
            | Fault::ShardsTwoDisksStoreSlow
            | Fault::SqlWorkerKilled
            | Fault::SqlCoordinatorKilled
            | Fault::SqlRollingRestart => {
                unreachable!("the harm of a fault under another load")
            }
        }
        Ok(())
    }

    /// Ends it. What was killed is started, and not yet up.
    pub async fn heal(&mut self, cluster: &mut Cluster) -> io::Result<()> {
        if let Some(again) = self.again.take() {
            again.abort();
        }
        if let Some(working) = &mut self.working {
            working.stop().await;
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
            Fault::DiskFails => failing(cluster).map(|disk| disk.fail(false)),
            Fault::Descriptors => worker.limit(Resource::Nofile, None),
            Fault::Memory => unlimited(worker),
            Fault::SqlExecutorKilled => sql(cluster)?.executors[0].start(),
            Fault::SqlSchedulerKilled => sql(cluster)?.schedulers[0].start(),
            Fault::PostgresRestarted => {
                postgres(cluster)?.resume()?;
                // It ends where it has lost its leadership, and whoever runs it starts it again.
                cluster.coordinator.revive().map(drop)
            }
            Fault::PostgresFailedOver => cluster.coordinator.revive().map(drop),
            Fault::FolderHangs => hanging(cluster).map(Hanging::go_on),
            _ => Ok(()),
        }
    }

    /// What does not hold of what was done to a dataset, once all is well again.
    pub async fn end(self) -> io::Result<Vec<Violation>> {
        if let Some(working) = self.working { working.end().await } else { Ok(Vec::new()) }
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
    cluster.beside.disk.as_ref().ok_or_else(|| Error::other("the cluster has no small disk"))
}

fn sql(cluster: &mut Cluster) -> io::Result<&mut SqlRoles> {
    cluster.beside.sql.as_mut().ok_or_else(|| Error::other("the cluster has no scheduler"))
}

fn failing(cluster: &Cluster) -> io::Result<&FailingDisk> {
    cluster.beside.failing.as_ref().ok_or_else(|| Error::other("the cluster has no disk that may fail"))
}

fn hanging(cluster: &Cluster) -> io::Result<&Hanging> {
    cluster.beside.hanging.as_ref().ok_or_else(|| Error::other("the cluster has no folder that may hang"))
}

fn pair(cluster: &Cluster) -> io::Result<&Pair> {
    cluster.beside.pair.as_ref().ok_or_else(|| Error::other("the cluster's metadata is not in two servers"))
}

fn postgres(cluster: &Cluster) -> io::Result<&Postgres> {
    cluster.beside.postgres.as_ref().ok_or_else(|| Error::other("the cluster's metadata is not in PostgreSQL"))
}
