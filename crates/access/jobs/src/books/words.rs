//! What executors say, taken in: which word counts, how a task ended by it, and what the engine's scheduler is to hear.

use std::time::Duration;

use forebay_runtime::{Defect, planted};

use super::{Books, Ended};
use crate::word::{Heard, Said, TaskName, Word};

impl Books {
    /// Notes how a task ended, and gives what the engine's scheduler is to hear of it. One that waits again has no say: it lets that be.
    pub(crate) fn hears(&mut self, executor: &str, word: &Word) -> Option<Heard> {
        if !self.word_counts(executor, word) {
            return None;
        }
        let counts = self.runs(&word.name);
        self.note_end(word);
        if counts { self.attempts.sift(executor, word) } else { Some(Heard::AsSaid) }
    }

    /// Tasks that an executor that asks has lost with a connection, and that nobody else runs: they wait again, and what it has done is
    /// still there.
    pub(crate) fn hears_nothing(&mut self, executor: &str, is_idle: bool) -> Vec<TaskName> {
        let mut waits = Vec::new();
        if planted(Defect::LostStatus) {
            return waits;
        }
        for name in self.lost_tasks(executor, is_idle) {
            // Of a task with a copy the other one goes on.
            if self.run_is_lost(&name, executor) {
                tracing::warn!(executor, ?name, "executor has lost a task: it waits again");
                let word = Word { name, took: Duration::ZERO, said: Said::Failed };
                self.note_end(&word);
                waits.push(word.name);
            }
        }
        waits
    }

    fn note_end(&mut self, word: &Word) {
        let (done, bytes_passed) = match &word.said {
            Said::Goes => return,
            Said::Done(done) => (true, done.bytes),
            Said::LostInput | Said::BrokenOff | Said::Failed => (false, 0),
        };
        let TaskName { ref job, stage, attempt, task } = word.name;
        self.ended(&Ended { job, stage, attempt, task, done, took: word.took, bytes_passed });
    }
}
