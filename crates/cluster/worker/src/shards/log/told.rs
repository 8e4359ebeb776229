//! What other workers say of logs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use forebay_shard_store::LogPlace;
use forebay_types::{Key, MountId};
use parking_lot::Mutex;

/// Logs of which something is remembered, at most.
const LOGS_MAX: usize = 10_000;
/// Objects on their way and records that these change, of all logs together, at most: a few tens of MiB.
const COMING_MAX: usize = 2 << 20;
/// How long an object that was announced is waited for. Whoever writes it has given up by then, or tells that it came.
pub(in crate::shards) const COMING_FOR: Duration = Duration::from_secs(120);

/// A log: its mount, and its place there.
pub(in crate::shards) type Name = (MountId, LogPlace);

/// What is known of logs from those who write them, whether the shards are here or not.
#[derive(Default)]
pub(in crate::shards) struct Told {
    logs: Mutex<HashMap<Name, Of>>,
    /// The number of the last word; no two words have the same one.
    last: AtomicU64,
    /// The last word on all logs.
    of_all: AtomicU64,
    /// What is on its way is no more than this, counted as [`COMING_MAX`] is; changed under the lock of the logs.
    coming: AtomicUsize,
    /// Objects may be on their way until then that were announced before this worker heard.
    unheard_until: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Of {
    /// The last word that something came.
    word: u64,
    /// Objects that may come by their numbers.
    coming: BTreeMap<u64, Coming>,
}

struct Coming {
    /// Hashes of the keys that it changes.
    records: HashSet<u64>,
    until: Instant,
}

impl Coming {
    /// As much as it counts where all of them are bounded.
    fn counted(&self) -> usize {
        1 + self.records.len()
    }
}

/// What had been said when somebody looked into a log; those that are greater were said later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::shards) struct Words {
    of_all: u64,
    of_log: u64,
}

impl Told {
    /// An object may come from now on; nothing where the key is none of a log's.
    pub(in crate::shards) fn coming(&self, mount: MountId, key: &Key, records: Vec<u64>) {
        self.coming_at(forebay_runtime::now(), mount, key, records);
    }

    fn coming_at(&self, now: Instant, mount: MountId, key: &Key, records: Vec<u64>) {
        let Some((place, number)) = LogPlace::parse(key) else { return };
        // Made before the lock that each get takes: there may be thousands.
        let coming = Coming { records: records.into_iter().collect(), until: now + COMING_FOR };
        let mut logs = self.logs.lock();
        self.make_room_for(&mut logs, coming.counted(), now);
        let log = self.of(&mut logs, (mount, place), now);
        // What nobody said of that it is there, and which does not come any more.
        while log.coming.first_key_value().is_some_and(|(_, first)| first.until <= now) {
            log.coming.pop_first();
        }
        // Two who write the same number: one of them will be told so, and it is not known here which.
        match log.coming.get_mut(&number) {
            Some(other) => {
                other.records.extend(coming.records);
                other.until = coming.until;
            }
            None => {
                log.coming.insert(number, coming);
            }
        }
    }

    /// An object has come, or may have: the words before and with this one; none where the key is none of a log's.
    pub(in crate::shards) fn came(&self, mount: MountId, key: &Key) -> Option<(Words, Words)> {
        self.said(mount, key, false)
    }

    /// The same of one that is there for sure: who has not read it looks, whichever records it changes.
    pub(in crate::shards) fn is_there(&self, mount: MountId, key: &Key) -> Option<(Words, Words)> {
        self.said(mount, key, true)
    }

    /// One of both.
    pub(in crate::shards) fn said(&self, mount: MountId, key: &Key, is_there: bool) -> Option<(Words, Words)> {
        let (place, number) = LogPlace::parse(key)?;
        let mut logs = self.logs.lock();
        let log = self.of(&mut logs, (mount, place), forebay_runtime::now());
        if is_there {
            log.coming.remove(&number);
        }
        let of_all = self.of_all.load(Ordering::Acquire);
        let before = std::mem::replace(&mut log.word, self.next());
        assert!(log.word > before, "word {} comes after {before}", log.word);
        Some((Words { of_log: before, of_all }, Words { of_log: log.word, of_all }))
    }

    /// Anything may have come anywhere, or be on its way: what was announced before was not heard.
    pub(in crate::shards) fn anything(&self) {
        *self.unheard_until.lock() = Some(forebay_runtime::now() + COMING_FOR);
        self.untold();
    }

    /// Anything may have come anywhere that nobody told of; what is on its way by other workers was heard as before.
    pub(in crate::shards) fn untold(&self) {
        self.of_all.fetch_max(self.next(), Ordering::AcqRel);
    }

    /// What was said until now.
    pub(in crate::shards) fn words(&self, log: &Name) -> Words {
        let logs = self.logs.lock();
        Words { of_log: logs.get(log).map_or(0, |log| log.word), of_all: self.of_all.load(Ordering::Acquire) }
    }

