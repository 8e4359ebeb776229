//! What is left of changes that panic between any two of their steps.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::fail;
use crate::namespace::operations::{Condition, CreateOptions};
use crate::node::{Appended, Got, Moving, Node, TAIL_BYTES_MAX, Value};
use crate::terms::{Affinity, BlockRef, DirId, NodeType, ROOT};
use crate::{Carton, Namespace};

const NOW: Duration = Duration::from_secs(100);
const LEASE: Duration = Duration::from_secs(10);
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// All that is there, but for the numbers that were given.
fn all_of(names: &Namespace) -> String {
    let tables: BTreeMap<_, _> = names.tables.iter().collect();
    let arriving: BTreeMap<_, _> = names.arriving.iter().collect();
    let coming: BTreeMap<_, _> = names.coming.iter().collect();
    let moved: BTreeMap<_, _> = names.moved.iter().collect();
    let links: BTreeMap<_, _> = names.links.iter().collect();
    let counts = (names.counts.bytes, names.counts.nodes, &names.freed);
    format!("{tables:?} {:?} {arriving:?} {coming:?} {moved:?} {links:?} {counts:?}", names.leases)
}

/// What is true between any two changes.
fn check(names: &Namespace) {
    names.check();
    for table in names.tables.values() {
        assert_eq!(table.inside, table.nodes.values().filter_map(Node::container).collect::<BTreeSet<_>>());
    }
    assert_eq!(names.bounded, names.tables.values().filter(|table| table.quota.is_some()).count());
    for (id, (dir, name)) in &names.links {
        assert_eq!(names.container_of(*dir, name), Some(*id));
    }
    let nodes = names.tables.values().flat_map(|table| table.nodes.values());
    let blocks: Vec<BlockRef> = nodes.flat_map(Node::blocks).collect();
    assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len(), "no two nodes have a block");
    assert!(!names.undo.is_open && names.undo.steps.is_empty() && names.undo.text.is_empty());
}

/// Numbers by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
}

/// A part of the namespace, and what others have to do with it.
struct Bed {
    names: Namespace,
    other: Namespace,
    chance: Chance,
    number: u64,
    panics: u32,
}

impl Bed {
    fn new(seed: u64) -> Self {
        let (mut names, mut other) = (Namespace::new(1, 1 << 30), Namespace::new(2, 1 << 30));
        names.make_root();
        other.make_root();
        Self { names, other, chance: Chance(seed), number: 1 << 40, panics: 0 }
    }

    /// Makes a change after it panicked after each of its steps, none of which leaves anything.
    fn change<T>(&mut self, change: impl Fn(&mut Namespace) -> T) -> T {
        let before = all_of(&self.names);
        for steps in 0.. {
            fail::after(Some(steps));
            let done = catch_unwind(AssertUnwindSafe(|| change(&mut self.names)));
            fail::after(None);
            if let Ok(done) = done {
                check(&self.names);
                self.names.take_freed();
                return done;
            }
            self.panics += 1;
            assert_eq!(all_of(&self.names), before, "after {steps} steps");
            check(&self.names);
            self.others_go_on(&before);
        }
        unreachable!("it ends when all steps were taken");
    }

    /// Another caller puts, gets and deletes, and finds what it has put.
    fn others_go_on(&mut self, before: &str) {
        if self.names.open_table(ROOT).is_err() {
            return;
        }
        self.names.put(ROOT, "another's", b"value".to_vec().into()).unwrap();
        assert!(matches!(self.names.get(ROOT, "another's").unwrap(), Got::Inline(b"value")));
        self.names.delete(ROOT, "another's", false).unwrap();
        assert_eq!(all_of(&self.names), before);
    }

    fn blocks(&mut self, count: u64) -> Vec<BlockRef> {
        self.number += count;
        (self.number - count..self.number).map(|number| BlockRef { worker: 2, number, len: 100_000 }).collect()
    }

    /// One of the containers that are here.
    fn dir(&mut self) -> DirId {
        let dirs: BTreeSet<DirId> = self.names.tables.keys().copied().collect();
        match dirs.len() {
            0 => ROOT,
            count => *dirs.iter().nth(self.chance.below(count)).unwrap(),
        }
    }

    fn of_a_node(&mut self, what: usize) {
        let (dir, name, to) = (self.dir(), self.chance.name(), self.chance.name());
        let (target, blocks) = (self.dir(), self.blocks(2));
        match what {
            0 | 1 => {
                let kinds = [NodeType::File, NodeType::File, NodeType::KeyValue, NodeType::Directory, NodeType::Directory];
                let options = CreateOptions::new(kinds[self.chance.below(kinds.len())]);
                drop(self.change(|names| names.create(dir, name, options.clone())));
            }
            2 => drop(self.change(|names| names.put(dir, name, vec![7; 10].into()))),
            3 => drop(self.change(|names| names.put(dir, name, Value::Blocks(blocks.clone().into())))),
            4 => {
                let len = [10, TAIL_BYTES_MAX][self.chance.below(2)];
                let appended = self.change(|names| names.append(dir, name, &vec![1; len], 5, NOW, LEASE));
                if let Ok(Appended::NeedsBlocks { serial, len, .. }) = appended {
                    drop(self.change(|names| names.append_blocks(dir, name, serial, len, &blocks)));
                }
            }
            5 => {
                let Ok(view) = self.names.view(dir, name, 0, u64::MAX) else { return };
                let at = (view.serial, view.tail_at);
                let offset = view.tail_at;
                drop(self.change(|names| names.write_tail(dir, name, at, offset, &vec![3; view.tail.len() / 2])));
                if let Some(old) = view.blocks.first() {
                    drop(self.change(|names| names.replace_block(dir, name, view.serial, 0, (*old, blocks[0]))));
                }
            }
            6 => drop(self.change(|names| names.open_writer(dir, name, 9, NOW, LEASE))),
            7 => drop(self.change(|names| names.close_writer(dir, name, 9))),
            8 => drop(self.change(|names| names.rename((dir, name), (target, to)))),
            9 => drop(self.change(|names| names.replace(dir, name, to, Condition::Any))),
            10 => drop(self.change(|names| names.set_lease(dir, name, Some(NOW)))),
            11 => drop(self.change(|names| names.set_lease(dir, name, None))),
            12 => {
                let quota = [None, Some(0), Some(250_000)][self.chance.below(3)];
                drop(self.change(|names| names.set_quota(dir, quota)));
            }
            _ => drop(self.change(|names| names.delete(dir, name, true))),
        }
    }

