//! What can be done to a cluster, one fault at a time, and what goes with each.

use forebay_shard_store::Acknowledged;

use crate::cluster::{Postgres, SmallDisk, Wanted, may_mount};
use crate::load::{Kind, Part};
use crate::works::Work;

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
    /// All reads and writes of a worker's disk fail.
    DiskFails,
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
    /// PostgreSQL crashes for good, and a server that followed it takes its place.
    PostgresFailedOver,
    /// A folder that is mounted answers no more.
    FolderHangs,
    /// The processes are of another binary, and are replaced one after the other by those of the one that is tried; where there is no other
    /// one, by those of the same.
    RollingUpgrade,
    /// Under clients of a dataset of shards, as the others below: a worker is killed, and started again.
    ShardsWorkerKilled,
    /// A worker is stopped, and goes on.
    ShardsWorkerStopped,
    /// The coordinator is killed, and started again.
    ShardsCoordinatorKilled,
    /// The store answers 503 to everything.
    ShardsStoreRefuses,
    /// The dataset is given other shards again and again, by processes that are killed in the midst of it.
    ShardsResharded,
    /// The same, while a worker is killed and started again.
    ShardsReshardedWorkerKilled,
    /// The dataset's shards are merged again and again, while a worker is killed and started again.
    ShardsMergedWorkerKilled,
    /// Another dataset, which follows objects that change, is refreshed again and again, by processes that are killed in the midst of it.
    ShardsRefreshed,
    /// The same, while a worker is killed and started again.
    ShardsRefreshedWorkerKilled,
    /// Under clients of a dataset whose changes two workers' disks acknowledge, as the two below, with a slow store: the worker is killed that
    /// writes, with changes that the store has not, and started again.
    ShardsTwoDisksWriterKilled,
    /// The same of the second worker.
    ShardsTwoDisksSecondKilled,
    /// Each request to the store takes longer than writers may be ahead of it.
    ShardsTwoDisksStoreSlow,
    /// Under statements in the process that asks and on executors, as the others below: a worker is killed, and started again.
    SqlWorkerKilled,
    /// An executor is killed, and started again.
    SqlExecutorKilled,
    /// The scheduler is killed while another one stands by, and started again.
    SqlSchedulerKilled,
    /// The coordinator is killed, and started again.
    SqlCoordinatorKilled,
    /// All processes are started again, one after the other, schedulers and executors too. Of one binary: these and who asks them change together.
    SqlRollingRestart,
}

/// All that can be called, in the order of the table.
pub const FAULTS: [Fault; 41] = [
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
    Fault::DiskFails,
    Fault::Descriptors,
    Fault::Memory,
    Fault::Partition,
    Fault::PartitionOneWay,
    Fault::LinkSlow,
    Fault::Drained,
    Fault::ScaleIn,
    Fault::ScaleOut,
    Fault::PostgresRestarted,
    Fault::PostgresFailedOver,
    Fault::FolderHangs,
    Fault::RollingUpgrade,
    Fault::ShardsWorkerKilled,
    Fault::ShardsWorkerStopped,
    Fault::ShardsCoordinatorKilled,
    Fault::ShardsStoreRefuses,
    Fault::ShardsResharded,
    Fault::ShardsReshardedWorkerKilled,
    Fault::ShardsMergedWorkerKilled,
    Fault::ShardsRefreshed,
    Fault::ShardsRefreshedWorkerKilled,
    Fault::ShardsTwoDisksWriterKilled,
    Fault::ShardsTwoDisksSecondKilled,
    Fault::ShardsTwoDisksStoreSlow,
    Fault::SqlWorkerKilled,
    Fault::SqlExecutorKilled,
    Fault::SqlSchedulerKilled,
    Fault::SqlCoordinatorKilled,
    Fault::SqlRollingRestart,
];

