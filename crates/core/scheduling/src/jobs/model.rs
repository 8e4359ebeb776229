//! What is asked of the schedule, and what it says.

use forebay_types::{MountId, PageRun, SegmentId, WorkerId};

/// A job: one query that an engine submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A task of a job, by a number that is the engine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

/// Consecutive pages of a segment: what a task reads and what a transfer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRange {
    /// The segment.
    pub segment: SegmentId,
    /// Its pages.
    pub pages: PageRun,
}

impl BlockRange {
    /// Length in bytes, whole pages.
    pub fn len_bytes(&self) -> u64 {
        let bytes = self.pages.bytes();
        bytes.end - bytes.start
    }
}

/// What a task reads, and who holds it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInput {
    /// The bytes.
    pub range: BlockRange,
    /// The storage that they are brought from.
    pub storage: MountId,
    /// Workers that hold all of it.
    pub holders: Vec<WorkerId>,
    /// Workers that others read it from, by the routing table or by hashing.
    pub routed: Vec<WorkerId>,
}

/// A task to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its number within the job.
    pub id: TaskId,
    /// What it reads of shared storage; nothing for a task that reads other tasks' results.
    pub inputs: Vec<TaskInput>,
}

/// The order in which jobs are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By priority, the higher first, then by arrival.
    #[default]
    Fifo,
    /// Slots to the job with the fewest running tasks; transfers to the one with the fewest blocks that are cached or
    /// on their way and not analysed yet (MixApart, section 3.2). Priority goes before both.
    Fair,
}

/// Limits of the schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleSettings {
    /// The order of jobs.
    pub policy: Policy,
    /// Bytes brought, or being brought, for tasks that have not started: at most this far ahead.
    pub look_ahead_bytes: u64,
    /// The same as time: not more than what the whole cluster would read of one job in so many seconds.
    pub look_ahead_secs: f64,
    /// Bytes in flight from one storage at once, at most: enough to fill any link. A bandwidth bound sets a lower limit
    /// ([`crate::Schedule::set_bandwidth`]).
    pub in_flight_bytes: u64,
    /// How often the first job in line may be passed over by later ones whose input is nearer, before it takes the next slot.
    pub patience: u32,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self { policy: Policy::Fifo, look_ahead_bytes: 4 << 30, look_ahead_secs: 60.0, in_flight_bytes: 256 << 20, patience: 64 }
    }
}

/// The share of a worker's DRAM tier that may be filled with what waiting tasks will read.
const ROOM: (u64, u64) = (3, 4);

/// The room for what waiting tasks will read in a DRAM tier of so many bytes, brought ahead or there already.
pub fn room_bytes(dram_bytes: u64) -> u64 {
    let room = dram_bytes / ROOM.1 * ROOM.0;
    assert!(room <= dram_bytes, "no more is brought ahead than a tier takes");
    room
}

/// Of a room, what may be brought for tasks that have not started: as much as a worker holds against eviction until it is read, a quarter of its
/// DRAM tier. The rest of the room is for input that waiting tasks find there.
pub fn ahead_bytes_max(room_bytes: u64) -> u64 {
    room_bytes / ROOM.0
}

/// Where a transfer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Shared storage, within its bound.
    Storage,
    /// A worker that has it, or will in a moment.
    Peer(WorkerId),
}

/// A copy of a block range into a worker's tier, to be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The bytes.
    pub range: BlockRange,
    /// From where.
    pub from: Source,
    /// To whom.
    pub to: WorkerId,
    /// It goes before some of what tasks that run are reading: its job has the next turn and no slot yet.
    pub urgent: bool,
}

/// A task for a free slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// The task.
    pub task: TaskId,
    /// Bytes of its input that need not come from another worker: they are here, or come from shared storage.
    pub local_bytes: u64,
    /// Bytes of its input.
    pub input_bytes: u64,
    /// What the worker lacks: the task reads it as it goes.
    pub bring: Vec<Transfer>,
}
