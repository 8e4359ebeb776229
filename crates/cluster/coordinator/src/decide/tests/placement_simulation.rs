//! Workers that come, die, forget and fail to load, popularity that jumps, clients that poll in their own time, in steps of
//! one second. The oracle knows who really holds what and which table each client has.

use std::collections::{BTreeMap, BTreeSet};

use forebay_protocol::{Order, OrderEnd, RouteTable, SegmentUse, WindowReport};
use forebay_types::{Key, ObjectVersion, RouteKey, SegmentId, VersionTag};
use proptest::prelude::*;

use super::*;

const OBJECTS: u64 = 6;
const BYTES: u64 = 8 << 20;
const WINDOW_SECS: u64 = 10;
const POLL_SECS: u64 = 4;

#[derive(Clone, Debug)]
enum Act {
    Join(u64),
    Die(u64),
    /// The worker evicts an object.
    Forget(u64, u64),
    /// Loads of a worker fail from now on, or don't.
    Fails(u64, bool),
    /// From now on this object is read so often a window.
    Popular(u64, u32),
    Wait(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        2 => (1u64..6).prop_map(Act::Join),
        1 => (1u64..6).prop_map(Act::Die),
        1 => (1u64..6, 0..OBJECTS).prop_map(|(worker, object)| Act::Forget(worker, object)),
        1 => (1u64..6, any::<bool>()).prop_map(|(worker, fails)| Act::Fails(worker, fails)),
        3 => (0..OBJECTS, prop_oneof![Just(0u32), 1u32..20, 100u32..2000]).prop_map(|(object, reads)| Act::Popular(object, reads)),
        6 => (1u32..25).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..50)
}

fn version(object: u64) -> ObjectVersion {
    let key = Key::new(format!("t/{object}")).unwrap();
    ObjectVersion { mount: LAKE, key, tag: VersionTag::etag("\"1\""), size: BYTES }
}

fn route(object: u64) -> RouteKey {
    RouteKey::of(LAKE, &version(object).key, 0)
}

#[derive(Default)]
struct Node {
    holds: BTreeSet<u64>,
    /// What it evicted since it held it last.
    forgot: BTreeSet<u64>,
    fails: bool,
    /// Orders are carried out with the heartbeat after the one that brought them.
    orders: Vec<Order>,
    reported: Option<u64>,
    reads: BTreeMap<u64, u32>,
}

struct World {
    secs: u64,
    nodes: BTreeMap<u64, Node>,
    clients: Vec<RouteTable>,
    popular: BTreeMap<u64, u32>,
    /// Drops of each object since the last plan.
    dropped: BTreeMap<u64, u32>,
    table: RouteTable,
}

impl World {
    fn now(&self) -> f64 {
        self.secs as f64
    }

    fn live(&self) -> Vec<WorkerId> {
        self.nodes.keys().copied().map(WorkerId).collect()
    }

    /// A worker beats before it serves.
    fn join(&mut self, state: &mut State, worker: u64) -> Result<(), TestCaseError> {
        register(state, self.now(), worker);
        self.nodes.insert(worker, Node::default());
        self.beat(state, worker)
    }

    fn step(&mut self, state: &mut State) -> Result<(), TestCaseError> {
        self.secs += 1;
        let now = self.now();
        let commands = state.decide(at(now), Event::Tick);
        self.plan(state, commands);
        self.read();
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for worker in ids {
            self.beat(state, worker)?;
        }
        for client in 0..self.clients.len() {
            if (self.secs + client as u64).is_multiple_of(POLL_SECS) {
                self.clients[client] = follow(state, now, &self.clients[client]);
            }
        }
        self.check(state)
    }

    fn plan(&mut self, state: &mut State, commands: Vec<Command>) {
        for command in commands {
            if let Command::Plan(problem) = command {
                state.decide(at(self.now()), Event::Planned(Box::new(problem.solve(0)), at(0.0)));
                self.dropped.clear();
            }
        }
    }

