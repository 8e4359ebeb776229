//! Calls that take effect once, whatever becomes of their messages and answers.

use std::collections::HashMap;
use std::time::Duration;

use forebay_nodes::{CallNumber, Once, Settled, Slots};
use proptest::prelude::*;

/// Twice this is more than a call is remembered for.
const LONG: Duration = Duration::from_secs(300);

/// What a client does that has lost an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// It asks what became of its call.
    Asks,
    /// It makes the call again.
    Repeats,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    /// It has no answer to this call, which it sent then.
    Waits(CallNumber, Duration),
    Knows,
    Unsure,
}

/// A worker with one value, a client that puts `a` and loses answers, and another one that puts `b`.
#[derive(Clone)]
struct World {
    once: Once<()>,
    now: Duration,
    /// What was put, in that order; `x` where all was lost.
    puts: String,
    /// Calls whose messages have not come.
    under_way: Vec<CallNumber>,
    client: Client,
    /// Calls that the client still makes, answers that it still loses.
    calls: u32,
    losses: u32,
}

impl World {
    fn new() -> Self {
        let number = Slots::new(1).draw();
        let client = Client::Waits(number, Duration::ZERO);
        Self {
            once: Once::default(),
            now: Duration::ZERO,
            puts: String::new(),
            under_way: vec![number],
            client,
            calls: 1,
            losses: 1,
        }
    }

    fn makes_anew(&mut self, before: CallNumber) {
        let number = before.renewed();
        self.calls -= 1;
        self.under_way.push(number);
        self.client = Client::Waits(number, self.now);
    }

    fn comes(&mut self, at: usize) -> bool {
        let number = self.under_way.remove(at);
        let is_open = self.once.is_open(number);
        if is_open {
            self.once.done(number, (), || self.now);
            self.puts.push('a');
        }
        is_open && matches!(self.client, Client::Waits(waits, _) if waits == number)
    }

    fn settle(&mut self, number: CallNumber, sent: Duration) -> Settled<()> {
        self.once.settle(number, self.now - sent, self.now)
    }

    /// All worlds that may be next.
    fn next(&self, habit: Habit) -> Vec<World> {
        let mut worlds = Vec::new();
        let mut with = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            worlds.push(world);
        };
        for at in 0..self.under_way.len() {
            with(&|world| _ = world.under_way.remove(at));
            with(&|world| _ = world.comes(at));
            with(&|world| {
                if world.comes(at) {
                    world.client = Client::Knows;
                }
            });
        }
        if let Client::Waits(number, sent) = self.client {
            match habit {
                Habit::Repeats if self.calls > 0 => with(&|world| world.makes_anew(number)),
                Habit::Repeats => {}
                Habit::Asks => {
                    with(&|world| match world.settle(number, sent) {
                        Settled::Done(()) => world.client = Client::Knows,
                        Settled::Undone if world.calls > 0 => world.makes_anew(number),
                        Settled::Undone | Settled::Unknown => world.client = Client::Unsure,
                    });
                    if self.losses > 0 {
                        with(&|world| {
                            world.settle(number, sent);
                            world.losses -= 1;
                        });
                    }
                }
            }
        }
        if !self.puts.contains('b') {
            with(&|world| world.puts.push('b'));
        }
        if !self.puts.contains('x') {
            with(&|world| {
                world.puts.push('x');
                world.once.lose();
            });
        }
        // No message comes so late.
        if self.now.is_zero() && self.under_way.is_empty() {
            with(&|world| {
                for _ in 0..2 {
                    world.now += LONG;
                    world.once.age(world.now);
                }
            });
        }
        worlds
    }
}

/// Goes through all that may come of a world; how many there are.
fn every(world: &World, habit: Habit, look: &mut impl FnMut(&World)) -> usize {
    look(world);
    1 + world.next(habit).iter().map(|next| every(next, habit, look)).sum::<usize>()
}

#[test]
fn who_asks_what_became_of_a_call_never_puts_twice_in_any_order_of_things() {
    let (mut known, mut unsure) = (0, 0);
    let worlds = every(&World::new(), Habit::Asks, &mut |world| {
        let since_loss = world.puts.rsplit('x').next().unwrap();
        let times = since_loss.matches('a').count();
        assert!(times <= 1, "{}", world.puts);
        match world.client {
            Client::Knows => {
                known += 1;
                assert!(world.puts.contains('a'), "it was told that it is done: {}", world.puts);
            }
            Client::Unsure => unsure += 1,
            Client::Waits(..) => {}
        }
    });
    assert!(known > 100 && unsure > 100, "{known} and {unsure} of {worlds}");
}

