//! Changes that two disks have: whoever dies, nothing acknowledged is lost while one of the two is there, and nothing is made twice.

use std::collections::HashMap;

use forebay_navigation::{CLAIM_LIMITS, Claimed, Ending, Kept, Take, Turn, Word, ending, turn};
use proptest::collection::vec;
use proptest::prelude::*;

const WORKERS: usize = 3;

/// An object of the log in shared storage; the first one has the number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Stored(u64),
    Claim { claim: u64, writer: usize, second: usize },
    Kept { claim: u64, writer: usize, second: usize, change: u64 },
    Over,
}

/// What a disk has of a claim.
#[derive(Clone, Debug)]
struct OnDisk {
    kept: Kept,
    changes: Vec<u64>,
}

/// The claim of a process, and what it has not seen in shared storage yet.
#[derive(Clone, Debug)]
struct Own {
    claim: u64,
    second: usize,
    next: u64,
    behind: Vec<(u64, u64)>,
    /// Before this number all are acknowledged; one that is not has to be stored before there are more.
    acknowledged: u64,
}

/// A claim that a process ends.
#[derive(Clone, Debug)]
struct Ender {
    claim: (u64, usize, usize),
    found: Option<(u64, Vec<u64>)>,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    disk: HashMap<u64, OnDisk>,
    is_up: bool,
    own: Option<Own>,
    ends: Option<Ender>,
}

type Rule = fn(Word, Word) -> Ending;

struct World {
    log: Vec<Object>,
    workers: Vec<Worker>,
    acknowledged: Vec<(u64, u64)>,
    seen: Vec<(u64, u64)>,
    drawn: u64,
    is_lost: bool,
    rule: Rule,
}