    /// Every client reads where its table says; who is asked holds it from then on.
    fn read(&mut self) {
        let live = self.live();
        for (object, reads) in &self.popular {
            for (turn, client) in self.clients.iter().enumerate() {
                let holders: Vec<u64> = match client.holders(route(*object)) {
                    Some(line) => line.iter().map(|(worker, _)| worker.0).filter(|id| self.nodes.contains_key(id)).collect(),
                    None => Vec::new(),
                };
                let home = forebay_placement::holder(route(*object), &live).map(|home| home.0);
                let chosen = holders.get((self.secs as usize + turn) % holders.len().max(1)).copied().or(home);
                if let Some(node) = chosen.and_then(|chosen| self.nodes.get_mut(&chosen)) {
                    node.holds.insert(*object);
                    node.forgot.remove(object);
                    *node.reads.entry(*object).or_default() += reads / WINDOW_SECS as u32 + 1;
                }
            }
        }
    }

    fn beat(&mut self, state: &mut State, worker: u64) -> Result<(), TestCaseError> {
        let now = self.now();
        let named: Vec<BTreeSet<u64>> = self.clients.iter().map(|table| named(table, worker)).collect();
        let node = self.nodes.get_mut(&worker).unwrap();
        let mut ended = Vec::new();
        for order in std::mem::take(&mut node.orders) {
            let (segment, hold) = match order {
                Order::Hold { version, index, .. } => {
                    let segment = SegmentId::of(&version, index);
                    if !node.fails {
                        node.holds.insert(number(segment));
                        node.forgot.remove(&number(segment));
                    }
                    (segment, true)
                }
                Order::Drop { segment } => {
                    let object = number(segment);
                    prop_assert!(named.iter().all(|named| !named.contains(&object)), "{worker} drops what a client may ask for");
                    node.holds.remove(&object);
                    *self.dropped.entry(object).or_default() += 1;
                    prop_assert!(self.dropped[&object] <= 2, "of five replicas of {object} more than half go in one run");
                    (segment, false)
                }
            };
            let held_bytes = if node.holds.contains(&number(segment)) { BYTES } else { 0 };
            ended.push(OrderEnd { segment, hold, held_bytes });
        }
        let report = WorkerReport { segments: node.holds.len() as u64, ..WorkerReport::default() };
        let window = node.reported.filter(|window| window & 1 << 63 != 0).map(|window| window & !(1 << 63));
        let window = window.map(|window| {
            let objects: BTreeSet<u64> = node.holds.iter().chain(node.reads.keys()).copied().collect();
            let uses = objects.iter().map(|object| SegmentUse {
                version: version(*object),
                index: 0,
                operations: node.reads.get(object).copied().unwrap_or(0),
                reads: 1,
                bytes: 1,
                service: Duration::ZERO,
                peak: 1,
                held_bytes: if node.holds.contains(object) { BYTES } else { 0 },
            });
            let uses = uses.collect();
            node.reads.clear();
            node.reported = Some(window);
            WindowReport { window, lasted: at(WINDOW_SECS as f64), uses, ..WindowReport::default() }
        });
        let beat = Heartbeat { window, ended, report, ..blank(worker) };
        let (commands, reply) = ask(state, now, MemberRequest::Heartbeat(beat));
        // The last report of a window has a plan made.
        self.plan(state, commands);
        match reply {
            Some(ControlReply::Beat { orders, window, .. }) => {
                let node = self.nodes.get_mut(&worker).unwrap();
                node.orders = orders;
                // The upper bit: to be reported with the next heartbeat.
                node.reported = match node.reported {
                    Some(reported) if reported & !(1 << 63) != window => Some(window | 1 << 63),
                    None => Some(window),
                    same => same,
                };
                Ok(())
            }
            other => Err(TestCaseError::fail(format!("{other:?} is no beat"))),
        }
    }

