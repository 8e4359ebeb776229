//! Workers that are not asked for a while, since they did not answer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use forebay_types::WorkerId;

/// One that does not answer is not asked for so long.
const AWAY_FOR: Duration = Duration::from_secs(3);
/// Questions, one after the other, that one was too slow for before it counts as away: one at a moment when a machine has much to do says little, and
/// what it has would be fetched once more.
const SLOW_MAX: u32 = 2;

/// Who did not answer, and since when. As many as there are workers, and those that are well again are forgotten.
#[derive(Default)]
pub(super) struct Silences(HashMap<WorkerId, Silence>);

struct Silence {
    since: Instant,
    /// Questions in a row, of which those that were under way at a time are one.
    questions: u32,
}

impl Silences {
    /// It has answered.
    pub(super) fn answered(&mut self, worker: WorkerId) {
        self.0.remove(&worker);
    }

    /// It was too slow for a question that `began` then.
    pub(super) fn was_slow(&mut self, worker: WorkerId, began: Instant, now: Instant) {
        assert!(began <= now, "a question begins before it is over");
        self.0.retain(|_, one| one.is_lately(now));
        let one = self.0.entry(worker).or_insert(Silence { since: now, questions: 0 });
        if one.questions == 0 || began >= one.since {
            *one = Silence { since: now, questions: one.questions + 1 };
        }
    }

    /// It can't be asked, or gave what it should not.
    pub(super) fn failed(&mut self, worker: WorkerId, now: Instant) {
        self.0.retain(|_, one| one.is_lately(now));
        self.0.insert(worker, Silence { since: now, questions: SLOW_MAX });
    }

    /// Whether it may be asked.
    pub(super) fn is_well(&self, worker: WorkerId, now: Instant) -> bool {
        self.0.get(&worker).is_none_or(|one| one.questions < SLOW_MAX || !one.is_lately(now))
    }
}

impl Silence {
    fn is_lately(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < AWAY_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_answer_kept_what_a_worker_has_from_being_asked_for() {
        let (mut silences, begin, one) = (Silences::default(), forebay_runtime::now(), WorkerId(1));
        let at = |ms| begin + Duration::from_millis(ms);
        silences.was_slow(one, at(0), at(400));
        silences.was_slow(one, at(10), at(410));
        assert!(silences.is_well(one, at(410)), "they were under way at a time");
        silences.answered(one);
        silences.was_slow(one, at(500), at(900));
        assert!(silences.is_well(one, at(900)), "it has answered meanwhile");
        silences.was_slow(one, at(900), at(1_300));
        assert!(!silences.is_well(one, at(1_300)) && !silences.is_well(one, at(4_299)));
        assert!(silences.is_well(one, at(4_300)) && silences.is_well(WorkerId(2), at(1_300)));
        silences.was_slow(one, at(4_300), at(4_700));
        assert!(silences.is_well(one, at(4_700)), "it is tried like anybody");
    }

    #[test]
    fn who_can_not_be_reached_is_away_at_once() {
        let (mut silences, now, one) = (Silences::default(), forebay_runtime::now(), WorkerId(1));
        silences.failed(one, now);
        assert!(!silences.is_well(one, now) && silences.is_well(one, now + AWAY_FOR));
        silences.answered(one);
        assert!(silences.is_well(one, now));
        (2..9).for_each(|other| silences.failed(WorkerId(other), now));
        silences.failed(one, now + AWAY_FOR);
        assert_eq!(silences.0.len(), 1, "who failed long ago, and may never come back, is forgotten");
    }
}
