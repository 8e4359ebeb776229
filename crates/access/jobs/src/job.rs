//! What the books keep of one job: its stages, its running tasks, what they read, and its counts.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use forebay_protocol::JobState;
use forebay_scheduling::{BlockRange, JobId, Pace, TaskId, TaskInput};
use forebay_types::{MountId, ObjectVersion, SegmentId, WorkerId};

use crate::ticket::Ticket;

/// The one task of a stage that brings its input together.
pub(crate) const WHOLE: u32 = u32::MAX;

/// Which partitions of a stage are one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All that wait: the stage brings its input together.
    Whole,
    /// Each one.
    Each,
    /// Runs of small ones: for each partition the first of its run, whose number the task has.
    Runs(Arc<[u32]>),
}

impl Cut {
    /// The tasks of these partitions, in the order in which they come.
    pub(crate) fn tasks(&self, partitions: &[usize]) -> Vec<u32> {
        let mut tasks: Vec<u32> = partitions.iter().map(|partition| self.task(*partition)).collect();
        if !matches!(self, Self::Each) {
            let mut seen = HashSet::new();
            tasks.retain(|task| seen.insert(*task));
        }
        tasks
    }

    /// The partitions of a task in their order, some of which may not wait any more; none for all that wait.
    pub(crate) fn partitions(&self, task: u32) -> Option<Vec<usize>> {
        match self {
            Self::Runs(firsts) => Some((0..firsts.len()).filter(|partition| firsts[*partition] == task).collect()),
            Self::Whole | Self::Each => (task != WHOLE).then(|| vec![task as usize]),
        }
    }

    fn task(&self, partition: usize) -> u32 {
        match self {
            Self::Whole => WHOLE,
            Self::Each => partition as u32,
            Self::Runs(firsts) => firsts.get(partition).copied().unwrap_or(partition as u32),
        }
    }
}

/// What each partition of a stage reads.
pub type Inputs = Arc<Vec<Vec<TaskInput>>>;

/// How far a stage has come in the engine's books. Where it is the same again, the same partitions wait: within an attempt tasks only begin, and
/// between two that begin partitions only come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Of the stage.
    pub attempt: usize,
    /// Tasks that have begun in this attempt or before it, also those that are over.
    pub begun: usize,
    /// Partitions that wait.
    pub waiting: usize,
}

/// A job of the engine's.
pub struct Job {
    pub(crate) number: JobId,
    /// What its tasks know of it.
    pub ticket: Arc<Ticket>,
    pub(crate) began: Instant,
    /// The same by the clock of the day, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    pub(crate) stages: HashMap<usize, Stage>,
    /// By stage and the engine's number of the task.
    pub(crate) running: HashMap<(usize, usize), Running>,
    /// The engine's number of each task's last run, which may be over: by stage and task.
    pub(crate) begun: HashMap<(usize, u32), usize>,
    /// Tasks that have, or had, a copy, and those that were given up for lost, of which not each word counts: by stage, its attempt and
    /// the engine's number. None gets another copy.
    pub(crate) copied: HashSet<(usize, usize, usize)>,
    /// What its tasks read, by segment.
    pub(crate) versions: HashMap<SegmentId, (Arc<ObjectVersion>, u32)>,
    /// Where it reads.
    pub(crate) mounts: BTreeSet<MountId>,
    pub(crate) sums: Sums,
    /// Of its result.
    pub(crate) rows: Option<u64>,
}

/// What a job has come to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) tasks: u64,
    pub(crate) tasks_done: u64,
    pub(crate) tasks_local: u64,
    pub(crate) tasks_with_input: u64,
    pub(crate) tasks_again: u64,
    pub(crate) tasks_copied: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_done: u64,
    pub(crate) bytes_passed: u64,
}

pub(crate) struct Stage {
    pub(crate) attempt: usize,
    pub(crate) cut: Cut,
    pub(crate) kind: String,
    /// What each partition reads; none while it is being found out.
    pub(crate) inputs: Option<Inputs>,
    /// Tasks that the schedule was given and that are not done.
    pub(crate) offered: HashSet<u32>,
    /// Tasks that were counted.
    pub(crate) counted: HashSet<u32>,
    /// How long those took that are done.
    pub(crate) pace: Pace,
    /// A task of it may run twice at the same time: it writes nothing that others find by themselves.
    pub(crate) may_be_copied: bool,
    /// How far it was when it was looked at last; none where the next look must be a whole one.
    pub(crate) mark: Option<Mark>,
}

