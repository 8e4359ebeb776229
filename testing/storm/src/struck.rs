//! Doing the faults of a cell to a cluster, and undoing them.

use std::io::{self, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_demo::{Fault as StoreFault, S3Server};
use forebay_oracle::{Rule, Violation};
use rustix::process::{Resource, Signal};
use tokio::task::JoinHandle;

use crate::cells::Cell;
use crate::cluster::{Cluster, FailingDisk, Hanging, Pair, Postgres, Process, SmallDisk, SqlRoles, WORKERS, Way};
use crate::faults::{Fault, Whose};
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

/// What a coordinator that stands by may take until it leads.
const FAILOVER: Duration = Duration::from_secs(15);

/// The faults of a cell, begun.
pub struct Struck {
    cell: Cell,
    victim: usize,
    store: Arc<S3Server>,
    again: Option<JoinHandle<()>>,
    working: Option<Working>,
    late: Option<Violation>,
}

impl Struck {
    /// Begins them; `seed` says which of the workers has them, `binary` what is tried.
    pub async fn strike(cell: Cell, cluster: &mut Cluster, store: &Arc<S3Server>, seed: u64, binary: &Path) -> io::Result<Self> {
        let working = if let Some(work) = cell.work { Some(Working::begin(work, cluster, seed).await?) } else { None };
        let victim = match cell.part {
            Some(part) => {
                store.set_latency(BEHIND);
                load::claimant(cluster, part).await?
            }
            None => cell.victim(seed),
        };
        let mut struck = Self { cell, victim, store: Arc::clone(store), again: None, working, late: None };
        for fault in cell.faults {
            struck.begin(*fault, cluster, binary).await?;
        }
        Ok(struck)
    }

    async fn begin(&mut self, fault: Fault, cluster: &mut Cluster, binary: &Path) -> io::Result<()> {
        let address = cluster.reached[self.victim];
        let worker = &mut cluster.workers[self.victim];
        match fault {
            Fault::Calm => {}
            Fault::WorkerStopped => worker.signal(Signal::STOP)?,
            Fault::CoordinatorStopped => cluster.coordinator.signal(Signal::STOP)?,
            Fault::WorkerKilled => worker.kill()?,
            Fault::CoordinatorKilled => cluster.coordinator.kill()?,
            Fault::CoordinatorFailsOver => self.fail_over(cluster)?,
            Fault::GatewayKilled => cluster.gateway.kill()?,
            Fault::ExecutorKilled => sql(cluster)?.executors[0].kill()?,
            Fault::SchedulerKilled => sql(cluster)?.schedulers[0].kill()?,
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
            Fault::ClockJumps(whose, jump) => self.process(whose, cluster).set_clock(jump.secs())?,
            Fault::Drained => cluster.drain(address, true).await?,
            Fault::ScaleIn => {
                cluster.drain(address, true).await?;
                cluster.drained(address).await?;
                cluster.workers[self.victim].end()?;
            }
            Fault::ScaleOut => cluster.spare.start()?,
            Fault::PostgresRestarted => postgres(cluster)?.crash()?,
            Fault::PostgresFailedOver => pair(cluster)?.fail_over()?,
            Fault::FolderHangs => hanging(cluster)?.hang(),
            Fault::Replaced => cluster.upgrade(binary).await?,
        }
        Ok(())
    }

    /// The coordinator is killed; back when the one leads that stood by.
    fn fail_over(&mut self, cluster: &mut Cluster) -> io::Result<()> {
        cluster.coordinator.kill()?;
        let no_standby = || Error::other("no coordinator of the cluster stands by");
        let standby = cluster.beside.standby.as_mut().ok_or_else(no_standby)?;
        cluster.to_coordinator.lead_to(standby.address);
        let took = standby.takes_over()?;
        let late = || {
            Violation::new(Rule::Recovers, format!("a coordinator that stood by leads {took:?} after the other one was killed"))
        };
        self.late = (took > FAILOVER).then(late);
        Ok(())
    }

    /// Ends them. What was killed is started, and not yet up.
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
        for fault in self.cell.faults.iter().rev() {
            self.undo(*fault, cluster).await?;
        }
        Ok(())
    }

    async fn undo(&self, fault: Fault, cluster: &mut Cluster) -> io::Result<()> {
        let (address, spare) = (cluster.reached[self.victim], cluster.reached[WORKERS]);
        let worker = &mut cluster.workers[self.victim];
        match fault {
            // Store and links are as they were.
            Fault::StoreSlow | Fault::StoreRefuses | Fault::StoreAnswersLost | Fault::StoreBodiesCut => Ok(()),
            Fault::Partition | Fault::PartitionOneWay | Fault::LinkSlow => Ok(()),
            // What is done is done.
            Fault::Calm | Fault::Replaced => Ok(()),
            Fault::WorkerStopped => worker.signal(Signal::CONT),
            Fault::CoordinatorStopped => cluster.coordinator.signal(Signal::CONT),
            Fault::WorkerKilled | Fault::ScaleIn => worker.start(),
            Fault::CoordinatorKilled | Fault::CoordinatorFailsOver => cluster.coordinator.start(),
            Fault::GatewayKilled => cluster.gateway.start(),
            Fault::ExecutorKilled => sql(cluster)?.executors[0].start(),
            Fault::SchedulerKilled => sql(cluster)?.schedulers[0].start(),
            Fault::DiskFull => disk(cluster)?.free(),
            Fault::DiskFails => failing(cluster).map(|disk| disk.fail(false)),
            Fault::Descriptors => worker.limit(Resource::Nofile, None),
            Fault::Memory => unlimited(worker),
            Fault::ClockJumps(whose, _) => self.process(whose, cluster).set_clock(0),
            Fault::Drained => cluster.drain(address, false).await,
            Fault::ScaleOut => {
                cluster.drain(spare, true).await?;
                cluster.drained(spare).await?;
                cluster.spare.end()
            }
            Fault::PostgresRestarted => {
                postgres(cluster)?.resume()?;
                // It ends where it has lost its leadership, and whoever runs it starts it again.
                cluster.coordinator.revive().map(drop)
            }
            Fault::PostgresFailedOver => cluster.coordinator.revive().map(drop),
            Fault::FolderHangs => hanging(cluster).map(Hanging::go_on),
        }
    }

    fn process<'a>(&self, whose: Whose, cluster: &'a Cluster) -> &'a Process {
        match whose {
            Whose::Worker => &cluster.workers[self.victim],
            Whose::Coordinator => &cluster.coordinator,
            Whose::Gateway => &cluster.gateway,
        }
    }

    /// What does not hold of what was done, once all is well again.
    pub async fn end(self) -> io::Result<Vec<Violation>> {
        let mut violations: Vec<Violation> = self.late.into_iter().collect();
        if let Some(working) = self.working {
            violations.extend(working.end().await?);
        }
        Ok(violations)
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
