//! Workers that come, go, die and change their demand, clients that ask for budgets, in steps of 100 ms. The oracle
//! adds up what every living process believes that it may take.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Act {
    Join(u64),
    Die(u64),
    Demand(u64, u64),
    Budget(u64),
    Wait(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (1u64..6).prop_map(Act::Join),
        1 => (1u64..6).prop_map(Act::Die),
        4 => (1u64..6, prop_oneof![Just(0), 0..BOUND, Just(u64::MAX)]).prop_map(|(worker, demand)| Act::Demand(worker, demand)),
        1 => (100u64..103).prop_map(Act::Budget),
        6 => (1u32..30).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..60)
}

struct Process {
    demand: u64,
    /// What the last heartbeat gave; none before the first.
    share: Option<u64>,
    beats_at: u64,
}

#[derive(Default)]
struct World {
    tenths: u64,
    workers: BTreeMap<u64, Process>,
    clients: BTreeMap<u64, (u64, u64)>,
    joined_or_died_at: u64,
}

impl World {
    fn now(&self) -> f64 {
        self.tenths as f64 / 10.0
    }

    fn step(&mut self, state: &mut State) {
        self.tenths += 1;
        let now = self.now();
        state.decide(at(now), Event::Tick);
        for (worker, process) in &mut self.workers {
            if process.beats_at <= self.tenths {
                process.share = Some(rate(state, now, *worker, process.demand));
                process.beats_at = self.tenths + 10;
            }
        }
        self.clients.retain(|_, (_, until)| *until > self.tenths);
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let workers: u64 = self.workers.values().filter_map(|process| process.share).sum();
        let clients: u64 = self.clients.values().map(|(share, _)| share).sum();
        // The floors of those who come while others hold everything.
        let slack = BOUND / 20 + BOUND / 20;
        prop_assert!(workers + clients <= BOUND + slack, "{workers} + {clients} at {} s", self.now());
        let quiet = self.tenths > self.joined_or_died_at + 75;
        if quiet {
            prop_assert!(workers + clients <= BOUND + BOUND / 20 / 16, "{workers} + {clients} at {} s", self.now());
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_bound_holds_over_all_and_is_used(acts in acts()) {
        let mut state = state();
        let mut world = World::default();
        for act in acts {
            match act {
                Act::Join(worker) => if !world.workers.contains_key(&worker) {
                    register(&mut state, world.now(), worker);
                    let beats_at = world.tenths + worker;
                    world.workers.insert(worker, Process { demand: 0, share: None, beats_at });
                    world.joined_or_died_at = world.tenths;
                },
                Act::Die(worker) => if world.workers.remove(&worker).is_some() {
                    world.joined_or_died_at = world.tenths;
                },
                Act::Demand(worker, demand) => if let Some(process) = world.workers.get_mut(&worker) {
                    process.demand = demand;
                },
                Act::Budget(client) => {
                    let lease = budget(&mut state, world.now(), client);
                    let until = world.tenths + lease.lasts.as_millis() as u64 / 100;
                    world.clients.insert(client, (lease.share.bytes_per_sec.unwrap(), until));
                }
                Act::Wait(tenths) => for _ in 0..tenths {
                    world.step(&mut state);
                    world.check()?;
                },
            }
        }
        // Left alone, the workers use the whole bound.
        for _ in 0..200 {
            world.step(&mut state);
            world.check()?;
        }
        let total: u64 = world.workers.values().filter_map(|process| process.share).sum();
        prop_assert!(world.workers.is_empty() || total == BOUND, "{total}");
    }
}
