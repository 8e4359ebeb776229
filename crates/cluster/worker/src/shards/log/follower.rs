//! How far a shard that is served has read its log.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use forebay_navigation::{Calls, LogRead, Made, Telling, told};
use forebay_shard_store::{ClaimedLog, LogClaim, LogObject, LogPlace, LoggedCall};
use forebay_types::{MountId, crc32c};
use parking_lot::{Mutex, MutexGuard};

use super::told::{Name, Words};

/// Calls that are remembered, so that one that is made again is made once.
const CALLS_MAX: usize = 65_536;

/// A log that a served shard follows.
pub(in crate::shards) struct Follower {
    /// Its mount and its place there.
    pub(in crate::shards) name: Name,
    /// The first object that is not in the shard's files.
    pub(in crate::shards) from: u64,
    read: Mutex<Read>,
    /// By itself, since each get looks at it: none waits for what is being taken over, or for who judges conditions by what was.
    stands: Mutex<Stands>,
}

/// What says whether anything is answered without a look. It follows what was read: what it says is there already.
#[derive(Clone, Copy, Default)]
pub(in crate::shards) struct Stands {
    /// As in [`Read`].
    pub(in crate::shards) next: u64,
    /// As there.
    pub(in crate::shards) is_moved: bool,
    /// The last look, with what was heard since.
    pub(in crate::shards) looked: Option<Looked>,
}

/// What was read.
#[derive(Clone)]
pub(in crate::shards) struct Read {
    /// The number of the first object that was not.
    pub(in crate::shards) next: u64,
    /// Nothing follows any more: the dataset was replaced.
    pub(in crate::shards) is_sealed: bool,
    /// The same, where the records are in other shards.
    pub(in crate::shards) is_moved: bool,
    calls: Calls,
    claim: Option<LogClaim>,
    kept: Unseen,
}

/// Objects that were taken over before shared storage was seen to have them, the last ones: their numbers and checksums.
type Unseen = VecDeque<(u64, u32)>;

/// A look for what is new, which found nothing more than was read.
#[derive(Clone, Copy)]
pub(in crate::shards) struct Looked {
    pub(in crate::shards) began: Instant,
    pub(in crate::shards) words: Words,
}

impl Follower {
    pub(in crate::shards) fn new(mount: MountId, place: LogPlace, from: u64) -> Self {
        let (read, stands) = (Read::new(from), Stands { next: from, ..Stands::default() });
        Self { name: (mount, place), from, read: Mutex::new(read), stands: Mutex::new(stands) }
    }

    pub(in crate::shards) fn mount(&self) -> MountId {
        self.name.0
    }

    pub(in crate::shards) fn place(&self) -> &LogPlace {
        &self.name.1
    }

    /// Whether it is a log of a mount and a place.
    pub(in crate::shards) fn is_of(&self, mount: MountId, is_it: impl FnOnce(&LogPlace) -> bool) -> bool {
        self.mount() == mount && is_it(self.place())
    }