    fn check(&mut self, state: &mut State) -> Result<(), TestCaseError> {
        let before = std::mem::take(&mut self.table);
        self.table = follow(state, self.now(), &before);
        for object in 0..OBJECTS {
            let Some(line) = self.table.holders(route(object)) else { continue };
            let workers: BTreeSet<_> = line.iter().map(|(worker, _)| *worker).collect();
            prop_assert_eq!(workers.len(), line.len(), "each once");
            let old =
                |worker: &WorkerId| before.holders(route(object)).is_some_and(|line| line.iter().any(|(it, _)| it == worker));
            for worker in workers.iter().filter(|worker| !old(worker)) {
                let home = forebay_placement::holder(route(object), &self.live()) == Some(*worker);
                let holds = self.nodes.get(&worker.0).is_none_or(|node| node.holds.contains(&object));
                // What it evicted since its last report can't be known.
                let forgot = self.nodes.get(&worker.0).is_some_and(|node| node.forgot.contains(&object));
                prop_assert!(holds || home || forgot, "{worker} is named before it holds {object}");
            }
        }
        for segment in &state.placement_status(100).segments {
            let sum: u32 = segment.routing.iter().map(|(_, percent)| percent).sum();
            prop_assert!(sum == 100 || (sum == 0 && self.nodes.is_empty()) || segment.routing.is_empty(), "{segment:?}");
        }
        Ok(())
    }
}

fn named(table: &RouteTable, worker: u64) -> BTreeSet<u64> {
    let is_named = |object: &u64| table.holders(route(*object)).is_some_and(|line| line.iter().any(|(it, _)| it.0 == worker));
    (0..OBJECTS).filter(is_named).collect()
}

fn number(segment: SegmentId) -> u64 {
    (0..OBJECTS).find(|object| SegmentId::of(&version(*object), 0) == segment).expect("one of the objects")
}

fn follow(state: &mut State, now: f64, table: &RouteTable) -> RouteTable {
    match ask(state, now, ControlRequest::Routes { have: table.version() }).1 {
        Some(ControlReply::Routes(delta)) => table.with(delta).unwrap(),
        other => panic!("{other:?} are no routes"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn replicas_follow_and_nothing_breaks_on_the_way(acts in acts()) {
        let (window, poll) = (Duration::from_secs(WINDOW_SECS), Duration::from_secs(POLL_SECS));
        let mut state = started(1, &[], PlacementSettings { window, poll, ..PlacementSettings::default() }, None);
        let mut world = World {
            secs: 0,
            nodes: BTreeMap::new(),
            clients: vec![RouteTable::default(); 3],
            popular: BTreeMap::new(),
            dropped: BTreeMap::new(),
            table: RouteTable::default(),
        };
        for act in acts {
            match act {
                Act::Join(worker) => if !world.nodes.contains_key(&worker) {
                    world.join(&mut state, worker)?;
                },
                Act::Die(worker) => _ = world.nodes.remove(&worker),
                Act::Forget(worker, object) => if let Some(node) = world.nodes.get_mut(&worker)
                    && node.holds.remove(&object)
                {
                    node.forgot.insert(object);
                },
                Act::Fails(worker, fails) => if let Some(node) = world.nodes.get_mut(&worker) {
                    node.fails = fails;
                },
                Act::Popular(object, 0) => _ = world.popular.remove(&object),
                Act::Popular(object, reads) => _ = world.popular.insert(object, reads),
                Act::Wait(secs) => for _ in 0..secs {
                    world.step(&mut state)?;
                },
            }
        }
        // Left alone with one hot object, it is read from every worker.
        world.popular = BTreeMap::from([(0, 1000)]);
        for worker in 1..=3 {
            if !world.nodes.contains_key(&worker) {
                world.join(&mut state, worker)?;
            }
        }
        world.nodes.values_mut().for_each(|node| node.fails = false);
        for _ in 0..10 * WINDOW_SECS {
            world.step(&mut state)?;
        }
        let holders = world.table.holders(route(0)).map_or(0, |line| line.len());
        prop_assert_eq!(holders, world.nodes.len(), "one object is all there is to read: {:?}", state.placement_status(9));
    }
}
