//! What can be done to a cluster, and what that wants and may bring about. Who suffers it under which load is in `cells`.

use crate::cluster::{Clock, Postgres, SmallDisk, Wanted, may_mount};

/// A clock is set so far ahead, or back, in seconds.
const JUMP_SECS: i64 = 600;

/// Something that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: what the others are compared with.
    Calm,
    /// A worker is stopped (SIGSTOP), and goes on.
    WorkerStopped,
    /// A worker is killed, and started again.
    WorkerKilled,
    /// The coordinator is stopped, and goes on.
    CoordinatorStopped,
    /// The coordinator is killed, and started again.
    CoordinatorKilled,
    /// The coordinator is killed while another one stands by, and started again, which then stands by.
    CoordinatorFailsOver,
    /// The gateway is killed, and started again.
    GatewayKilled,
    /// An executor is killed, and started again.
    ExecutorKilled,
    /// The scheduler is killed while another one stands by, and started again.
    SchedulerKilled,
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
    /// The time of the day of a process jumps, and back again at the fault's end.
    ClockJumps(Whose, Jump),
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
    /// All processes are replaced, one after the other, by those of the binary that is tried.
    Replaced,
}

/// The process of which something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The worker that the seed says.
    Worker,
    /// The coordinator.
    Coordinator,
    /// The gateway.
    Gateway,
}

/// The way that a clock jumps, by ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Into the future.
    Ahead,
    /// Into the past.
    Back,
}

impl Jump {
    /// How far ahead of the system's clock it is then, in seconds.
    pub fn secs(self) -> i64 {
        match self {
            Self::Ahead => JUMP_SECS,
            Self::Back => -JUMP_SECS,
        }
    }
}

impl Fault {
    /// What the cluster must have for it.
    pub fn wants(self) -> Wanted {
        Wanted {
            postgres: matches!(self, Self::PostgresRestarted | Self::CoordinatorFailsOver),
            standby: self == Self::CoordinatorFailsOver,
            pair: self == Self::PostgresFailedOver,
            small_disk: self == Self::DiskFull,
            hanging: self == Self::FolderHangs,
            failing_disk: self == Self::DiskFails,
            clocks: matches!(self, Self::ClockJumps(..)),
            sql: false,
            group: None,
        }
    }

    /// Why it can't be tried here; none where it can.
    pub fn hindrance(self) -> Option<&'static str> {
        match self {
            Self::DiskFull if !SmallDisk::may_mount() => Some("needs root, which may mount a small disk"),
            Self::PostgresRestarted | Self::CoordinatorFailsOver if !Postgres::is_installed() => {
                Some("needs PostgreSQL: make test-deps")
            }
            Self::PostgresFailedOver if !Postgres::may_be_followed() => Some("needs PostgreSQL with pg_basebackup"),
            Self::FolderHangs | Self::DiskFails if !may_mount() => {
                Some("needs root and /dev/fuse: a file system of the storm's own")
            }
            Self::ClockJumps(..) if Clock::library().is_none() => Some("needs libfaketime: make test-deps"),
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
    use super::*;

    #[test]
    fn a_clock_jumps_by_less_than_signatures_may_be_off() {
        assert_eq!(Jump::Ahead.secs(), -Jump::Back.secs());
        assert!((1..15 * 60).contains(&Jump::Ahead.secs()));
    }

    #[test]
    fn a_clock_that_jumps_loses_nothing() {
        assert!(!Fault::ClockJumps(Whose::Worker, Jump::Back).may_lose());
    }
}
