//! The cells of the table, in its order: what is done to a cluster, while its clients do what.

use forebay_shard_store::Acknowledged;

use crate::cluster::{WORKERS, Wanted};
use crate::faults::{Fault, Jump, Whose};
use crate::load::{Kind, Part};
use crate::works::Work;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The word for it on the command line and in the table.
    pub name: &'static str,
    /// What clients do meanwhile.
    pub load: Kind,
    /// What is done, the first one first; all of it is undone at one time, the last one first.
    pub faults: &'static [Fault],
    /// What is done to a dataset meanwhile.
    pub work: Option<Work>,
    /// Which of the workers it is done to, by what they have of the dataset; none where the seed says it.
    pub part: Option<Part>,
}

/// The cells, in the order of the table.
pub const CELLS: &[Cell] = &[
    mixed("calm", &[Fault::Calm]),
    mixed("worker-stopped", &[Fault::WorkerStopped]),
    mixed("worker-killed", &[Fault::WorkerKilled]),
    mixed("coordinator-stopped", &[Fault::CoordinatorStopped]),
    mixed("coordinator-killed", &[Fault::CoordinatorKilled]),
    mixed("coordinator-failed-over", &[Fault::CoordinatorFailsOver]),
    mixed("gateway-killed", &[Fault::GatewayKilled]),
    mixed("store-slow", &[Fault::StoreSlow]),
    mixed("store-503", &[Fault::StoreRefuses]),
    mixed("store-answers-lost", &[Fault::StoreAnswersLost]),
    mixed("store-bodies-cut", &[Fault::StoreBodiesCut]),
    mixed("disk-full", &[Fault::DiskFull]),
    mixed("disk-fails", &[Fault::DiskFails]),
    mixed("descriptors", &[Fault::Descriptors]),
    mixed("memory", &[Fault::Memory]),
    mixed("partition", &[Fault::Partition]),
    mixed("partition-one-way", &[Fault::PartitionOneWay]),
    mixed("link-slow", &[Fault::LinkSlow]),
    mixed("clock-worker-ahead", &[Fault::ClockJumps(Whose::Worker, Jump::Ahead)]),
    mixed("clock-worker-back", &[Fault::ClockJumps(Whose::Worker, Jump::Back)]),
    mixed("clock-coordinator-ahead", &[Fault::ClockJumps(Whose::Coordinator, Jump::Ahead)]),
    mixed("clock-coordinator-back", &[Fault::ClockJumps(Whose::Coordinator, Jump::Back)]),
    mixed("clock-gateway-ahead", &[Fault::ClockJumps(Whose::Gateway, Jump::Ahead)]),
    mixed("clock-gateway-back", &[Fault::ClockJumps(Whose::Gateway, Jump::Back)]),
    mixed("drain", &[Fault::Drained]),
    mixed("drain-store-503", &[Fault::StoreRefuses, Fault::Drained]),
    mixed("drain-partition", &[Fault::Partition, Fault::Drained]),
    mixed("scale-in", &[Fault::ScaleIn]),
    mixed("scale-in-store-503", &[Fault::StoreRefuses, Fault::ScaleIn]),
    mixed("scale-out", &[Fault::ScaleOut]),
    mixed("scale-out-store-503", &[Fault::StoreRefuses, Fault::ScaleOut]),
    mixed("scale-out-partition", &[Fault::Partition, Fault::ScaleOut]),
    mixed("postgres-restarted", &[Fault::PostgresRestarted]),
    mixed("postgres-failed-over", &[Fault::PostgresFailedOver]),
    mixed("folder-hangs", &[Fault::FolderHangs]),
    mixed("rolling-upgrade", &[Fault::Replaced]),
    mixed("rolling-upgrade-store-slow", &[Fault::StoreSlow, Fault::Replaced]),
    shards("shards-worker-killed", &[Fault::WorkerKilled]),
    shards("shards-worker-stopped", &[Fault::WorkerStopped]),
    shards("shards-coordinator-killed", &[Fault::CoordinatorKilled]),
    shards("shards-coordinator-stopped", &[Fault::CoordinatorStopped]),
    shards("shards-coordinator-failed-over", &[Fault::CoordinatorFailsOver]),
    shards("shards-store-503", &[Fault::StoreRefuses]),
    shards("shards-store-slow", &[Fault::StoreSlow]),
    shards("shards-store-answers-lost", &[Fault::StoreAnswersLost]),
    shards("shards-disk-full", &[Fault::DiskFull]),
    shards("shards-disk-fails", &[Fault::DiskFails]),
    shards("shards-descriptors", &[Fault::Descriptors]),
    shards("shards-memory", &[Fault::Memory]),
    shards("shards-partition", &[Fault::Partition]),
    shards("shards-partition-one-way", &[Fault::PartitionOneWay]),
    shards("shards-link-slow", &[Fault::LinkSlow]),
    shards("shards-clock-ahead", &[Fault::ClockJumps(Whose::Worker, Jump::Ahead)]),
    shards("shards-clock-back", &[Fault::ClockJumps(Whose::Worker, Jump::Back)]),
    shards("shards-drain", &[Fault::Drained]),
    shards("shards-scale-in", &[Fault::ScaleIn]),
    shards("shards-scale-out", &[Fault::ScaleOut]),
    shards("shards-postgres-restarted", &[Fault::PostgresRestarted]),
    shards("shards-rolling-restart", &[Fault::Replaced]),
    shards("shards-reshard", &[Fault::Calm]).beside(Work::Reshards),
    shards("shards-reshard-worker-killed", &[Fault::WorkerKilled]).beside(Work::Reshards),
    shards("shards-merge-worker-killed", &[Fault::WorkerKilled]).beside(Work::Merges),
    shards("shards-refresh", &[Fault::Calm]).beside(Work::Refreshes),
    shards("shards-refresh-worker-killed", &[Fault::WorkerKilled]).beside(Work::Refreshes),
    two_disks("shards-two-disks-writer-killed", &[Fault::WorkerKilled]).at(Part::Writer),
    two_disks("shards-two-disks-second-killed", &[Fault::WorkerKilled]).at(Part::Second),
    two_disks("shards-two-disks-store-slow", &[Fault::StoreSlow]),
    sql("sql-worker-killed", &[Fault::WorkerKilled]),
    sql("sql-worker-stopped", &[Fault::WorkerStopped]),
    sql("sql-executor-killed", &[Fault::ExecutorKilled]),
    sql("sql-scheduler-killed", &[Fault::SchedulerKilled]),
    sql("sql-coordinator-killed", &[Fault::CoordinatorKilled]),
    sql("sql-coordinator-stopped", &[Fault::CoordinatorStopped]),
    sql("sql-coordinator-failed-over", &[Fault::CoordinatorFailsOver]),
    sql("sql-store-503", &[Fault::StoreRefuses]),
    sql("sql-store-slow", &[Fault::StoreSlow]),
    sql("sql-store-bodies-cut", &[Fault::StoreBodiesCut]),
    sql("sql-disk-full", &[Fault::DiskFull]),
    sql("sql-disk-fails", &[Fault::DiskFails]),
    sql("sql-descriptors", &[Fault::Descriptors]),
    sql("sql-memory", &[Fault::Memory]),
    sql("sql-partition", &[Fault::Partition]),
    sql("sql-partition-one-way", &[Fault::PartitionOneWay]),
    sql("sql-link-slow", &[Fault::LinkSlow]),
    sql("sql-clock-ahead", &[Fault::ClockJumps(Whose::Worker, Jump::Ahead)]),
    sql("sql-clock-back", &[Fault::ClockJumps(Whose::Worker, Jump::Back)]),
    sql("sql-drain", &[Fault::Drained]),
    sql("sql-scale-in", &[Fault::ScaleIn]),
    sql("sql-scale-out", &[Fault::ScaleOut]),
    sql("sql-postgres-restarted", &[Fault::PostgresRestarted]),
    sql("sql-rolling-restart", &[Fault::Replaced]),
];

