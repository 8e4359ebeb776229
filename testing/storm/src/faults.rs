//! What can be done to a cluster, one fault at a time, and what goes with each.

use forebay_shard_store::Acknowledged;

use crate::cluster::{Postgres, SmallDisk, Wanted, may_mount};
use crate::load::{Kind, Part};
use crate::works::Work;

/// The faults, in the order of the table, each with its word on the command line and there.
macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident = $name:literal,)*) => {
        /// A fault that can be called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        /// All that can be called, in the order of the table.
        pub const FAULTS: [Fault; [$($name),*].len()] = [$(Fault::$fault),*];

        impl Fault {
            /// The word for it on the command line and in the table.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$fault => $name,)*
                }
            }
        }
    };
}

faults! {
    /// Nothing: what the others are compared with.
    Calm = "calm",
    /// A worker is stopped (SIGSTOP), and goes on.
    WorkerStopped = "worker-stopped",
    /// A worker is killed, and started again.
    WorkerKilled = "worker-killed",
    /// The coordinator is stopped, and goes on.
    CoordinatorStopped = "coordinator-stopped",
    /// The coordinator is killed, and started again.
    CoordinatorKilled = "coordinator-killed",
    /// The gateway is killed, and started again.
    GatewayKilled = "gateway-killed",
    /// Each request to the store takes longer.
    StoreSlow = "store-slow",
    /// The store answers 503 to everything.
    StoreRefuses = "store-503",
    /// The store does what it is asked, but ten answers a second are lost.
    StoreAnswersLost = "store-answers-lost",
    /// Ten bodies a second are broken off.
    StoreBodiesCut = "store-bodies-cut",
    /// The disk of a worker is full.
    DiskFull = "disk-full",
    /// All reads and writes of a worker's disk fail.
    DiskFails = "disk-fails",
    /// A worker can open nothing more.
    Descriptors = "descriptors",
    /// A worker gets no more memory; it may end.
    Memory = "memory",
    /// Nothing comes to a worker or from it, but for the store.
    Partition = "partition",
    /// Nothing comes to a worker; what it sends arrives.
    PartitionOneWay = "partition-one-way",
    /// A worker's links are slow.
    LinkSlow = "link-slow",
    /// A worker is drained, and takes part again.
    Drained = "drain",
    /// A worker is drained and stopped, and started again.
    ScaleIn = "scale-in",
    /// One more worker joins, and is drained and stopped again.
    ScaleOut = "scale-out",
    /// PostgreSQL crashes, and is started again.
    PostgresRestarted = "postgres-restarted",
    /// PostgreSQL crashes for good, and a server that followed it takes its place.
    PostgresFailedOver = "postgres-failed-over",
    /// A folder that is mounted answers no more.
    FolderHangs = "folder-hangs",
    /// The processes are of another binary, and are replaced one after the other by those of the one that is tried; where there is no other
    /// one, by those of the same.
    RollingUpgrade = "rolling-upgrade",
    /// Under clients of a dataset of shards, as the others below: a worker is killed, and started again.
    ShardsWorkerKilled = "shards-worker-killed",
    /// A worker is stopped, and goes on.
    ShardsWorkerStopped = "shards-worker-stopped",
    /// The coordinator is killed, and started again.
    ShardsCoordinatorKilled = "shards-coordinator-killed",
    /// The store answers 503 to everything.
    ShardsStoreRefuses = "shards-store-503",
    /// The dataset is given other shards again and again, by processes that are killed in the midst of it.
    ShardsResharded = "shards-reshard",
    /// The same, while a worker is killed and started again.
    ShardsReshardedWorkerKilled = "shards-reshard-worker-killed",
    /// The dataset's shards are merged again and again, while a worker is killed and started again.
    ShardsMergedWorkerKilled = "shards-merge-worker-killed",
    /// Another dataset, which follows objects that change, is refreshed again and again, by processes that are killed in the midst of it.
    ShardsRefreshed = "shards-refresh",
    /// The same, while a worker is killed and started again.
    ShardsRefreshedWorkerKilled = "shards-refresh-worker-killed",
    /// Under clients of a dataset whose changes two workers' disks acknowledge, as the two below, with a slow store: the worker is killed that
    /// writes, with changes that the store has not, and started again.
    ShardsTwoDisksWriterKilled = "shards-two-disks-writer-killed",
    /// The same of the second worker.
    ShardsTwoDisksSecondKilled = "shards-two-disks-second-killed",
    /// Each request to the store takes longer than writers may be ahead of it.
    ShardsTwoDisksStoreSlow = "shards-two-disks-store-slow",
    /// Under statements in the process that asks and on executors, as the others below: a worker is killed, and started again.
    SqlWorkerKilled = "sql-worker-killed",
    /// An executor is killed, and started again.
    SqlExecutorKilled = "sql-executor-killed",
    /// The scheduler is killed while another one stands by, and started again.
    SqlSchedulerKilled = "sql-scheduler-killed",
    /// The coordinator is killed, and started again.
    SqlCoordinatorKilled = "sql-coordinator-killed",
    /// All processes are started again, one after the other, schedulers and executors too. Of one binary: these and who asks them change together.
    SqlRollingRestart = "sql-rolling-restart",
}

/// What is not tried yet, and why.
pub const NOT_TRIED: [(&str, &str); 1] =
    [("clock ±10 min", "wants a clock of the process's own (time namespace or a preloaded library)")];

impl Fault {
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