/// What is not tried yet, and why.
pub const NOT_TRIED: [(&str, &str); 1] =
    [("clock ±10 min", "wants a clock of the process's own (time namespace or a preloaded library)")];

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
            Self::DiskFails => "disk-fails",
            Self::Descriptors => "descriptors",
            Self::Memory => "memory",
            Self::Partition => "partition",
            Self::PartitionOneWay => "partition-one-way",
            Self::LinkSlow => "link-slow",
            Self::Drained => "drain",
            Self::ScaleIn => "scale-in",
            Self::ScaleOut => "scale-out",
            Self::PostgresRestarted => "postgres-restarted",
            Self::PostgresFailedOver => "postgres-failed-over",
            Self::FolderHangs => "folder-hangs",
            Self::RollingUpgrade => "rolling-upgrade",
            Self::ShardsWorkerKilled => "shards-worker-killed",
            Self::ShardsWorkerStopped => "shards-worker-stopped",
            Self::ShardsCoordinatorKilled => "shards-coordinator-killed",
            Self::ShardsStoreRefuses => "shards-store-503",
            Self::ShardsResharded => "shards-reshard",
            Self::ShardsReshardedWorkerKilled => "shards-reshard-worker-killed",
            Self::ShardsMergedWorkerKilled => "shards-merge-worker-killed",
            Self::ShardsRefreshed => "shards-refresh",
            Self::ShardsRefreshedWorkerKilled => "shards-refresh-worker-killed",
            Self::ShardsTwoDisksWriterKilled => "shards-two-disks-writer-killed",
            Self::ShardsTwoDisksSecondKilled => "shards-two-disks-second-killed",
            Self::ShardsTwoDisksStoreSlow => "shards-two-disks-store-slow",
            Self::SqlWorkerKilled => "sql-worker-killed",
            Self::SqlExecutorKilled => "sql-executor-killed",
            Self::SqlSchedulerKilled => "sql-scheduler-killed",
            Self::SqlCoordinatorKilled => "sql-coordinator-killed",
            Self::SqlRollingRestart => "sql-rolling-restart",
        }
    }

    /// What clients do meanwhile.
    pub fn load(self) -> Kind {
        match self {
            Self::ShardsWorkerKilled
            | Self::ShardsWorkerStopped
            | Self::ShardsCoordinatorKilled
            | Self::ShardsStoreRefuses
            | Self::ShardsResharded
            | Self::ShardsReshardedWorkerKilled
            | Self::ShardsMergedWorkerKilled
            | Self::ShardsRefreshed
            | Self::ShardsRefreshedWorkerKilled => Kind::Records(Acknowledged::Storage),
            Self::ShardsTwoDisksWriterKilled | Self::ShardsTwoDisksSecondKilled | Self::ShardsTwoDisksStoreSlow => {
                Kind::Records(Acknowledged::TwoWorkers)
            }
            Self::SqlWorkerKilled
            | Self::SqlExecutorKilled
            | Self::SqlSchedulerKilled
            | Self::SqlCoordinatorKilled
            | Self::SqlRollingRestart => Kind::Statements,
            _ => Kind::Mixed,
        }
    }

    /// What is done, whatever clients do meanwhile.
    pub fn harm(self) -> Self {
        match self {
            Self::ShardsWorkerKilled
            | Self::ShardsReshardedWorkerKilled
            | Self::ShardsMergedWorkerKilled
            | Self::ShardsRefreshedWorkerKilled
            | Self::ShardsTwoDisksWriterKilled
            | Self::ShardsTwoDisksSecondKilled
            | Self::SqlWorkerKilled => Self::WorkerKilled,
            // What is done to the dataset is beside that.
            Self::ShardsResharded | Self::ShardsRefreshed => Self::Calm,
            Self::ShardsWorkerStopped => Self::WorkerStopped,
            Self::ShardsCoordinatorKilled | Self::SqlCoordinatorKilled => Self::CoordinatorKilled,
            Self::ShardsStoreRefuses => Self::StoreRefuses,
            Self::ShardsTwoDisksStoreSlow => Self::StoreSlow,
            Self::SqlRollingRestart => Self::RollingUpgrade,
            _ => self,
        }
    }

    /// Which of the workers it is done to, by what they have of the dataset; none where the seed says it.
    pub fn part(self) -> Option<Part> {
        match self {
            Self::ShardsTwoDisksWriterKilled => Some(Part::Writer),
            Self::ShardsTwoDisksSecondKilled => Some(Part::Second),
            _ => None,
        }
    }

    /// What is done to a dataset meanwhile.
    pub fn work(self) -> Option<Work> {
        match self {
            Self::ShardsResharded | Self::ShardsReshardedWorkerKilled => Some(Work::Reshards),
            Self::ShardsMergedWorkerKilled => Some(Work::Merges),
            Self::ShardsRefreshed | Self::ShardsRefreshedWorkerKilled => Some(Work::Refreshes),
            _ => None,
        }
    }

    /// What the cluster must have for it.
    pub fn wants(self) -> Wanted {
        Wanted {
            postgres: self == Self::PostgresRestarted,
            pair: self == Self::PostgresFailedOver,
            small_disk: self == Self::DiskFull,
            sql: self.load() == Kind::Statements,
            hanging: self == Self::FolderHangs,
            failing_disk: self == Self::DiskFails,
            group: None,
        }
    }

    /// Whether somebody stands by for what is killed.
    pub fn has_standby(self) -> bool {
        self == Self::SqlSchedulerKilled
    }

    /// Whether its processes are of the other binary at first, where there is one.
    pub fn begins_with_other(self) -> bool {
        self == Self::RollingUpgrade
    }

    /// Why it can't be tried here; none where it can.
    pub fn hindrance(self) -> Option<&'static str> {
        match self {
            Self::DiskFull if !SmallDisk::may_mount() => Some("needs root, which may mount a small disk"),
            Self::PostgresRestarted if !Postgres::is_installed() => Some("needs PostgreSQL: make test-deps"),
            Self::PostgresFailedOver if !Postgres::may_be_followed() => Some("needs PostgreSQL with pg_basebackup"),
            Self::FolderHangs | Self::DiskFails if !may_mount() => {
                Some("needs root and /dev/fuse: a file system of the storm's own")
            }
            _ => None,
        }
    }

    /// Whether temporary data may be lost by it: a worker ends, or is away for longer than its lease.
    pub fn may_lose(self) -> bool {
        let stopped_or_killed = matches!(self, Self::WorkerStopped | Self::WorkerKilled);
        stopped_or_killed
            || matches!(self, Self::DiskFails | Self::Memory | Self::Descriptors | Self::Partition | Self::PartitionOneWay)
    }

    /// Whether a process may end by itself.
    pub fn may_end(self) -> bool {
        self == Self::Memory
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_fault_has_a_name_of_its_own_and_does_harm_that_can_be_done() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), FAULTS.len());
        for fault in FAULTS {
            assert_eq!(fault.harm().harm(), fault.harm(), "{fault:?}");
        }
    }

    #[test]
    fn a_worker_that_is_hit_for_what_it_has_is_killed_where_two_disks_acknowledge() {
        let hit: Vec<Fault> = FAULTS.into_iter().filter(|fault| fault.part().is_some()).collect();
        assert_eq!(hit.len(), 2);
        for fault in hit {
            assert_eq!((fault.harm(), fault.load()), (Fault::WorkerKilled, Kind::Records(Acknowledged::TwoWorkers)));
        }
    }
}