impl World {
    fn new(rule: Rule) -> Self {
        let worker = Worker { is_up: true, ..Worker::default() };
        let workers = vec![worker; WORKERS];
        Self { log: Vec::new(), workers, acknowledged: Vec::new(), seen: Vec::new(), drawn: 0, is_lost: false, rule }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    fn next(&self) -> u64 {
        self.log.len() as u64 + 1
    }

    /// The claim that the last object is of.
    fn claim(&self) -> Option<(u64, usize, usize)> {
        match *self.log.last()? {
            Object::Claim { claim, writer, second } | Object::Kept { claim, writer, second, .. } => Some((claim, writer, second)),
            Object::Stored(_) | Object::Over => None,
        }
    }

    /// A conditional PUT; false where there is something.
    fn put(&mut self, number: u64, object: Object) -> bool {
        let is_free = self.next() == number;
        if is_free {
            self.log.push(object);
        }
        is_free
    }

    fn change_of(&self, number: u64) -> Option<u64> {
        match self.log.get(number as usize - 1)? {
            Object::Stored(change) | Object::Kept { change, .. } => Some(*change),
            Object::Claim { .. } | Object::Over => None,
        }
    }

    /// A client asks a worker for a change; `fault` 1: the second does not get it, 2: the writer dies before its disk has it.
    fn change(&mut self, worker: usize, fault: u8) {
        if !self.workers[worker].is_up {
            return;
        }
        let own = self.workers[worker].own.clone();
        let claimed = match (self.claim(), &own) {
            (None, _) => Claimed::Free,
            (Some((claim, ..)), Some(own)) if own.claim == claim => Claimed::Here,
            _ => Claimed::Elsewhere,
        };
        let second = (1..WORKERS).map(|step| (worker + step) % WORKERS).find(|other| self.workers[*other].is_up);
        match turn(fault != 3, second.is_some(), claimed) {
            Turn::Store => {
                let change = self.draw();
                let number = self.next();
                assert!(self.put(number, Object::Stored(change)));
                self.acknowledged.push((number, change));
            }
            Turn::Claim => self.make_claim(worker, second.expect("there is one"), fault),
            Turn::Keep => self.keep(worker, fault),
            Turn::End => self.begin_end(worker),
        }
    }

    fn make_claim(&mut self, worker: usize, second: usize, fault: u8) {
        let (claim, number) = (self.draw(), self.next());
        for one in [worker, second] {
            let on_disk = OnDisk { kept: Kept::new(number + 1), changes: Vec::new() };
            self.workers[one].disk.insert(claim, on_disk);
        }
        if fault == 2 {
            return self.crash(worker);
        }
        assert!(self.put(number, Object::Claim { claim, writer: worker, second }));
        let own = Own { claim, second, next: number + 1, behind: Vec::new(), acknowledged: number + 1 };
        self.workers[worker].own = Some(own);
        self.keep(worker, fault);
    }

    fn keep(&mut self, worker: usize, fault: u8) {
        let Some(own) = self.workers[worker].own.clone() else { return };
        if own.acknowledged != own.next {
            return;
        }
        let (change, number) = (self.draw(), own.next);
        let at_second = fault != 1 && self.workers[own.second].is_up && self.write(own.second, own.claim, number, change);
        if fault == 2 {
            return self.crash(worker);
        }
        let here = self.write(worker, own.claim, number, change);
        let has_both = here && at_second;
        let own = self.workers[worker].own.as_mut().expect("it is up");
        own.next += 1;
        own.behind.push((number, change));
        if has_both {
            own.acknowledged = own.next;
            self.acknowledged.push((number, change));
        }
    }

    fn write(&mut self, worker: usize, claim: u64, number: u64, change: u64) -> bool {
        let Some(on_disk) = self.workers[worker].disk.get_mut(&claim) else { return false };
        match on_disk.kept.take(number) {
            Take::Write => {
                on_disk.kept.wrote();
                on_disk.changes.push(change);
                true
            }
            Take::Has => true,
            Take::Refuse => false,
        }
    }

    /// The writer has shared storage take its next object.
    fn store(&mut self, worker: usize) {
        let Some(own) = self.workers[worker].own.clone() else { return };
        let Some((number, change)) = own.behind.first().copied() else { return };
        let object = Object::Kept { claim: own.claim, writer: worker, second: own.second, change };
        let is_there = self.put(number, object) || self.log.get(number as usize - 1) == Some(&object);
        match self.workers[worker].own.as_mut().filter(|_| is_there) {
            Some(mine) => {
                mine.behind.remove(0);
                if number >= mine.acknowledged {
                    mine.acknowledged = number + 1;
                    self.acknowledged.push((number, change));
                }
            }
            None => self.workers[worker].own = None,
        }
    }

    fn begin_end(&mut self, worker: usize) {
        if let Some(claim) = self.claim().filter(|_| self.workers[worker].is_up && self.workers[worker].ends.is_none()) {
            self.workers[worker].ends = Some(Ender { claim, found: None });
        }
    }

    fn hear(&mut self, who: usize, claim: u64, is_reached: bool) -> Word {
        let worker = &mut self.workers[who];
        match worker.disk.get_mut(&claim) {
            _ if !worker.is_up || !is_reached => Word::Silent,
            None => Word::Unknown,
            Some(on_disk) => {
                on_disk.kept.close();
                Word::Closed(on_disk.kept.end())
            }
        }
    }

    /// One step of who ends a claim: hearing the two, or writing one object. `reach` says whom it reaches.
    fn end(&mut self, worker: usize, reach: u8) {
        let Some(mut ends) = self.workers[worker].ends.take() else { return };
        if self.claim().map(|claim| claim.0) != Some(ends.claim.0) {
            return;
        }
        let (claim, writer, second) = ends.claim;
        let Some((first, changes)) = &ends.found else {
            let words = (self.hear(writer, claim, reach != 1), self.hear(second, claim, reach != 2));
            let from = match (self.rule)(words.0, words.1) {
                Ending::ByWriter => Some(writer),
                Ending::BySecond => Some(second),
                Ending::Wait => None,
                Ending::Lost => {
                    self.is_lost = true;
                    None
                }
            };
            ends.found = from.map(|from| match self.workers[from].disk.get(&claim) {
                Some(on_disk) => (on_disk.kept.first(), on_disk.changes.clone()),
                // A rule that takes who knows nothing for one that has nothing.
                None => (self.next(), Vec::new()),
            });
            self.workers[worker].ends = Some(ends);
            return;
        };
        let number = self.next();
        let change = number.checked_sub(*first).and_then(|place| changes.get(place as usize));
        let object = change.map_or(Object::Over, |change| Object::Kept { claim, writer, second, change: *change });
        assert!(self.put(number, object));
        self.workers[worker].ends = Some(ends);
    }

    /// Who looks sees shared storage, and what the writer of the claim has acknowledged since.
    fn look(&mut self) {
        let mut seen: Vec<(u64, u64)> = (1..self.next()).filter_map(|number| Some((number, self.change_of(number)?))).collect();
        if let Some((claim, writer, _)) = self.claim()
            && let Some(own) = self.workers[writer].own.as_ref().filter(|own| own.claim == claim)
        {
            let next = self.next();
            seen.extend(own.behind.iter().filter(|(number, _)| (next..own.acknowledged).contains(number)));
        }
        self.seen.extend(seen);
    }

    fn crash(&mut self, worker: usize) {
        let one = &mut self.workers[worker];
        (one.is_up, one.own, one.ends) = (false, None, None);
    }

    fn restart(&mut self, worker: usize) {
        let one = &mut self.workers[worker];
        if !one.is_up {
            one.is_up = true;
            one.disk.values_mut().for_each(|on_disk| on_disk.kept = Kept::left(on_disk.kept.first(), on_disk.kept.end()));
        }
    }

    /// One of the workers is gone for good; another one with an empty disk has its place.
    fn lose(&mut self, worker: usize) {
        self.crash(worker);
        self.workers[worker] = Worker { is_up: true, ..Worker::default() };
    }

    fn step(&mut self, (what, worker, fault): (u8, usize, u8), lost: usize) {
        match what {
            0..=3 => self.change(worker, fault),
            4 | 5 => self.store(worker),
            6 => self.crash(worker),
            7 => self.restart(worker),
            8 => self.begin_end(worker),
            9 | 10 => self.end(worker, fault),
            11 => self.look(),
            _ => self.lose(lost),
        }
    }

    /// All come back that can, and the last claim is ended.
    fn settle(&mut self) {
        (0..WORKERS).for_each(|worker| self.restart(worker));
        self.workers.iter_mut().for_each(|worker| worker.ends = None);
        for _ in 0..1000 {
            if self.claim().is_none() {
                return;
            }
            self.begin_end(0);
            self.end(0, 0);
        }
        panic!("a claim does not end: {:?}", self.log);
    }

    fn check(&self) -> Result<(), String> {
        for (number, change) in self.acknowledged.iter().chain(&self.seen) {
            if self.change_of(*number) != Some(*change) {
                return Err(format!("change {change} was {number} once, which is {:?}: {:?}", self.change_of(*number), self.log));
            }
        }
        let mut made: Vec<u64> = (1..self.next()).filter_map(|number| self.change_of(number)).collect();
        let count = made.len();
        made.sort_unstable();
        made.dedup();
        if made.len() == count { Ok(()) } else { Err(format!("something was made twice: {:?}", self.log)) }
    }
}

fn steps() -> impl Strategy<Value = Vec<(u8, usize, u8)>> {
    vec((0..13u8, 0..WORKERS, 0..5u8), 1..150)
}

fn run(rule: Rule, steps: &[(u8, usize, u8)], lost: usize) -> (World, Result<(), String>) {
    let mut world = World::new(rule);
    steps.iter().for_each(|step| world.step(*step, lost));
    world.look();
    world.settle();
    let checked = world.check();
    (world, checked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any number of crashes, and one worker, the same each time, whose disk is lost again and again.
    #[test]
    fn nothing_acknowledged_or_seen_is_lost_and_nothing_is_made_twice(steps in steps(), lost in 0..WORKERS) {
        let (world, checked) = run(ending, &steps, lost);
        prop_assert_eq!(checked, Ok(()));
        prop_assert!(!world.is_lost, "one of the two is there");
    }
}

/// Both have a change, the second's disk is lost, and who ends the claim reaches the second first.
const SECOND_LOST: [(u8, usize, u8); 4] = [(0, 0, 0), (6, 0, 0), (12, 1, 0), (8, 2, 0)];

#[test]
fn a_disk_that_knows_nothing_of_a_claim_is_none_that_has_nothing_of_it() {
    let believing: Rule = |writer, second| match (writer, second) {
        (Word::Silent, Word::Unknown) => Ending::BySecond,
        _ => ending(writer, second),
    };
    let ends = [(9, 2, 0), (9, 2, 0)];
    let steps: Vec<_> = SECOND_LOST.iter().chain(&ends).copied().collect();
    assert!(run(believing, &steps, 1).1.is_err(), "the change is lost");
    assert_eq!(run(ending, &steps, 1).1, Ok(()), "it is waited for the writer");
}

#[test]
fn either_disk_is_enough_and_the_one_with_more_is_taken() {
    assert_eq!(ending(Word::Closed(5), Word::Closed(5)), Ending::ByWriter);
    assert_eq!(ending(Word::Closed(5), Word::Closed(6)), Ending::BySecond);
    for other in [Word::Unknown, Word::Gone, Word::Silent] {
        assert_eq!((ending(Word::Closed(5), other), ending(other, Word::Closed(5))), (Ending::ByWriter, Ending::BySecond));
        assert_eq!((ending(Word::Silent, other), ending(other, Word::Silent)), (Ending::Wait, Ending::Wait));
    }
    assert_eq!((ending(Word::Gone, Word::Unknown), ending(Word::Unknown, Word::Unknown)), (Ending::Lost, Ending::Lost));
}

#[test]
fn what_is_closed_or_has_a_gap_takes_nothing() {
    let mut kept = Kept::new(7);
    assert_eq!([6, 7, 8].map(|number| kept.take(number)), [Take::Refuse, Take::Write, Take::Refuse]);
    kept.wrote();
    assert_eq!([7, 8, 9].map(|number| kept.take(number)), [Take::Has, Take::Write, Take::Refuse]);
    kept.close();
    assert_eq!([7, 8].map(|number| kept.take(number)), [Take::Refuse; 2]);
    assert_eq!((kept.first(), kept.end(), Kept::left(7, 8)), (7, 8, kept));
}

#[test]
fn writers_wait_for_shared_storage_when_it_is_far_behind() {
    let limits = CLAIM_LIMITS;
    assert!(limits.takes_more(limits.behind_bytes - 1, limits.behind_ms - 1));
    assert!(!limits.takes_more(limits.behind_bytes, 0) && !limits.takes_more(0, limits.behind_ms));
}

#[test]
fn who_finds_anothers_claim_ends_it_and_alone_a_worker_stores() {
    for (wants_two, has_second) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(turn(wants_two, has_second, Claimed::Elsewhere), Turn::End);
        let own = if wants_two { Turn::Keep } else { Turn::End };
        assert_eq!(turn(wants_two, has_second, Claimed::Here), own);
        let free = if wants_two && has_second { Turn::Claim } else { Turn::Store };
        assert_eq!(turn(wants_two, has_second, Claimed::Free), free);
    }
}