    /// What was read until now; while it is held, nothing is taken over.
    pub(in crate::shards) fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock()
    }

    /// Has `change` happen while nothing is taken over.
    pub(in crate::shards) fn hold<T>(&self, change: impl FnOnce() -> T) -> T {
        let _read = self.read.lock();
        change()
    }

    /// Goes on where another one of the same log is, which began no later; `hand_over` takes over what that one was told from this one's first
    /// object on. Nobody asks this one yet.
    pub(in crate::shards) fn go_on_from(&self, other: &Self, hand_over: impl FnOnce()) {
        debug_assert!(self.name == other.name, "it is one log");
        let theirs = other.read.lock();
        let mut read = self.read.lock();
        if other.from <= self.from && theirs.next >= read.next {
            *read = theirs.clone();
            hand_over();
            // What that one has heard is of objects that it had taken over before.
            let stands = *other.stands.lock();
            *self.stands.lock() = stands;
        }
    }

    /// Whether the shard's records are in other shards, or about to be: nothing is answered from here any more.
    pub(in crate::shards) fn is_moved(&self) -> bool {
        self.stands().is_moved
    }

    /// How it stands for who answers.
    pub(in crate::shards) fn stands(&self) -> Stands {
        *self.stands.lock()
    }

    /// The word `after` is of what was taken over here: who had heard all before it has heard this too.
    pub(in crate::shards) fn heard(&self, (before, after): (Words, Words)) {
        let mut stands = self.stands.lock();
        if let Some(looked) = stands.looked.as_mut().filter(|looked| looked.words == before) {
            looked.words = after;
        }
    }

    /// A look has found nothing more. What was heard while it went on stays heard.
    pub(in crate::shards) fn set_looked(&self, looked: Looked) {
        let mut stands = self.stands.lock();
        let words = stands.looked.map_or(looked.words, |before| before.words.max(looked.words));
        stands.looked = Some(Looked { words, ..looked });
    }

    /// The log with a claim of it.
    pub(in crate::shards) fn claimed(&self, claim: LogClaim) -> ClaimedLog {
        ClaimedLog { mount: self.mount().0, place: self.place().clone(), claim }
    }

    /// The number of the first object that shared storage was not seen to have.
    pub(in crate::shards) fn first_unseen(&self) -> u64 {
        self.read.lock().first_unseen()
    }

    /// Shared storage has an object: whether it is the one that was taken over before; none where it was not, or was seen before.
    pub(in crate::shards) fn see(&self, number: u64, bytes: &[u8]) -> Option<bool> {
        let mut read = self.read.lock();
        let (_, sum) = *read.kept.front().filter(|(first, _)| *first == number)?;
        read.kept.pop_front();
        Some(sum == crc32c(bytes))
    }

    /// Shared storage has all objects before a number, as they were taken over.
    pub(in crate::shards) fn seen_before(&self, number: u64) {
        self.read.lock().kept.retain(|(kept, _)| *kept >= number);
    }

    /// Takes over the next object: its calls are handed over in their order. Nothing happens with one that was taken over before.
    pub(in crate::shards) fn take_over(&self, number: u64, object: LogObject, each: impl FnMut(LoggedCall)) {
        self.take(&mut self.read.lock(), number, object, None, each);
    }

    /// The same of one, with these bytes, that shared storage may not have yet.
    pub(in crate::shards) fn take_over_kept(&self, number: u64, object: LogObject, bytes: &[u8], each: impl FnMut(LoggedCall)) {
        self.take(&mut self.read.lock(), number, object, Some(crc32c(bytes)), each);
    }

    /// The word came that shared storage has an object, with it: its calls are handed over where it is the next one, and `may_take` says that
    /// they may be. What it was taken for.
    pub(in crate::shards) fn hear(
        &self,
        number: u64,
        object: LogObject,
        bytes: &[u8],
        may_take: bool,
        each: impl FnMut(LoggedCall),
    ) -> Telling {
        let mut read = self.read.lock();
        let stands = LogRead { next: read.next, unseen: read.first_unseen(), is_ended: read.is_sealed };
        let telling = told(&stands, number, read.is_same(number, &object, bytes), may_take);
        match telling {
            Telling::Take => self.take(&mut read, number, object, None, each),
            Telling::See => _ = read.kept.pop_front(),
            Telling::Has | Telling::Look => {}
        }
        telling
    }

    fn take(&self, read: &mut Read, number: u64, object: LogObject, kept: Option<u32>, each: impl FnMut(LoggedCall)) {
        read.take_next(number, object, kept, each);
        let mut stands = self.stands.lock();
        assert!(stands.next <= read.next, "a log is read forwards");
        (stands.next, stands.is_moved) = (read.next, read.is_moved);
    }
}

impl Read {
    fn new(from: u64) -> Self {
        let calls = Calls::new(from, CALLS_MAX);
        Self { next: from, is_sealed: false, is_moved: false, calls, claim: None, kept: Unseen::new() }
    }

    fn take_next(&mut self, number: u64, object: LogObject, kept: Option<u32>, each: impl FnMut(LoggedCall)) {
        if number != self.next {
            assert!(number < self.next, "objects are taken over without gaps");
            return;
        }
        self.claim = object.claim();
        match object {
            LogObject::Sealed => self.is_sealed = true,
            LogObject::Moved => (self.is_sealed, self.is_moved) = (true, true),
            LogObject::Calls(calls) | LogObject::Kept(_, calls) => {
                assert!(!self.is_sealed, "nothing comes behind the end of a log");
                calls.iter().for_each(|call| self.calls.remember(call.id, number));
                calls.into_iter().for_each(each);
                self.next += 1;
                self.kept.extend(kept.map(|sum| (number, sum)));
                debug_assert!(self.kept.iter().is_sorted_by_key(|(kept, _)| *kept), "what is to be seen yet is in its order");
            }
            LogObject::Claim(_) | LogObject::Over => {
                assert!(!self.is_sealed, "nothing comes behind the end of a log");
                self.next += 1;
            }
        }
    }

    /// Whether what was taken over under a number is this object, by its bytes or by the calls that are in no other.
    fn is_same(&self, number: u64, object: &LogObject, bytes: &[u8]) -> bool {
        if let Some((_, sum)) = self.kept.front().filter(|(first, _)| *first == number) {
            return *sum == crc32c(bytes);
        }
        let (LogObject::Calls(calls) | LogObject::Kept(_, calls)) = object else { return false };
        !calls.is_empty() && calls.iter().all(|call| self.number_of(call.id) == Some(number))
    }

    /// The claim that what follows stands under.
    pub(in crate::shards) fn claim(&self) -> Option<LogClaim> {
        self.claim
    }

    /// The number of the first object that shared storage was not seen to have. That before it stands under the same claim as what follows:
    /// who ends a claim takes both from one look, since another claim may stand there a moment later.
    pub(in crate::shards) fn first_unseen(&self) -> u64 {
        self.kept.front().map_or(self.next, |(number, _)| *number)
    }

    /// The number of the object that has a call.
    pub(in crate::shards) fn number_of(&self, call: u128) -> Option<u64> {
        self.calls.number_of(call)
    }

