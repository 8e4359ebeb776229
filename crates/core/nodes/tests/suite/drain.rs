//! Containers and blocks that move to other workers, and the plans of where.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use forebay_nodes::{
    BlockRef, CreateOptions, DirId, Got, Haven, Namespace, NodeErrorKind, NodeType, ROOT, Value, plan_blocks, plan_containers,
};
use proptest::prelude::*;

use crate::store::{LEASE, NOW};

/// A worker with a directory `d` of the root of another one, and in it a value, a leased file with a writer, and a directory.
struct Pair {
    parent: Namespace,
    source: Namespace,
    target: Namespace,
    dir: DirId,
}

fn block(number: u64) -> BlockRef {
    BlockRef { worker: 2, number, len: 10 }
}

impl Pair {
    fn new() -> Self {
        let (mut parent, mut source) = (Namespace::new(1, 1 << 20), Namespace::new(2, 1 << 20));
        parent.make_root();
        let dir = source.adopt(NodeType::Directory, Default::default(), ROOT).unwrap();
        parent.link(ROOT, "d", CreateOptions::new(NodeType::Directory), dir).unwrap();
        source.put(dir, "k", Value::Blocks([block(7), block(8)].into())).unwrap();
        source.create(dir, "f", CreateOptions::new(NodeType::File)).unwrap();
        source.append(dir, "f", b"text", 5, NOW, LEASE).unwrap();
        source.set_lease(dir, "f", Some(NOW + LEASE)).unwrap();
        source.create(dir, "sub", CreateOptions::new(NodeType::Directory)).unwrap();
        Self { parent, source, target: Namespace::with_numbers(3, 1 << 20, 1000), dir }
    }

    /// All steps of the target before the source's commit.
    fn prepare(&mut self, now: Duration) -> DirId {
        let carton = self.source.begin_handover(self.dir).unwrap();
        let new = self.target.begin_takeover(2, carton).unwrap();
        let mut after: Option<String> = None;
        loop {
            let (packed, last) = self.source.pack(self.dir, after.as_deref(), 1, NOW).unwrap();
            after = self.source.list(self.dir, after.as_deref(), 1).unwrap().0.pop().map(|entry| entry.name).or(after);
            self.target.unpack(new, packed, now).unwrap();
            if last {
                break;
            }
        }
        self.target.end_takeover(new).unwrap();
        new
    }
}

#[test]
fn a_container_moves_as_a_whole_with_its_leases_and_writers() {
    let mut pair = Pair::new();
    let before = (pair.source.nodes(), pair.source.bytes());
    // The target's clock is another one.
    let late = NOW + Duration::from_secs(5000);
    let new = pair.prepare(late);
    let refused = pair.source.put(pair.dir, "k", Value::from(b"x".to_vec())).unwrap_err();
    assert_eq!((refused.kind, refused.kind.as_str()), (NodeErrorKind::Moving, "Retry"));
    assert!(matches!(pair.source.get(pair.dir, "k").unwrap(), Got::Blocks(_)), "readers see it where it was");
    assert_eq!(pair.source.commit_handover(pair.dir, new), Some(ROOT));
    assert_eq!(pair.source.moved_to(pair.dir), Some(new));
    assert!(!pair.source.has(pair.dir));
    assert_eq!(pair.source.take_freed(), [], "the blocks are the target's");
    let (sub, parent) = pair.target.settle_takeover(new, Some(ROOT));
    assert_eq!(parent, Some(ROOT));
    assert_eq!(sub.len(), 1, "its directory stayed behind, and has to hear where it is in now");
    pair.source.set_parent(sub[0], new).unwrap();
    assert!(pair.parent.relink(pair.dir, new).unwrap());
    assert!(pair.parent.relink(pair.dir, new).unwrap(), "said twice");
    assert!(matches!(pair.parent.walk(ROOT, "d/k").unwrap(), forebay_nodes::At::Elsewhere(dir, "k") if dir == new));
    assert_eq!(pair.target.get(new, "k").unwrap(), Got::Blocks(&[block(7), block(8)]));
    // The empty table of the directory that stayed has no node of its own.
    assert_eq!((pair.target.nodes(), pair.target.bytes()), before);
    assert_eq!((pair.source.nodes(), pair.source.bytes()), (0, 0));
    let append = |target: &mut Namespace, writer, now| target.append(new, "f", b"!", writer, now, LEASE);
    assert_eq!(append(&mut pair.target, 6, late).unwrap_err().kind, NodeErrorKind::Retry, "the other one still writes");
    append(&mut pair.target, 5, late).unwrap();
    assert_eq!(pair.target.expired(late + LEASE - Duration::from_millis(1)), []);
    assert_eq!(pair.target.expired(late + LEASE), [(new, "f".to_string())]);
    pair.target.remove_nodes(new, true).unwrap();
    assert_eq!((pair.target.nodes(), pair.target.bytes()), (0, 0));
}

