//! Jobs, tasks and ranges, as the books have them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::successors;
use std::ops::Bound;

use forebay_types::{MountId, WorkerId};

use super::model::{BlockRange, JobId, TaskId, TaskSpec};
use super::turn::{Places, Turn};

/// A place in `Schedule::ranges`.
pub(super) type RangeIx = u32;

#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// It is over, and its tasks are let go step by step.
    pub is_closed: bool,
    pub priority: i32,
    pub arrival: u64,
    pub io_rate: u64,
    /// Tasks that are still to be taken in.
    pub coming: VecDeque<TaskSpec>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub pending: Pending,
    pub running: usize,
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
    pub(super) fn new(priority: i32, arrival: u64, io_rate: u64) -> Self {
        Self { priority, arrival, io_rate, ..Self::default() }
    }

    /// Its turn when slots are offered; none when no task of it waits.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.places.waiting
    }
}

/// A job's tasks that wait for a slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    pub count: usize,
    /// Those without input.
    pub anywhere: BTreeSet<TaskId>,
    /// Those with some input at, or on its way to, some worker.
    pub near: BTreeSet<TaskId>,
    /// Ranges that they need and nobody has, most wanted first.
    pub missing: BTreeSet<(Reverse<u32>, RangeIx)>,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub inputs: Vec<RangeIx>,
    pub bytes: u64,
    /// The input at, or on its way to, each worker that has some; of a pending task only.
    pub near: Vec<(WorkerId, Near)>,
    pub on: Option<WorkerId>,
}

impl Task {
    /// More or less of the input at a worker: what it had and has there.
    pub(super) fn count_near(&mut self, worker: WorkerId, bytes: u64, change: Change) -> (Near, Near) {
        let at = self.near.iter().position(|(id, _)| *id == worker);
        let before = at.map_or_else(Near::default, |at| self.near[at].1);
        let after = change.of(before, bytes as i64);
        match at {
            Some(at) if after.bytes == 0 => drop(self.near.swap_remove(at)),
            Some(at) => self.near[at].1 = after,
            None => self.near.push((worker, after)),
        }
        (before, after)
    }
}

/// What of a task's input a worker has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Near {
    /// Bytes that are there or on their way there.
    pub bytes: u64,
    /// Bytes of these that are on their way.
    pub arriving: u64,
}

impl Near {
    /// The order in which a worker takes its tasks, the smallest first: by the share of `input_bytes` that is here or on its way
    /// here; of equal ones those first that have to wait for less of it.
    pub(super) fn rank(self, input_bytes: u64) -> Rank {
        (Reverse(share(self.bytes, input_bytes)), share(self.arriving, input_bytes))
    }
}

pub(super) type Rank = (Reverse<u32>, u32);

/// What happens to a range at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Expected,
    NotExpected,
    /// It was on its way.
    Arrived,
    Held,
    NotHeld,
}

impl Change {
    fn of(self, near: Near, bytes: i64) -> Near {
        let (there, arriving) = match self {
            Change::Expected => (bytes, bytes),
            Change::NotExpected => (-bytes, -bytes),
            Change::Arrived => (0, -bytes),
            Change::Held => (bytes, 0),
            Change::NotHeld => (-bytes, 0),
        };
        Near { bytes: near.bytes.saturating_add_signed(there), arriving: near.arriving.saturating_add_signed(arriving) }
    }
}

/// The share of a task's input, in millionths, that `bytes` of it are.
fn share(bytes: u64, of: u64) -> u32 {
    (u128::from(bytes) * 1_000_000 / u128::from(of.max(1))) as u32
}

#[derive(Clone, Debug)]
pub(super) struct Range {
    pub key: BlockRange,
    pub bytes: u64,
    /// Where it is brought from.
    pub storage: MountId,
    pub holders: Vec<WorkerId>,
    /// From whom others read it.
    pub routed: Vec<WorkerId>,
    /// To whom it is on its way from shared storage.
    pub arriving: Option<WorkerId>,
    /// It was urgent when that began.
    pub urgent: bool,
    /// For whom and where it was brought ahead; none once a task has started to read it.
    pub ahead_of: Option<Ahead>,
    /// Pending tasks that read it.
    pub readers: BTreeSet<(JobId, TaskId)>,
    /// How many readers it stands under in its jobs' `missing`, where it stands there.
    pub filed: Option<u32>,
    /// Tasks, pending or running, that read it.
    pub users: u32,
}

impl Range {
    pub(super) fn new(key: BlockRange, storage: MountId) -> Self {
        Self {
            key,
            bytes: key.len_bytes(),
            storage,
            holders: Vec::new(),
            routed: Vec::new(),
            arriving: None,
            urgent: false,
            ahead_of: None,
            readers: BTreeSet::new(),
            filed: None,
            users: 0,
        }
    }

    pub(super) fn is_missing(&self) -> bool {
        self.holders.is_empty() && self.arriving.is_none()
    }

    /// Workers that have it or will.
    pub(super) fn places(&self) -> impl Iterator<Item = (WorkerId, Change)> {
        let arriving = self.arriving.filter(|worker| !self.holders.contains(worker));
        let held = self.holders.iter().map(|worker| (*worker, Change::Held));
        held.chain(arriving.map(|worker| (worker, Change::Expected)))
    }

    /// The first of a job's pending tasks that read it.
    pub(super) fn reader(&self, job: JobId) -> Option<TaskId> {
        let (of, task) = self.readers.range((job, TaskId(0))..).next()?;
        (*of == job).then_some(*task)
    }

    /// The jobs whose pending tasks read it.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        successors(self.readers.first(), |(job, _)| {
            self.readers.range((Bound::Excluded((*job, TaskId(u64::MAX))), Bound::Unbounded)).next()
        })
        .map(|(job, _)| *job)
    }
}

/// For whom and where a range was brought ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub job: JobId,
    /// Of that job: a later one may have its number.
    pub arrival: u64,
    /// Who has it or will.
    pub at: WorkerId,
}

/// What is on its way from one storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub bytes: u64,
    /// Of these the urgent ones, to which the same limit applies.
    pub urgent_bytes: u64,
    /// What its bandwidth gives in half a second.
    pub half_second_bytes: u64,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { bytes: 0, urgent_bytes: 0, half_second_bytes: u64::MAX }
    }
}