#[test]
fn who_makes_a_call_again_puts_over_what_another_one_has_put() {
    let mut found = false;
    every(&World::new(), Habit::Repeats, &mut |world| found |= world.puts == "aba");
    assert!(found, "which is what this is for");
}

#[test]
fn what_was_long_ago_is_not_known_any_more_and_what_was_just_now_is() {
    let (mut slots, mut once, sec) = (Slots::new(1), Once::default(), Duration::from_secs);
    let (old, new) = (slots.draw(), slots.draw());
    once.done(old, 'o', || sec(1));
    once.age(sec(300));
    assert_eq!(once.settle(old, sec(299), sec(300)), Settled::Done('o'), "it is remembered for that long");
    once.done(new, 'n', || sec(301));
    once.age(sec(600));
    assert_eq!(once.settle(old, sec(599), sec(600)), Settled::Unknown);
    assert!(once.is_open(old.renewed()));
    assert_eq!(once.settle(new, sec(299), sec(600)), Settled::Done('n'));
    assert_eq!(once.settle(slots.draw(), sec(10), sec(600)), Settled::Undone, "a call of after that would be known");
}

#[test]
fn there_is_room_for_so_many_slots_and_the_last_ones_are_remembered() {
    let (mut slots, mut once, now) = (Slots::new(1), Once::with_slots(4), Duration::from_secs);
    let numbers: Vec<_> = (0..100).map(|_| slots.draw()).collect();
    for (second, number) in (1..).zip(&numbers) {
        once.done(*number, *number, || now(second));
    }
    let known = |once: &mut Once<CallNumber>, at: usize| once.settle(numbers[at], now(100 - at as u64), now(100));
    assert!((0..90).all(|at| known(&mut once, at) == Settled::Unknown));
    assert!((96..100).all(|at| known(&mut once, at) == Settled::Done(numbers[at])));
}

#[test]
fn a_number_is_drawn_once_and_slots_are_used_again() {
    let mut slots = Slots::new(9);
    let (first, second) = (slots.draw(), slots.draw());
    assert_ne!(first.slot, second.slot, "both are under way");
    slots.give_back(first.renewed());
    let third = slots.draw();
    assert_eq!((third.slot, third.turn, third.client), (first.slot, first.turn + 2, 9));
    assert_eq!(CallNumber::from_bytes(&third.to_bytes()), third);
}

/// What became of the last call of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Sent,
    Done,
    Void,
}

proptest! {
    #[test]
    fn what_is_said_of_a_call_is_true(steps in prop::collection::vec((0u32..6, 0u8..4, 0u64..200), 1..80), room in 1usize..6) {
        let (mut once, mut now) = (Once::with_slots(room), Duration::ZERO);
        let mut calls: HashMap<u32, (CallNumber, Duration, Fate)> = HashMap::new();
        for (slot, what, secs) in steps {
            now += Duration::from_secs(secs);
            once.age(now);
            let last = calls.get(&slot).copied();
            match (what, last) {
                (0 | 1, last) => {
                    let number = last.map_or(CallNumber { client: 1, slot, turn: 0 }, |(number, ..)| number.renewed());
                    prop_assert!(once.is_open(number));
                    let fate = if what == 0 { Fate::Done } else { Fate::Sent };
                    if fate == Fate::Done {
                        once.done(number, number.turn, || now);
                    }
                    calls.insert(slot, (number, now, fate));
                }
                (2, Some((number, sent, Fate::Sent))) => {
                    prop_assert!(once.is_open(number), "nobody was told that it never is");
                    once.done(number, number.turn, || now);
                    calls.insert(slot, (number, sent, Fate::Done));
                }
                (3, Some((number, sent, fate))) => match (once.settle(number, now - sent, now), fate) {
                    (Settled::Done(answer), Fate::Done) => prop_assert_eq!(answer, number.turn),
                    (Settled::Undone, Fate::Sent | Fate::Void) => {
                        prop_assert!(!once.is_open(number));
                        calls.insert(slot, (number, sent, Fate::Void));
                    }
                    (Settled::Unknown, _) => {}
                    (said, fate) => return Err(TestCaseError::fail(format!("{said:?} of a call that is {fate:?}"))),
                },
                _ => {}
            }
        }
    }
}