#[test]
fn a_container_that_stays_is_as_before_and_nothing_is_left_at_the_target() {
    let mut pair = Pair::new();
    let new = pair.prepare(NOW);
    pair.target.drop_takeover(new);
    pair.source.abort_handover(pair.dir);
    assert_eq!((pair.target.nodes(), pair.target.bytes(), pair.target.expired(NOW + LEASE)), (0, 0, vec![]));
    assert_eq!(pair.target.take_freed(), [], "its blocks are the source's");
    pair.source.put(pair.dir, "k", Value::from(b"x".to_vec())).unwrap();
    assert_eq!(pair.source.take_freed(), [block(7), block(8)]);
    let again = pair.prepare(NOW);
    assert_ne!(again, new);
    assert_eq!(pair.target.get(again, "k").unwrap(), Got::Inline(b"x"));
}

#[test]
fn what_is_being_renamed_does_not_move() {
    let mut pair = Pair::new();
    pair.source.begin_move(pair.dir, "k").unwrap();
    assert_eq!(pair.source.begin_handover(pair.dir).unwrap_err().kind, NodeErrorKind::Retry);
    pair.source.abort_move(pair.dir, "k");
    pair.prepare(NOW);
    assert_eq!(pair.source.begin_move(pair.dir, "k").unwrap_err().kind, NodeErrorKind::Moving);
    assert_eq!(pair.source.remove_nodes(pair.dir, true).unwrap_err().kind, NodeErrorKind::Moving);
    pair.parent.begin_move(ROOT, "d").unwrap();
    assert_eq!(pair.parent.relink(pair.dir, DirId { worker: 3, number: 1 }).unwrap_err().kind, NodeErrorKind::Moving);
}

#[test]
fn the_root_is_taken_over_when_it_is_whole_and_nobody_sees_it_before() {
    for whole in [true, false] {
        let (mut source, mut target) = (Namespace::new(1, 1 << 20), Namespace::new(2, 1 << 20));
        source.make_root();
        source.put(ROOT, "k", Value::from(b"v".to_vec())).unwrap();
        let carton = source.begin_handover(ROOT).unwrap();
        assert_eq!(target.begin_takeover(1, carton).unwrap(), ROOT);
        target.unpack(ROOT, source.pack(ROOT, None, u64::MAX, NOW).unwrap().0, NOW).unwrap();
        if whole {
            target.end_takeover(ROOT).unwrap();
        }
        assert_eq!(target.get(ROOT, "k").unwrap_err().kind, NodeErrorKind::Moving);
        source.seal(ROOT);
        assert_eq!(source.get(ROOT, "k").unwrap_err().kind, NodeErrorKind::Moving);
        assert_eq!((source.has_root(), target.has_root()), (true, false), "it is not the target's while it is on its way");
        target.make_root();
        assert_eq!((target.get(ROOT, "k").is_ok(), target.has_root()), (whole, true));
        source.commit_handover(ROOT, ROOT);
        assert!(!source.has(ROOT) && !source.has_root());
        target.put(ROOT, "l", Value::from(b"w".to_vec())).unwrap();
    }
}

#[test]
fn blocks_change_their_place_under_their_nodes() {
    let mut pair = Pair::new();
    let new = BlockRef { worker: 9, number: 1, len: 10 };
    let some: Vec<BlockRef> = pair.source.some_blocks_of(2, 10).into_iter().map(|(block, _)| block).collect();
    assert_eq!(some, [block(7), block(8)]);
    assert_eq!(pair.source.some_blocks_of(2, 1).len(), 1);
    let moved = HashMap::from([(block(7), new), (block(99), new), (block(8), BlockRef { len: 11, ..new })]);
    let replaced = pair.source.replace_blocks(&moved);
    assert_eq!(replaced.into_iter().collect::<Vec<_>>(), [block(7)], "not what is no node's, nor of another length");
    assert_eq!(pair.source.get(pair.dir, "k").unwrap(), Got::Blocks(&[new, block(8)]));
    assert_eq!(pair.source.take_freed(), [], "the old block is the caller's");
    pair.prepare(NOW);
    let back = HashMap::from([(new, block(7))]);
    assert!(pair.source.replace_blocks(&back).is_empty() && pair.target.replace_blocks(&back).is_empty(), "both on their way");
}

