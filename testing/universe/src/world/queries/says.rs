//! What clients, schedulers and executors tell each other.

use forebay_jobs::{Places, TaskName, Ticket, Word};
use forebay_types::{ObjectVersion, OperationId};
use serde::{Deserialize, Serialize};

/// A range of an object that a query reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) struct Piece {
    /// The object, as the oracle knows it.
    pub(in crate::world) key: u32,
    pub(in crate::world) version: ObjectVersion,
    pub(in crate::world) start: u64,
    pub(in crate::world) len: u64,
}

/// A query as it is handed to a scheduler. The tasks of its first stage read a piece each; those of the others what the stage before them
/// has made, of which each has the rows whose place is its own, by the number of its stage's tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) struct Query {
    pub(in crate::world) ticket: Ticket,
    pub(in crate::world) pieces: Vec<Piece>,
    /// Partitions of the stages behind the first. The last has one.
    pub(in crate::world) stages: Vec<usize>,
}

/// What a query says of a piece: a row of its answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::world) struct Row {
    /// Which piece.
    pub(in crate::world) place: usize,
    /// The version that its bytes name, which begin with 1; 0 for bytes that are of none.
    pub(in crate::world) version: u32,
    /// Of its bytes.
    pub(in crate::world) hash: u64,
}

/// Where rows are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::world) struct Output {
    pub(in crate::world) executor: String,
    pub(in crate::world) address: String,
    pub(in crate::world) file: String,
}

/// Asks an executor for the rows of one of its files; the answer is none where it has no such file.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::world) struct Fetch {
    pub(in crate::world) file: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::world) enum ToScheduler {
    /// Is answered when the query is over.
    Run(Query),
    /// Of an executor, for tasks.
    Poll(Poll),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::world) enum OfScheduler {
    Over(Ended),
    Work(Work),
}

/// An executor's question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) struct Poll {
    pub(in crate::world) executor: String,
    pub(in crate::world) slots: u32,
    pub(in crate::world) free: u32,
    pub(in crate::world) told: Vec<Told>,
}

/// What an executor says of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) struct Told {
    pub(in crate::world) word: Word,
    /// Where its rows are, of one that is done.
    pub(in crate::world) output: Option<Output>,
    /// Whose outputs it could not read, of one that lost its input.
    pub(in crate::world) lost_of: Option<String>,
    /// Why it failed.
    pub(in crate::world) error: String,
}

/// What an executor is to do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::world) struct Work {
    pub(in crate::world) tasks: Vec<Order>,
    /// Runs that nobody waits for.
    pub(in crate::world) ends: Vec<TaskName>,
}

impl Work {
    pub(in crate::world) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.ends.is_empty()
    }
}

/// A task as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) struct Order {
    pub(in crate::world) name: TaskName,
    pub(in crate::world) operation: OperationId,
    /// What it reads of objects: the places of pieces in the query, and the pieces.
    pub(in crate::world) pieces: Vec<(usize, Piece)>,
    /// Where it reads these.
    pub(in crate::world) places: Places,
    /// What it reads of the stage before.
    pub(in crate::world) sources: Vec<Output>,
    /// Its partitions, of so many of its stage.
    pub(in crate::world) partitions: Vec<usize>,
    pub(in crate::world) of: usize,
}

/// How a query ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::world) enum Ended {
    /// Where its rows are.
    Done(Vec<Output>),
    Failed(String),
}
