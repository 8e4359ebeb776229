//! Objects that come with the word of them in any order, while looks go on: who answers without a look has all that was acknowledged.

use forebay_shard_store::{LogClaim, LogObject, LogPlace, LoggedCall};
use forebay_types::{Key, MountId, WorkerId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Follower, Looked, Told};

const MOUNT: MountId = MountId(1);
const CLAIM: LogClaim = LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 1 };

fn place() -> LogPlace {
    LogPlace { folder: "x".into(), log: "0123456789abcdef".into(), shard: 0 }
}

fn key(number: u64) -> Key {
    place().key(number).unwrap()
}

/// The first object makes a claim, under which all others are, or there is none.
fn object(number: u64, is_claimed: bool) -> LogObject {
    let calls = vec![LoggedCall { id: number.into(), changes: vec![] }];
    match (is_claimed, number) {
        (false, _) => LogObject::Calls(calls),
        (true, 1) => LogObject::Claim(CLAIM),
        (true, _) => LogObject::Kept(CLAIM, calls),
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Two disks have the next object, which all hear; without a claim it is stored.
    Write,
    /// Shared storage has the next one of those that two disks have.
    Store,
    /// A word comes with its object.
    Hear(usize),
    /// An object comes once more, or before its writer goes on.
    HearAgain(usize),
    /// A word does not come: who hears has forgotten what it knew before its writer goes on.
    Miss(usize),
    BeginLook,
    EndLook,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Write),
        4 => Just(Step::Store),
        6 => any::<usize>().prop_map(Step::Hear),
        1 => any::<usize>().prop_map(Step::HearAgain),
        1 => any::<usize>().prop_map(Step::Miss),
        2 => Just(Step::BeginLook),
        2 => Just(Step::EndLook),
    ];
    vec(step, 0..80)
}

/// A log, and one worker that hears of it.
struct World {
    is_claimed: bool,
    written: u64,
    stored: u64,
    acknowledged: u64,
    on_their_way: Vec<u64>,
    told: Told,
    follower: Follower,
    taken: Vec<u128>,
    look: Option<(u64, u64, Looked)>,
}

impl World {
    fn new(is_claimed: bool) -> Self {
        let first = u64::from(is_claimed);
        let mut world = Self {
            is_claimed,
            written: first,
            stored: first,
            acknowledged: first,
            on_their_way: Vec::new(),
            told: Told::default(),
            follower: Follower::new(MOUNT, place(), 1),
            taken: Vec::new(),
            look: None,
        };
        world.begin_look();
        world.end_look();
        world
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write if self.is_claimed => {
                self.written += 1;
                self.acknowledged = self.written;
                self.told.came(MOUNT, &key(self.written));
            }
            Step::Write => {
                self.written += 1;
                self.store();
            }
            Step::Store if self.stored < self.written => self.store(),
            Step::Hear(place) if !self.on_their_way.is_empty() => {
                let number = self.on_their_way.remove(place % self.on_their_way.len());
                self.hear(number);
                self.acknowledged = self.acknowledged.max(number);
            }
            Step::HearAgain(place) if self.stored > 0 => self.hear(place as u64 % self.stored + 1),
            Step::Miss(place) if !self.on_their_way.is_empty() => {
                let number = self.on_their_way.remove(place % self.on_their_way.len());
                self.told.anything();
                self.acknowledged = self.acknowledged.max(number);
            }
            Step::BeginLook => self.begin_look(),
            Step::EndLook => self.end_look(),
            _ => {}
        }
    }

    fn store(&mut self) {
        self.stored += 1;
        self.on_their_way.push(self.stored);
    }

    /// As a worker is told of an object.
    fn hear(&mut self, number: u64) {
        let object = object(number, self.is_claimed);
        let bytes = object.encode(number);
        let (taken, mut is_known) = (&mut self.taken, false);
        if object.claim().is_none_or(|claim| claim.number < number) {
            is_known = self.follower.hear(number, object, &bytes, true, |call| taken.push(call.id)).is_known();
        }
        let words = self.told.is_there(MOUNT, &key(number)).unwrap();
        if is_known {
            self.follower.heard(words);
        }
    }

    fn begin_look(&mut self) {
        let looked = Looked { began: forebay_runtime::now(), words: self.told.words(&self.follower.name) };
        self.look = Some((self.stored, self.written, looked));
    }

    /// What was stored when the look began is found there, and what two disks had is told by its writer.
    fn end_look(&mut self) {
        let Some((stored, written, looked)) = self.look.take() else { return };
        let taken = &mut self.taken;
        for number in self.follower.first_unseen()..=stored {
            let object = object(number, self.is_claimed);
            match self.follower.see(number, &object.encode(number)) {
                Some(is_same) => assert!(is_same, "nobody has stored another one"),
                None => self.follower.take_over(number, object, |call| taken.push(call.id)),
            }
        }
        let next = self.follower.read().next;
        for number in next..=written {
            let object = object(number, self.is_claimed);
            let bytes = object.encode(number);
            self.follower.take_over_kept(number, object, &bytes, |call| taken.push(call.id));
        }
        self.follower.set_looked(looked);
    }

    fn answers_at_once(&self) -> bool {
        self.follower.stands().looked.is_some_and(|looked| looked.words == self.told.words(&self.follower.name))
    }

    /// What must hold after each step.
    fn check(&self) {
        let next = self.follower.read().next;
        assert!(next <= self.written + 1, "nothing is there that nobody has written");
        assert!(!self.answers_at_once() || self.acknowledged < next, "{} is acknowledged", self.acknowledged);
        let first = u64::from(self.is_claimed) + 1;
        assert!(self.taken.iter().copied().eq((first..next).map(u128::from)), "once each, in order: {:?}", self.taken);
    }
}

