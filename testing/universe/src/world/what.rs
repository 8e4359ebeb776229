//! What can go wrong in a world.

use serde::Serialize;

use crate::outside::packet::HostId;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// A process ends at once, and starts again later. A host that goes with it says nothing to its peers, and its disk may lack what was
    /// written and not synchronised. What it finds there may also be nothing, or other bytes than were written.
    Crash { host: HostId, with_host: bool, disk: Disk },
    /// A process is not run for a while.
    Stop { host: HostId },
    /// Nothing goes between two hosts.
    Partition { a: HostId, b: HostId },
    /// Nothing goes between hosts of one side and all others, but for those that all reach. What `breaks` has its connections cut, and is told
    /// at once that there are no new ones.
    Split { side: Vec<HostId>, all_reach: Vec<HostId>, breaks: bool },
    /// Nothing goes from one host to another.
    OneWay { from: HostId, to: HostId },
    /// Connections between two hosts break, new ones can be made.
    Cut { a: HostId, b: HostId },
    /// One in so many packets between two hosts is lost, and its connection breaks: also in the midst of an answer, or behind what it is of.
    Breaks { a: HostId, b: HostId, one_in: u32 },
    /// Everything between two hosts takes longer.
    SlowLink { a: HostId, b: HostId, by_ms: u64 },
    /// The store takes longer to answer.
    SlowStore { by_ms: u64 },
    /// The store refuses so many requests.
    StoreRefuses { requests: usize },
    /// The store does what it is asked, and its answers are lost.
    StoreLosesAnswers { requests: usize },
    /// The store's answers break off.
    StoreBreaksOff { requests: usize, after_bytes: u64 },
    /// Bytes on a worker's disk are others than were written.
    DiskRots { host: HostId },
    /// One in so many reads of a worker's disk fails, or of writes.
    DiskFails { host: HostId, reads: bool, one_in: u32 },
    /// A worker's disk has no room for what is written.
    DiskFull { host: HostId },
    /// A worker's process gets no descriptors for more files of its disk.
    NoFiles { host: HostId },
    /// Work on a worker's disk takes longer.
    DiskSlow { host: HostId, by_ms: u64 },
    /// The time of the day of a host jumps.
    ClockJumps { host: HostId, by_ms: i64 },
    /// All clocks of a host go faster, or slower, by so many millionths.
    ClockDrifts { host: HostId, by_ppm: i64 },
    /// A process takes nothing from its connections.
    ReadsNothing { host: HostId },
    /// A process gets no descriptors for more connections.
    NoDescriptors { host: HostId },
    /// The metadata database does not answer.
    MetadataAway,
}

/// What a process that starts again finds on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Disk {
    Kept,
    Lost,
    Rotten,
}

impl What {
    /// Its kind, for counting.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Crash { .. } => "crash",
            Self::Stop { .. } => "stop",
            Self::Partition { .. } => "partition",
            Self::Split { .. } => "split",
            Self::OneWay { .. } => "one_way",
            Self::Cut { .. } => "cut",
            Self::Breaks { .. } => "breaks",
            Self::SlowLink { .. } => "slow_link",
            Self::SlowStore { .. } => "slow_store",
            Self::StoreRefuses { .. } => "store_refuses",
            Self::StoreLosesAnswers { .. } => "store_loses_answers",
            Self::StoreBreaksOff { .. } => "store_breaks_off",
            Self::DiskRots { .. } => "disk_rots",
            Self::DiskFails { reads: true, .. } => "disk_fails_reads",
            Self::DiskFails { reads: false, .. } => "disk_fails_writes",
            Self::DiskFull { .. } => "disk_full",
            Self::NoFiles { .. } => "no_files",
            Self::DiskSlow { .. } => "disk_slow",
            Self::ClockJumps { .. } => "clock_jumps",
            Self::ClockDrifts { .. } => "clock_drifts",
            Self::ReadsNothing { .. } => "reads_nothing",
            Self::NoDescriptors { .. } => "no_descriptors",
            Self::MetadataAway => "metadata_away",
        }
    }

    /// The process that it is of alone, where it is of one whose place in the cluster may be lost by it.
    pub(crate) fn process(&self) -> Option<HostId> {
        match self {
            Self::Crash { host, .. } | Self::Stop { host } | Self::ReadsNothing { host } | Self::NoDescriptors { host } => {
                Some(*host)
            }
            _ => None,
        }
    }

    /// Whether a worker may lose its temporary data by it, or be taken for lost.
    pub(crate) fn may_lose(&self) -> bool {
        matches!(
            self,
            Self::Crash { .. }
                | Self::Stop { .. }
                | Self::Partition { .. }
                | Self::Split { .. }
                | Self::OneWay { .. }
                | Self::Breaks { .. }
                | Self::SlowLink { .. }
                | Self::DiskRots { .. }
                | Self::DiskFails { reads: true, .. }
                | Self::NoFiles { .. }
                | Self::ReadsNothing { .. }
                | Self::NoDescriptors { .. }
        )
    }
}
