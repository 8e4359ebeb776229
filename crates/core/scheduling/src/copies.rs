//! Which tasks that run take so long that a copy of each is worth a slot that has nothing else to do.
//!
//! After "Improving MapReduce Performance in Heterogeneous Environments" (OSDI'08), §4: copies go to who would be done last, are bounded by a share of all
//! slots, and do not go to hosts that are slow themselves. Tasks here tell no progress. So who is late is told by how long the tasks of the
//! same stage took that are done, and by how much more one reads than they did, which is what "Reining in the Outliers in Map-Reduce Clusters using
//! Mantri" (OSDI'10), §5.1, expects of a copy.

use std::time::Duration;

/// When a task gets a copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRules {
    /// A task that runs for so many times as long as three of four tasks of its stage took is late.
    pub times: f64,
    /// One that runs for less is never late.
    pub least: Duration,
    /// Of so many slots one may have a copy; of fewer as well, where there are two.
    pub slots_per_copy: u32,
}

impl Default for CopyRules {
    fn default() -> Self {
        Self { times: 1.5, least: Duration::from_secs(2), slots_per_copy: 10 }
    }
}

/// How long the tasks of a stage took that are done.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The shortest first.
    took: Vec<Duration>,
    bytes: u64,
}

impl Pace {
    /// A task is done that has read so many bytes, as far as that is known. O(n), by a move of what took longer.
    pub fn note(&mut self, took: Duration, bytes: u64) {
        let at = self.took.partition_point(|earlier| *earlier <= took);
        self.took.insert(at, took);
        self.bytes = self.bytes.saturating_add(bytes);
        debug_assert!(self.took.is_sorted(), "the shortest first");
    }

    /// How long a task that reads so many bytes may run, of a stage of so many tasks, before it is late. None while less than half of
    /// them are done: too little is known. One that reads more than they did has so much more time. O(1).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use forebay_scheduling::{CopyRules, Pace};
    ///
    /// let (mut pace, rules) = (Pace::default(), CopyRules::default());
    /// (4..8).for_each(|secs| pace.note(Duration::from_secs(secs), 100));
    /// assert_eq!(pace.may_run(&rules, 8, 100), Some(Duration::from_secs(9)), "1.5 times what the third of four took");
    /// assert_eq!(pace.may_run(&rules, 8, 200), Some(Duration::from_secs(18)), "twice as much to read");
    /// assert_eq!(pace.may_run(&rules, 9, 100), None, "four of nine are done");
    /// ```
    pub fn may_run(&self, rules: &CopyRules, tasks: usize, bytes: u64) -> Option<Duration> {
        let done = self.took.len();
        if done == 0 || done * 2 < tasks {
            return None;
        }
        let third_of_four = self.took[(done * 3).div_ceil(4) - 1];
        let usual_bytes = self.bytes / done as u64;
        let more = if usual_bytes == 0 { 1.0 } else { (bytes as f64 / usual_bytes as f64).max(1.0) };
        debug_assert!(more >= 1.0, "{more}: what reads less has no less time");
        let may_run = third_of_four.as_secs_f64() * rules.times * more;
        Some(Duration::try_from_secs_f64(may_run).unwrap_or(Duration::MAX).max(rules.least))
    }
}

/// A task that runs and has no copy.
#[derive(Clone, Copy, Debug)]
pub struct Runs<K> {
    /// Its name.
    pub task: K,
    /// For so long.
    pub for_so_long: Duration,
    /// As [`Pace::may_run`] has it.
    pub may_run: Duration,
}

/// The tasks that are late and may have a copy, those first that have run longest for what they may, where there are so many slots and so many copies
/// run already. O(n log n) in those that are late.
pub fn late<K>(rules: &CopyRules, slots: u32, copies: usize, running: impl IntoIterator<Item = Runs<K>>) -> Vec<K> {
    let most = if slots < 2 { 0 } else { (slots / rules.slots_per_copy.max(1)).max(1) as usize };
    let room = most.saturating_sub(copies);
    if room == 0 {
        return Vec::new();
    }
    let mut late: Vec<Runs<K>> = running.into_iter().filter(|task| task.for_so_long > task.may_run).collect();
    late.sort_by(|one, next| next.late_by().total_cmp(&one.late_by()));
    late.truncate(room);
    assert!(copies + late.len() <= most, "{copies} copies and {} more are over {most}", late.len());
    late.into_iter().map(|late| late.task).collect()
}

