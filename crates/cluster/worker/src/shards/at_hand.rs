//! Gets that are answered where they came in, with no other thread in between.

use super::answer::Questions;
use super::{Asked, Shards};
use forebay_runtime::time::Instant;
use forebay_types::Result;

/// What a call is presumed to take at most, in microseconds, that is answered by a thread which other calls wait for: about what a
/// change of threads takes on a busy machine. A shard whose bytes have to come from disk is found out by its time.
pub(super) const AT_HAND_US: f64 = 100.0;

impl Shards {
    /// Answers gets of a shard that is here and has heard of all changes, and says how many other calls it has; none where
    /// something has to be waited for, or may take long.
    pub(super) fn at_hand(&self, asked: &Asked, questions: &Questions, deadline: Instant) -> Result<Option<(Vec<u8>, u32)>> {
        let Some(served) = self.find(asked.id()).filter(|served| served.is_quick(questions)) else { return Ok(None) };
        self.place(&served, asked);
        if let Some(log) = &served.log {
            let Some(door) = self.origin.mounts.find(log.mount()) else { return Ok(None) };
            if !self.is_fresh(&door, log, || questions.records(&asked.manifest.dataset.columns)) {
                return Ok(None);
            }
        }
        let answers = served.answer_at_hand(questions, deadline).transpose()?;
        Ok(answers.map(|answers| (answers, served.lanes.queue())))
    }
}
