//! What executors say of tasks, and what the engine's scheduler is to hear of it, in no engine's words.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A task by the engine's names, which its copy has too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskName {
    /// The job.
    pub job: String,
    /// Its stage.
    pub stage: usize,
    /// The attempt of the stage, which numbers its tasks anew.
    pub attempt: usize,
    /// The number within that.
    pub task: usize,
}

/// What an executor says of a run of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The task.
    pub name: TaskName,
    /// How long it has computed, without what it waited for.
    pub took: Duration,
    /// What became of it.
    pub said: Said,
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// It goes on.
    Goes,
    /// It is done.
    Done(Done),
    /// What it reads of another stage is lost.
    LostInput,
    /// The connection that it read from broke: the other end is gone, which nobody has heard of yet, or the connection alone is.
    BrokenOff,
    /// It failed by itself.
    Failed,
}

/// What a run that is done has made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Some of it is in files of its executor, and lost with that.
    pub in_files: bool,
    /// Rows for other stages, or of the result.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Operators that tell what they took.
    pub operators: usize,
}

/// What the engine's scheduler is to hear of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The word as it is.
    AsSaid,
    /// The same without what its operators tell.
    WithoutOperators,
    /// The task waits again, by itself.
    WaitsAgain,
    /// The job ends, to be run again as a whole.
    JobRunsAgain,
}