/// Under clients of objects and temporary nodes.
const fn mixed(name: &'static str, faults: &'static [Fault]) -> Cell {
    Cell { name, load: Kind::Mixed, faults, work: None, part: None }
}

/// Under clients of a dataset of shards.
const fn shards(name: &'static str, faults: &'static [Fault]) -> Cell {
    Cell { load: Kind::Records(Acknowledged::Storage), ..mixed(name, faults) }
}

/// Under clients of a dataset whose changes two workers' disks acknowledge.
const fn two_disks(name: &'static str, faults: &'static [Fault]) -> Cell {
    Cell { load: Kind::Records(Acknowledged::TwoWorkers), ..mixed(name, faults) }
}

/// Under statements in the process that asks and on executors.
const fn sql(name: &'static str, faults: &'static [Fault]) -> Cell {
    Cell { load: Kind::Statements, ..mixed(name, faults) }
}

impl Cell {
    /// The same while this is done to a dataset.
    const fn beside(self, work: Work) -> Self {
        Self { work: Some(work), ..self }
    }

    /// The same of the worker that has this part of the dataset.
    const fn at(self, part: Part) -> Self {
        Self { part: Some(part), ..self }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        CELLS.iter().copied().find(|cell| cell.name == name)
    }

    /// Whether this is one of the things that are done.
    pub fn has(self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    /// What the cluster must have for it.
    pub fn wants(self) -> Wanted {
        let all = self.faults.iter().map(|fault| fault.wants()).fold(Wanted::default(), Wanted::and);
        Wanted { sql: self.load == Kind::Statements, ..all }
    }

    /// The worker that it is done to, where the seed says it. What wants a disk of its own is done to the first one, which has it.
    pub fn victim(self, seed: u64) -> usize {
        if self.has(Fault::DiskFull) || self.has(Fault::DiskFails) { 0 } else { (seed % WORKERS as u64) as usize }
    }

    /// Whether a scheduler stands by for the one that is killed.
    pub fn has_standby(self) -> bool {
        self.has(Fault::SchedulerKilled)
    }

    /// Whether its processes are of the other binary at first, where there is one. Statements are asked by processes of the one binary, as
    /// works on a dataset are.
    pub fn begins_with_other(self) -> bool {
        self.has(Fault::Replaced) && self.load == Kind::Mixed
    }

    /// Why it can't be tried here; none where it can.
    pub fn hindrance(self) -> Option<&'static str> {
        self.faults.iter().find_map(|fault| fault.hindrance())
    }