    fn of_two_workers(&mut self, what: usize) {
        let (dir, name, blocks) = (self.dir(), self.chance.name(), self.blocks(1));
        match what {
            0 => {
                if self.change(|names| names.begin_move(dir, name)).is_ok() {
                    match self.chance.below(2) {
                        0 => self.change(|names| names.commit_move(dir, name)).unwrap_or_default(),
                        _ => self.change(|names| names.abort_move(dir, name)),
                    }
                }
            }
            1 => {
                let moving = self.coming_node(blocks);
                let arrived = self.change(|names| names.arrive(7, 2, dir, name, moving.clone()));
                let committed = self.chance.below(3) > 0;
                if arrived.is_ok() && self.chance.below(4) == 0 {
                    drop(self.change(|names| names.remove_nodes(dir, true)));
                }
                self.change(|names| names.settle(7, committed));
            }
            2 => {
                let id = DirId { worker: 2, number: self.number };
                let linked = self.change(|names| names.link(dir, name, CreateOptions::new(NodeType::Directory), id));
                let new = self.change(|names| names.adopt(NodeType::Directory, Affinity::default(), dir)).unwrap();
                if linked.is_ok() {
                    self.change(|names| names.relink(id, new)).unwrap();
                }
            }
            3 => {
                if self.change(|names| names.begin_handover(dir)).is_ok() {
                    self.change(|names| names.seal(dir));
                    match self.chance.below(3) {
                        0 if dir != ROOT => drop(self.change(|names| names.commit_handover(dir, DirId { worker: 2, ..dir }))),
                        _ => self.change(|names| names.abort_handover(dir)),
                    }
                }
            }
            4 => self.take_over(dir),
            5 => {
                let all = self.names.blocks_of(|_| true);
                let moved: HashMap<_, _> =
                    all.iter().map(|old| (*old, BlockRef { number: old.number | 1 << 50, ..*old })).collect();
                self.change(|names| names.replace_blocks(&moved));
            }
            _ => {
                self.change(Namespace::lose_all);
                self.change(Namespace::make_root);
                self.change(Namespace::drop_root);
                self.change(Namespace::make_root);
            }
        }
    }

    /// A node of another worker that is on its way here.
    fn coming_node(&mut self, blocks: Vec<BlockRef>) -> Moving {
        let name = blocks[0].number.to_string();
        self.other.put(ROOT, &name, Value::Blocks(blocks.into())).unwrap();
        self.other.begin_move(ROOT, &name).unwrap()
    }

    fn take_over(&mut self, parent: DirId) {
        let quota = [None, Some(50_000)][self.chance.below(2)];
        let carton = Carton {
            old: DirId { worker: 2, number: 9 },
            kind: NodeType::Directory,
            affinity: Affinity::default(),
            parent,
            quota,
        };
        let id = self.change(|names| names.begin_takeover(2, carton.clone())).unwrap();
        let block = self.blocks(1);
        let mut source = Namespace::new(2, 1 << 20);
        source.make_root();
        source.put(ROOT, "packed", Value::Blocks(block.into())).unwrap();
        source.set_lease(ROOT, "packed", Some(NOW + LEASE)).unwrap();
        let (packed, _) = source.pack(ROOT, None, 1 << 20, NOW).unwrap();
        self.change(|names| names.unpack(id, packed.clone(), NOW)).unwrap();
        match self.chance.below(2) {
            0 => self.change(|names| names.drop_takeover(id)),
            _ => {
                self.change(|names| names.end_takeover(id)).unwrap();
                self.change(|names| names.settle_takeover(id, Some(ROOT)));
            }
        }
    }
}

#[test]
fn a_change_that_panics_between_any_two_steps_changes_nothing_and_others_go_on() {
    let mut panics = 0;
    for seed in 0..20 {
        let mut bed = Bed::new(seed);
        for _ in 0..150 {
            match bed.chance.below(4) {
                0 => {
                    // Everything goes but seldom.
                    let what = bed.chance.below(60);
                    bed.of_two_workers(if what < 6 { what } else { what.min(59) % 6 + usize::from(what == 59) * 6 });
                }
                _ => {
                    let what = bed.chance.below(14);
                    bed.of_a_node(what);
                }
            }
        }
        panics += bed.panics;
    }
    assert!(panics >= 1_000, "only {panics} changes panicked");
}