    /// Whether nothing was said of a log since these words, and no object may come, from `next` on, that changes one of these records.
    pub(in crate::shards) fn is_quiet(&self, log: &Name, words: Words, next: u64, records: impl FnOnce() -> Vec<u64>) -> bool {
        let logs = self.logs.lock();
        let log = logs.get(log);
        let said = Words { of_all: self.of_all.load(Ordering::Acquire), of_log: log.map_or(0, |log| log.word) };
        said == words && !self.may_change(forebay_runtime::now(), log, next, records)
    }

    /// Whether an object of a log may come, from `next` on, that changes one of these records. What comes before stays: the shard may be here in
    /// other files too, which have not read as much.
    fn may_change(&self, now: Instant, log: Option<&Of>, next: u64, records: impl FnOnce() -> Vec<u64>) -> bool {
        if self.unheard_until.lock().is_some_and(|until| now < until) {
            return !records().is_empty();
        }
        let Some(log) = log else { return false };
        let mut coming = log.coming.range(next..).map(|(_, coming)| coming).filter(|coming| now < coming.until).peekable();
        if coming.peek().is_none() {
            return false;
        }
        let records = records();
        coming.any(|coming| records.iter().any(|record| coming.records.contains(record)))
    }

    fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// What is known of a log; there is room for it.
    fn of<'a>(&self, logs: &'a mut HashMap<Name, Of>, log: Name, now: Instant) -> &'a mut Of {
        if !logs.contains_key(&log) {
            self.make_room(logs, now);
        }
        logs.entry(log).or_default()
    }

    /// Counts what is about to be on its way, where there is room for it. Whoever announces ever more takes no more memory: what was announced is
    /// forgotten then, and any record may be changed by it.
    fn make_room_for(&self, logs: &mut HashMap<Name, Of>, more: usize, now: Instant) {
        let counted = self.coming.load(Ordering::Relaxed) + more;
        if counted <= COMING_MAX {
            self.coming.store(counted, Ordering::Relaxed);
            return;
        }
        // Some have come since they were counted, or don't come any more.
        logs.values_mut().for_each(|log| log.coming.retain(|_, coming| now < coming.until));
        let mut left: usize = logs.values().flat_map(|log| log.coming.values()).map(Coming::counted).sum();
        // With less room all would be gone through soon again.
        if left > COMING_MAX / 2 {
            logs.values_mut().for_each(|log| log.coming.clear());
            self.anything();
            left = 0;
        }
        assert!(left <= COMING_MAX / 2, "{left} that are on their way leave room for others");
        self.coming.store(left + more, Ordering::Relaxed);
    }

    /// What is forgotten is looked for in shared storage, in all logs: one that is not known here has the word of one of which nobody ever said
    /// anything. Where something is forgotten that is on its way, any record may be changed by it.
    fn make_room(&self, logs: &mut HashMap<Name, Of>, now: Instant) {
        if logs.len() < LOGS_MAX {
            return;
        }
        logs.retain(|_, log| log.coming.values().any(|coming| now < coming.until));
        if logs.len() < LOGS_MAX {
            self.untold();
        } else {
            logs.clear();
            self.anything();
        }
        assert!(logs.len() < LOGS_MAX, "there is room for one log more");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: MountId = MountId(1);

    impl Told {
        fn may_change_at(&self, now: Instant, log: &Name, next: u64, records: &[u64]) -> bool {
            self.may_change(now, self.logs.lock().get(log), next, || records.to_vec())
        }
    }

    fn place(shard: u32) -> LogPlace {
        LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard }
    }

    #[test]
    fn words_differ_after_each_change_of_the_log_and_of_all() {
        let told = Told::default();
        let mut seen = vec![told.words(&(MOUNT, place(0)))];
        for _ in 0..3 {
            told.came(MOUNT, &place(0).key(1).unwrap());
            seen.push(told.words(&(MOUNT, place(0))));
            told.anything();
            seen.push(told.words(&(MOUNT, place(0))));
        }
        let count = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), count);
        let before = told.words(&(MOUNT, place(0)));
        told.came(MOUNT, &place(1).key(1).unwrap());
        told.came(MountId(2), &place(0).key(1).unwrap());
        told.came(MOUNT, &Key::new("x/data/1").unwrap());
        assert_eq!(told.words(&(MOUNT, place(0))), before, "of others");
    }

    #[test]
    fn only_records_of_objects_that_were_not_read_may_change() {
        let told = Told::default();
        let now = forebay_runtime::now();
        let may = |next, record| told.may_change_at(now, &(MOUNT, place(0)), next, &[record]);
        assert!(!may(1, 7));
        told.coming(MOUNT, &place(0).key(5).unwrap(), vec![7, 8]);
        told.coming(MOUNT, &place(0).key(5).unwrap(), vec![9]);
        assert!(may(5, 7) && may(5, 9) && !may(5, 10));
        assert!(!may(6, 7), "it was read");
        assert!(may(5, 7), "in other files it was not");
        assert!(!told.may_change_at(now, &(MOUNT, place(1)), 1, &[7]));
    }

    #[test]
    fn what_is_there_or_is_not_waited_for_any_more_is_not_remembered() {
        let told = Told::default();
        let began = forebay_runtime::now();
        let key = |number| place(0).key(number).unwrap();
        let left = || told.logs.lock()[&(MOUNT, place(0))].coming.keys().copied().collect::<Vec<_>>();
        for number in 1..=4 {
            told.coming_at(began, MOUNT, &key(number), vec![7]);
        }
        told.came(MOUNT, &key(4));
        assert_eq!(left(), [1, 2, 3, 4], "it may come yet");
        told.is_there(MOUNT, &key(2));
        assert_eq!(left(), [1, 3, 4]);
        told.coming_at(began + COMING_FOR, MOUNT, &key(5), vec![7]);
        assert_eq!(left(), [5]);
    }

    #[test]
    fn who_has_not_heard_what_is_on_its_way_takes_any_record_for_changed_until_that_has_come() {
        let told = Told::default();
        let began = forebay_runtime::now();
        let may = |at, records: &[u64]| told.may_change_at(at, &(MOUNT, place(0)), 1, records);
        assert!(!may(began, &[7]));
        told.anything();
        assert!(may(began, &[7]), "it may have been announced to those who heard");
        assert!(!may(began, &[]), "a search is not about a record");
        let later = forebay_runtime::now() + COMING_FOR;
        assert!(!may(later, &[7]), "whoever wrote has given up or told that it came");
    }

    #[test]
    fn a_refresh_has_all_logs_looked_into_once_and_takes_no_record_for_changed_after_that() {
        let told = Told::default();
        let log = (MOUNT, place(0));
        let before = told.words(&log);
        told.untold();
        let after = told.words(&log);
        assert_ne!(before, after, "what was read before the refresh is not answered from");
        assert_eq!(told.words(&log), after, "what is read now is");
        assert!(told.is_quiet(&log, after, 1, || vec![7]) && !told.is_quiet(&log, before, 1, || vec![7]));
        told.coming(MOUNT, &place(0).key(5).unwrap(), vec![7]);
        told.untold();
        let words = told.words(&log);
        assert!(!told.is_quiet(&log, words, 1, || vec![7]), "what was announced is still coming");
        assert!(told.is_quiet(&log, words, 1, || vec![8]) && told.is_quiet(&log, words, 6, || vec![7]));
    }

    #[test]
    fn words_of_ever_new_logs_take_no_more_than_their_room() {
        let told = Told::default();
        for shard in 0..9_000 {
            let folder = format!("{}", shard % 3);
            for number in 1..3 {
                let key = LogPlace { folder: folder.clone(), ..place(shard) }.key(number).unwrap();
                told.coming(MOUNT, &key, vec![1]);
                told.came(MountId(u32::from(number == 1).into()), &key);
            }
        }
        assert!(told.logs.lock().len() <= LOGS_MAX);
    }

    #[test]
    fn a_word_that_is_forgotten_for_want_of_room_is_looked_for() {
        let told = Told::default();
        let log = (MOUNT, place(0));
        let looked = told.words(&log);
        told.came(MOUNT, &place(0).key(1).unwrap());
        for shard in 1..9_000 {
            for mount in [MOUNT, MountId(2)] {
                told.came(mount, &place(shard).key(1).unwrap());
            }
        }
        assert!(!told.logs.lock().contains_key(&log), "too many came since");
        assert_ne!(told.words(&log), looked, "who looked before the first word lacks what it was about");
        let looked = told.words(&log);
        assert_eq!(told.words(&log), looked, "who looks now has it");
    }

    #[test]
    fn what_is_on_its_way_and_is_forgotten_for_want_of_room_may_change_any_record() {
        let told = Told::default();
        let may = || told.may_change_at(forebay_runtime::now(), &(MOUNT, place(0)), 1, &[7]);
        told.coming(MOUNT, &place(0).key(1).unwrap(), vec![7]);
        assert!(may());
        for shard in 1..9_000 {
            for mount in [MOUNT, MountId(2)] {
                told.coming(mount, &place(shard).key(1).unwrap(), vec![1]);
            }
        }
        assert!(!told.logs.lock().contains_key(&(MOUNT, place(0))), "too many came since");
        assert!(may());
    }

    #[test]
    fn whoever_announced_ever_more_records_of_a_log_took_ever_more_memory() {
        let told = Told::default();
        let counted = || told.logs.lock().values().flat_map(|log| log.coming.values()).map(Coming::counted).sum::<usize>();
        let records = |round: u64| (0..8_000_u64).map(|record| round << 32 | record).collect::<Vec<_>>();
        let may = |record| told.may_change_at(forebay_runtime::now(), &(MOUNT, place(0)), 1, &[record]);
        for round in 0..300 {
            told.coming(MOUNT, &place(0).key(1 + round % 3).unwrap(), records(round));
            assert!(counted() <= COMING_MAX, "in round {round}");
            assert!(may(round << 32), "what is announced may change");
        }
        assert!(may(u64::MAX), "and any other record since something was forgotten");
    }
}