fn havens() -> impl Strategy<Value = Vec<Haven>> {
    let haven = (0u64..200, 0u64..200, any::<bool>(), any::<bool>());
    prop::collection::vec(haven, 0..5).prop_map(|havens| {
        let numbered = (1..).zip(havens);
        let haven =
            |(worker, (names_left, blocks_left, has_disk, is_near))| Haven { worker, names_left, blocks_left, has_disk, is_near };
        numbered.map(haven).collect()
    })
}

/// Bytes that each worker is to take.
fn taken<T>(moves: &[(T, u64)], bytes: impl Fn(&T) -> u64) -> BTreeMap<u64, u64> {
    let mut taken = BTreeMap::new();
    moves.iter().for_each(|(what, worker)| *taken.entry(*worker).or_default() += bytes(what));
    taken
}

proptest! {
    #[test]
    fn containers_go_where_there_is_room_and_stay_only_without(sizes in prop::collection::vec(0u64..100, 0..12), havens in havens()) {
        let containers: Vec<(DirId, u64)> = sizes.iter().enumerate()
            .map(|(at, bytes)| (if at == 0 { ROOT } else { DirId { worker: 9, number: at as u64 } }, *bytes)).collect();
        let size = |id: &DirId| containers.iter().find(|(it, _)| it == id).unwrap().1;
        let plan = plan_containers(&containers, &havens);
        let mut reversed = havens.clone();
        reversed.reverse();
        prop_assert_eq!(&plan, &plan_containers(&containers, &reversed), "the order of the havens is of no meaning");
        let taken = taken(&plan.moves, size);
        let moved: BTreeMap<DirId, u64> = plan.moves.iter().copied().collect();
        prop_assert_eq!(moved.len(), plan.moves.len(), "each once");
        if let Some(at) = plan.moves.iter().position(|(id, _)| *id == ROOT) {
            prop_assert_eq!(at, plan.moves.len() - 1, "the root last");
        }
        let mut stuck = 0;
        for haven in &havens {
            prop_assert!(taken.get(&haven.worker).copied().unwrap_or(0) <= haven.names_left);
        }
        for (id, bytes) in containers.iter().filter(|(id, _)| !moved.contains_key(id)) {
            stuck += bytes;
            let free = havens.iter().map(|haven| haven.names_left - taken.get(&haven.worker).copied().unwrap_or(0)).max();
            // What came after it was smaller, so that there can only be less room now; but the root comes after larger ones.
            prop_assert!(free.is_none_or(|free| free < *bytes), "{:?} of {} bytes stays, and there are {:?}", id, bytes, free);
        }
        prop_assert_eq!(stuck, plan.stuck_bytes);
    }

    #[test]
    fn blocks_keep_within_room_and_limit_and_their_class(
        lens in prop::collection::vec((1u32..60, any::<bool>()), 0..20),
        havens in havens(),
        in_flight_max in 0u64..300,
        asked in prop::collection::vec((0u64..20, 1u64..5), 0..20),
    ) {
        let blocks: Vec<BlockRef> = lens.iter().enumerate()
            .map(|(at, (len, _))| BlockRef { worker: 9, number: at as u64, len: *len }).collect();
        let on_disk = |block: BlockRef| lens[block.number as usize].1;
        let asks_for = |block: BlockRef, worker: u64| asked.contains(&(block.number, worker));
        let plan = plan_blocks(&blocks, &havens, in_flight_max, on_disk, asks_for);
        let taken = taken(&plan.moves, |block| block.len.into());
        for haven in &havens {
            prop_assert!(taken.get(&haven.worker).copied().unwrap_or(0) <= haven.blocks_left);
        }
        for (block, worker) in &plan.moves {
            let haven = havens.iter().find(|haven| haven.worker == *worker).unwrap();
            prop_assert!(haven.has_disk || !on_disk(*block));
            let left = |it: &&Haven| it.blocks_left - taken.get(&it.worker).copied().unwrap_or(0);
            let mut can = havens.iter().filter(|it| left(it) >= block.len.into() && (it.has_disk || !on_disk(*block)));
            let better = |it: &Haven| (asks_for(*block, it.worker), it.is_near);
            prop_assert!(can.all(|it| better(it) <= better(haven)), "a better one has room in the end, and had more before");
        }
        let in_flight: u64 = taken.values().sum();
        prop_assert!(in_flight <= in_flight_max || plan.moves.len() == 1);
        let fits = |block: &BlockRef| havens.iter().any(|haven| haven.blocks_left >= block.len.into() && (haven.has_disk || !on_disk(*block)));
        prop_assert!(!plan.moves.is_empty() || !blocks.iter().any(fits), "something moves whenever something can");
    }
}