impl<K> Runs<K> {
    /// So many times as long as it may.
    fn late_by(&self) -> f64 {
        self.for_so_long.as_secs_f64() / self.may_run.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: CopyRules = CopyRules { times: 1.5, least: Duration::from_secs(2), slots_per_copy: 10 };

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    fn pace(took: &[u64]) -> Pace {
        let mut pace = Pace::default();
        took.iter().for_each(|took| pace.note(secs(*took), 0));
        pace
    }

    fn runs(task: usize, for_so_long: u64, may_run: u64) -> Runs<usize> {
        Runs { task, for_so_long: secs(for_so_long), may_run: secs(may_run) }
    }

    #[test]
    fn a_task_is_late_only_when_half_of_its_stage_is_done() {
        assert_eq!(pace(&[]).may_run(&RULES, 0, 0), None, "there is nothing to compare with");
        assert_eq!(pace(&[]).may_run(&RULES, 1, 0), None, "the only task of a stage is never late");
        assert_eq!(pace(&[10, 10, 10]).may_run(&RULES, 7, 0), None);
        assert_eq!(pace(&[10, 10, 10]).may_run(&RULES, 6, 0), Some(secs(15)));
    }

    #[test]
    fn three_of_four_tell_what_is_usual() {
        assert_eq!(pace(&[40, 10, 20, 30]).may_run(&RULES, 4, 0), Some(secs(45)), "in whatever order they came");
        assert_eq!(
            pace(&[10, 10, 10, 1_000]).may_run(&RULES, 8, 0),
            Some(secs(15)),
            "one that took long makes none of the others early"
        );
        assert_eq!(pace(&[1]).may_run(&RULES, 2, 0), Some(secs(2)), "what is over soon is not worth a copy");
    }

    #[test]
    fn what_reads_more_has_more_time_and_what_reads_less_has_no_less() {
        let mut pace = Pace::default();
        [100, 300].iter().for_each(|bytes| pace.note(secs(10), *bytes));
        let of = |bytes| pace.may_run(&RULES, 4, bytes).unwrap();
        assert_eq!([of(0), of(200), of(400)], [secs(15), secs(15), secs(30)]);
        assert!(of(u64::MAX) > secs(1 << 40), "and too much is no error");
    }

    #[test]
    fn copies_go_to_who_is_furthest_behind_and_there_are_few() {
        let running = || [runs(1, 20, 15), runs(2, 14, 15), runs(3, 9, 3), runs(4, 50, 20)];
        assert_eq!(late(&RULES, 100, 0, running()), [3, 4, 1], "times of what it may, not seconds");
        assert_eq!(late(&RULES, 20, 0, running()), [3, 4]);
        assert_eq!(late(&RULES, 20, 1, running()), [3]);
        assert_eq!(late(&RULES, 20, 2, running()), [0; 0]);
        assert_eq!(late(&RULES, 4, 0, running()), [3], "one where there are two slots");
        assert_eq!(late(&RULES, 1, 0, running()), [0; 0], "there is no other place");
        assert_eq!(late(&RULES, 100, 0, [runs(1, 15, 15)]), [0; 0], "as long as it may is not late");
    }

    proptest! {
        #[test]
        fn only_who_is_late_gets_a_copy_and_nobody_is_passed_over(
            times in prop::collection::vec((0_u64..100, 0_u64..50), 0..40),
            slots in 0_u32..200,
            copies in 0_usize..12,
        ) {
            let running: Vec<_> = times.iter().enumerate().map(|(task, (ran, may))| runs(task, *ran, *may)).collect();
            let chosen = late(&RULES, slots, copies, running.iter().copied());
            prop_assert!(copies + chosen.len() <= copies.max((slots as usize / 10).max(1)));
            prop_assert!(chosen.iter().all(|task| times[*task].0 > times[*task].1));
            let behind = |task: usize| runs(task, times[task].0, times[task].1).late_by();
            prop_assert!(chosen.is_sorted_by(|one, next| behind(*one) >= behind(*next)));
            let is_late = |task: &usize| times[*task].0 > times[*task].1 && !chosen.contains(task);
            for other in (0..times.len()).filter(is_late) {
                prop_assert!(chosen.iter().all(|task| behind(*task) >= behind(other)));
            }
        }

        #[test]
        fn what_a_task_may_run_grows_with_what_others_took(
            took in prop::collection::vec(0_u64..1_000, 1..40),
            more in 0_u64..1_000,
        ) {
            let tasks = took.len() * 2;
            let longer: Vec<u64> = took.iter().map(|took| took + more).collect();
            let (usual, longer) = (pace(&took).may_run(&RULES, tasks, 0), pace(&longer).may_run(&RULES, tasks, 0));
            prop_assert!(usual.is_some() && usual <= longer);
            let mut sorted = took.clone();
            sorted.sort_unstable();
            let at_least = sorted.iter().filter(|took| secs(**took).mul_f64(1.5) <= usual.unwrap()).count();
            prop_assert!(at_least * 4 >= took.len() * 3, "three of four took less");
        }
    }
}