/// A task on an executor.
pub(crate) struct Running {
    /// Of its stage, which numbers its tasks anew with each.
    pub(crate) attempt: usize,
    pub(crate) task: u32,
    pub(crate) bytes: u64,
    pub(crate) local_bytes: u64,
    /// What it reads that nobody had: it is there when the task is done.
    pub(crate) reads: Vec<BlockRange>,
    pub(crate) worker: WorkerId,
    pub(crate) executor: String,
    pub(crate) began: Instant,
    /// The same once more, on another executor, since this one is late.
    pub(crate) copy: Option<Copied>,
}

/// The copy of a task that runs.
pub(crate) struct Copied {
    pub(crate) worker: WorkerId,
    pub(crate) executor: String,
    pub(crate) began: Instant,
}

impl Running {
    /// Whether an executor runs it, or its copy.
    pub(crate) fn is_on(&self, executor: &str) -> bool {
        self.executor == executor || self.copy_is_on(executor)
    }

    pub(crate) fn copy_is_on(&self, executor: &str) -> bool {
        self.copy.as_ref().is_some_and(|copy| copy.executor == executor)
    }
}

impl Job {
    pub(crate) fn new(number: JobId, ticket: Arc<Ticket>) -> Self {
        Self {
            number,
            ticket,
            began: forebay_runtime::now(),
            began_ms: forebay_runtime::unix_ms(),
            stages: HashMap::new(),
            running: HashMap::new(),
            begun: HashMap::new(),
            copied: HashSet::new(),
            versions: HashMap::new(),
            mounts: BTreeSet::new(),
            sums: Sums::default(),
            rows: None,
        }
    }

    /// As people see it.
    pub(crate) fn shown(&self, id: &str, state: &str, error: String) -> JobState {
        JobState {
            id: id.to_string(),
            operation: self.ticket.operation.0,
            state: state.to_string(),
            error,
            sql: self.ticket.sql.clone(),
            priority: self.ticket.priority,
            tasks: self.sums.tasks,
            tasks_running: self.running.len() as u64,
            tasks_done: self.sums.tasks_done,
            tasks_local: self.sums.tasks_local,
            tasks_with_input: self.sums.tasks_with_input,
            tasks_again: self.sums.tasks_again,
            tasks_copied: self.sums.tasks_copied,
            bytes: self.sums.bytes,
            bytes_done: self.sums.bytes_done,
            bytes_passed: self.sums.bytes_passed,
            rows: self.rows,
            seconds: self.began.elapsed().as_secs_f64(),
        }
    }
}

pub(crate) fn task_id(stage: usize, task: u32) -> TaskId {
    assert!(u32::try_from(stage).is_ok(), "stage {stage} has its place in a task's number");
    TaskId((stage as u64) << 32 | u64::from(task))
}

pub(crate) fn split(task: TaskId) -> (usize, u32) {
    ((task.0 >> 32) as usize, task.0 as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_of_the_tasks_that_have_them() {
        let runs = Cut::Runs(Arc::from([0, 0, 2, 3, 3, 3]));
        assert_eq!(runs.tasks(&[4, 0, 1, 5, 2]), [3, 0, 2], "each task once, in the order in which it is come across");
        assert_eq!(runs.tasks(&[]), [0; 0]);
        assert_eq!(runs.partitions(3), Some(vec![3, 4, 5]));
        assert_eq!(runs.partitions(1), Some(vec![]), "a task of an earlier cut has nothing to do");
        assert_eq!((Cut::Each.tasks(&[4, 0]), Cut::Each.partitions(4)), (vec![4, 0], Some(vec![4])));
        assert_eq!((Cut::Whole.tasks(&[4, 0]), Cut::Whole.partitions(WHOLE)), (vec![WHOLE], None));
        assert_eq!(Cut::Whole.tasks(&[]), [0; 0], "nothing waits");
    }
}