    /// Whether temporary data may be lost.
    pub fn may_lose(self) -> bool {
        self.faults.iter().any(|fault| fault.may_lose())
    }

    /// Whether a process may end by itself.
    pub fn may_end(self) -> bool {
        self.faults.iter().any(|fault| fault.may_end())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_cell_has_a_name_of_its_own_that_says_its_load() {
        let names: BTreeSet<&str> = CELLS.iter().map(|cell| cell.name).collect();
        assert_eq!(names.len(), CELLS.len());
        for cell in CELLS {
            let (of_shards, of_sql) = (cell.name.starts_with("shards-"), cell.name.starts_with("sql-"));
            assert_eq!(of_shards, matches!(cell.load, Kind::Records(_)), "{}", cell.name);
            assert_eq!(of_sql, cell.load == Kind::Statements, "{}", cell.name);
            assert_eq!(Cell::named(cell.name), Some(*cell));
        }
    }

    /// What no cluster is made with, or has nobody to suffer it.
    #[test]
    fn no_cell_wants_what_a_cluster_has_not() {
        for cell in CELLS {
            let wanted = cell.wants();
            assert!(!(wanted.small_disk && wanted.failing_disk), "{}: the first worker has one disk", cell.name);
            assert!(!(wanted.postgres && wanted.pair), "{}: metadata is in one place", cell.name);
            let of_executors = cell.has(Fault::ExecutorKilled) || cell.has(Fault::SchedulerKilled);
            assert!(!of_executors || wanted.sql, "{}", cell.name);
            assert!(cell.work.is_none() || matches!(cell.load, Kind::Records(_)), "{}", cell.name);
        }
    }

    #[test]
    fn a_worker_that_is_hit_for_what_it_has_is_killed_where_two_disks_acknowledge() {
        let hit: Vec<&Cell> = CELLS.iter().filter(|cell| cell.part.is_some()).collect();
        assert_eq!(hit.len(), 2);
        for cell in hit {
            assert!(cell.has(Fault::WorkerKilled) && cell.load == Kind::Records(Acknowledged::TwoWorkers));
        }
    }

    #[test]
    fn a_cell_of_two_faults_is_as_hard_as_both() {
        let cell = Cell::named("scale-out-partition").unwrap();
        assert!(cell.may_lose() && !cell.may_end() && !cell.begins_with_other());
        assert!(Cell::named("rolling-upgrade-store-slow").unwrap().begins_with_other());
        assert!(Cell::named("sql-disk-full").unwrap().wants().small_disk);
        assert_eq!(Cell::named("sql-disk-full").unwrap().victim(2), 0);
    }
}
