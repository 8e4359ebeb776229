use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use forebay_types::WorkerId;

use super::model::{BlockRange, JobId, TaskId};
use super::order::{Places, Turn};

/// A place in `Schedule::ranges`.
pub(super) type RangeIx = u32;

#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub slots: u32,
    pub free: u32,
    pub room_bytes: u64,
    /// Pending tasks that have input here or arriving here, a job at a time, largest share first.
    pub near: BTreeMap<JobId, BTreeSet<(Reverse<u32>, TaskId)>>,
    /// Bytes here or arriving here that pending tasks will read.
    pub waiting_bytes: u64,
    pub running_bytes: u64,
    pub running: BTreeSet<(JobId, TaskId)>,
    pub holds: BTreeSet<RangeIx>,
    pub expects: BTreeSet<RangeIx>,
}

/// By what a worker is found.
#[derive(Clone, Copy)]
pub(super) struct FiledUnder {
    pub load: u64,
    pub free: bool,
    pub beside: bool,
}

impl Worker {
    pub fn filed_under(&self) -> FiledUnder {
        FiledUnder { load: self.load(), free: self.free > 0, beside: self.free > 0 && !self.near.is_empty() }
    }

    pub fn load(&self) -> u64 {
        (self.waiting_bytes + self.running_bytes) / u64::from(self.slots.max(1))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub priority: i32,
    pub arrival: u64,
    pub io_rate: u64,
    pub tasks: BTreeMap<TaskId, Task>,
    pub pending: usize,
    pub running: usize,
    /// Pending tasks without input.
    pub anywhere: BTreeSet<TaskId>,
    /// Pending tasks with some input at, or on its way to, some worker.
    pub near: BTreeSet<TaskId>,
    /// Ranges that pending tasks need and nobody has, most wanted first.
    pub missing: BTreeSet<(Reverse<u32>, RangeIx)>,
    /// Inputs that are cached or on their way and not analysed yet.
    pub ready: usize,
    /// Bytes brought for this job's tasks that have not started.
    pub ahead_bytes: u64,
    /// How often it was first in line and another job got the slot, since it last got one.
    pub passed_over: u32,
    /// Where it stands in the orders.
    pub places: Places,
}

impl Job {
    /// Its turn when slots are offered; none when no task of it waits.
    pub fn turn(&self) -> Option<Turn> {
        self.places.waiting
    }
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub inputs: Vec<RangeIx>,
    pub bytes: u64,
    /// Bytes of the input at, or on their way to, each worker that has some; of a pending task only.
    pub near: Vec<(WorkerId, u64)>,
    pub on: Option<WorkerId>,
}

impl Task {
    /// The share of the input, in millionths, that `bytes` of it are.
    pub fn share(&self, bytes: u64) -> u32 {
        (u128::from(bytes) * 1_000_000 / u128::from(self.bytes.max(1))) as u32
    }
}

#[derive(Clone, Debug)]
pub(super) struct Range {
    pub key: BlockRange,
    pub bytes: u64,
    pub holders: Vec<WorkerId>,
    /// To whom it is on its way from shared storage.
    pub arriving: Option<WorkerId>,
    /// For which job it was brought ahead; none once a task has started to read it.
    pub ahead_of: Option<JobId>,
    /// Pending tasks that read it.
    pub readers: BTreeSet<(JobId, TaskId)>,
    /// How many of them each job has.
    pub jobs: BTreeMap<JobId, u32>,
    /// How many readers it stands under in its jobs' `missing`, where it stands there.
    pub filed: Option<u32>,
    /// Tasks, pending or running, that read it.
    pub users: u32,
}

impl Range {
    pub fn is_missing(&self) -> bool {
        self.holders.is_empty() && self.arriving.is_none()
    }

    /// Workers that have it or will.
    pub fn places(&self) -> impl Iterator<Item = WorkerId> {
        let arriving = self.arriving.filter(|worker| !self.holders.contains(worker));
        self.holders.iter().copied().chain(arriving)
    }
}