proptest! {
    #[test]
    fn who_answers_without_a_look_has_all_that_was_acknowledged(steps in steps(), is_claimed in any::<bool>()) {
        let mut world = World::new(is_claimed);
        for step in steps {
            world.step(step);
            world.check();
        }
    }
}

#[test]
fn who_hears_of_each_object_in_its_turn_never_looks() {
    let mut world = World::new(false);
    for _ in 0..10 {
        world.step(Step::Write);
        world.step(Step::Hear(0));
        world.check();
        assert!(world.answers_at_once());
    }
    world.step(Step::HearAgain(3));
    assert!(world.answers_at_once(), "what is known says nothing new");
}

#[test]
fn what_two_disks_had_is_read_no_more_when_it_comes_from_who_stored_it() {
    let mut world = World::new(true);
    for number in 2..5 {
        world.step(Step::Write);
        assert!(!world.answers_at_once(), "its writer is asked");
        world.step(Step::BeginLook);
        world.step(Step::EndLook);
        assert_eq!(world.follower.first_unseen(), number);
        world.step(Step::Store);
        world.step(Step::Hear(0));
        world.check();
        assert!(world.answers_at_once() && world.follower.first_unseen() == number + 1);
    }
}

#[test]
fn what_was_heard_while_a_look_went_on_stays_heard() {
    let mut world = World::new(false);
    world.step(Step::BeginLook);
    world.step(Step::Write);
    world.step(Step::Hear(0));
    world.step(Step::EndLook);
    assert!(world.answers_at_once() && world.follower.read().next == 2);
}

#[test]
fn another_object_than_the_one_that_two_disks_had_is_looked_for() {
    let mut world = World::new(true);
    world.step(Step::Write);
    world.step(Step::BeginLook);
    world.step(Step::EndLook);
    let calls = vec![LoggedCall { id: 99, changes: vec![] }];
    let bytes = LogObject::Calls(calls.clone()).encode(2);
    let heard = world.follower.hear(2, LogObject::Calls(calls), &bytes, true, |_| unreachable!("its number is taken"));
    assert!(!heard.is_known());
    assert_eq!(world.follower.see(2, &bytes), Some(false), "and is found to be another one");
}