    /// What became of a call; where it was asked for before, the log had the object `after` before that.
    pub(in crate::shards) fn made(&self, call: u128, after: Option<u64>) -> Made {
        self.calls.made(call, after)
    }

    /// The number of the first object of which all calls are known, as of those behind it.
    pub(in crate::shards) fn known_since(&self) -> u64 {
        self.calls.since()
    }

    /// Some objects before that were read: the calls that they have, with their numbers.
    pub(in crate::shards) fn recall(&mut self, objects: Range<u64>, calls: &[(u128, u64)]) {
        self.calls.recall(objects, calls);
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;

    use super::*;

    #[test]
    fn objects_are_taken_over_once_and_their_calls_are_known() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let follower = Follower::new(MountId(1), place, 3);
        let object = |id| LogObject::Calls(vec![LoggedCall { id, changes: vec![] }]);
        let mut came = Vec::new();
        follower.take_over(3, object(7), |call| came.push(call.id));
        follower.take_over(3, object(8), |call| came.push(call.id));
        follower.take_over(4, object(9), |call| came.push(call.id));
        assert_eq!(came, [7, 9]);
        assert_eq!([7, 8, 9].map(|call| follower.read().number_of(call)), [Some(3), None, Some(4)]);
        follower.take_over(5, LogObject::Sealed, |_| unreachable!());
        assert!(follower.read().is_sealed && follower.read().next == 5 && !follower.is_moved());
        let moved = Follower::new(MountId(1), follower.place().clone(), 3);
        moved.take_over(3, LogObject::Moved, |_| unreachable!());
        assert!(moved.read().is_sealed && moved.is_moved());
    }

    #[test]
    fn who_answers_waits_for_nothing_that_is_being_taken_over_and_does_not_see_it_before_it_is_there() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let follower = Follower::new(MountId(1), place, 3);
        let object = LogObject::Calls(vec![LoggedCall { id: 7, changes: vec![] }]);
        let mut stood = Vec::new();
        follower.take_over(3, object, |_| stood.push(follower.stands().next));
        stood.push(follower.stands().next);
        let judged = follower.read();
        stood.push(follower.stands().next);
        assert_eq!((stood, judged.next), (vec![3, 4, 4], 4));
    }

    #[test]
    fn what_was_taken_over_before_shared_storage_had_it_is_compared_when_it_has() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let follower = Follower::new(MountId(1), place, 3);
        let claim = LogClaim { id: 9, writer: WorkerId(1), second: WorkerId(2), number: 3 };
        follower.take_over(3, LogObject::Claim(claim), |_| unreachable!());
        assert_eq!(follower.read().claim(), Some(claim));
        assert_eq!(follower.first_unseen(), 4);
        (4..8u64).for_each(|number| {
            let object = LogObject::Kept(claim, vec![LoggedCall { id: u128::from(number), changes: vec![] }]);
            follower.take_over_kept(number, object.clone(), &object.encode(number), |_| ());
        });
        let stored = LogObject::Kept(claim, vec![LoggedCall { id: 4, changes: vec![] }]).encode(4);
        assert_eq!((follower.first_unseen(), follower.read().next), (4, 8));
        assert_eq!((follower.see(4, &stored), follower.see(4, &stored)), (Some(true), None));
        assert_eq!(follower.see(5, &LogObject::Over.encode(5)), Some(false), "it is another one");
        follower.seen_before(7);
        assert_eq!(follower.first_unseen(), 7);
        let last = LogObject::Kept(claim, vec![LoggedCall { id: 7, changes: vec![] }]).encode(7);
        assert_eq!((follower.see(7, &last), follower.first_unseen()), (Some(true), 8));
        follower.take_over(8, LogObject::Over, |_| unreachable!());
        let read = follower.read();
        assert_eq!((read.claim(), read.next, read.first_unseen()), (None, 9, 9));
    }

    #[test]
    fn who_goes_on_from_another_one_has_read_what_that_one_has_and_nothing_that_is_too_late() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        let follower = |from| Follower::new(MountId(1), place.clone(), from);
        let (before, later) = (follower(3), follower(8));
        (3..7_u64).for_each(|number| {
            let object = LogObject::Calls(vec![LoggedCall { id: u128::from(number), changes: vec![] }]);
            before.take_over(number, object, |_| ());
        });
        let merged = follower(5);
        let mut is_handed_over = false;
        merged.go_on_from(&before, || is_handed_over = true);
        assert!(is_handed_over);
        assert_eq!(merged.read().next, 7);
        assert_eq!(merged.read().number_of(6), Some(6));
        later.go_on_from(&before, || unreachable!("it has nothing that the later one wants"));
        assert_eq!(later.read().next, 8);
        let early = follower(2);
        early.go_on_from(&before, || unreachable!("what comes before it was read by nobody"));
        assert_eq!(early.read().next, 2);
    }

    #[test]
    #[should_panic(expected = "objects are taken over without gaps")]
    fn an_object_that_was_left_out_is_caught() {
        let place = LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 };
        Follower::new(MountId(1), place, 3).take_over(4, LogObject::Sealed, |_| {});
    }
}
