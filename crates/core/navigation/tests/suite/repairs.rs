//! Copies after a loss.

use forebay_navigation::{Copy, CopySource, Damage, Damaged, Postponed, RepairRoom, ShardId, Survivor, repair, sources, urgency};
use forebay_types::WorkerId;
use proptest::prelude::*;

fn room(worker: u64, free_bytes: u64) -> RepairRoom {
    RepairRoom { worker: WorkerId(worker), free_bytes, domain: worker as u32 }
}

fn survivor(worker: u64, bytes: u64) -> Survivor {
    Survivor { worker: WorkerId(worker), bytes, is_whole: true }
}

fn damaged(shard: u64, survivors: &[Survivor]) -> Damaged {
    Damaged { shard: ShardId(shard), base_bytes: 50, wanted: 3, waiting: 0, survivors: survivors.to_vec() }
}

fn damage(shards: Vec<Damaged>) -> Damage {
    let workers = (1..=5).map(|worker| room(worker, 1000)).collect();
    Damage { workers, shards, in_flight_bytes_max: 10_000, in_flight_bytes: 0 }
}

fn copies(damage: &Damage) -> Vec<Copy> {
    repair(damage).expect("the damage can be").copies
}

/// Section 5.1: replicas of 0.9x, 0.5x and 0.5x; the loss of any costs a copy of 0.5x.
#[test]
fn blowfish_section_5_1_the_largest_replica_comes_back_by_a_copy_of_the_smallest() {
    let found = copies(&damage(vec![damaged(7, &[survivor(1, 90), survivor(2, 50)])]));
    assert_eq!(found, [Copy { shard: ShardId(7), from: CopySource::Worker(WorkerId(2)), to: WorkerId(3), bytes: 50 }]);
}

#[test]
fn with_no_replica_left_it_comes_from_shared_storage() {
    let found = copies(&damage(vec![damaged(7, &[])]));
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|copy| copy.from == CopySource::SharedStorage));
}

#[test]
fn nothing_is_copied_from_a_copy_that_is_on_its_way() {
    let arriving = Survivor { is_whole: false, ..survivor(2, 50) };
    let found = copies(&damage(vec![damaged(7, &[survivor(1, 90), arriving])]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].from, CopySource::Worker(WorkerId(1)));
    assert_eq!(copies(&damage(vec![damaged(7, &[survivor(1, 90), arriving, Survivor { worker: WorkerId(3), ..arriving }])])), []);
}

#[test]
fn the_fewest_replicas_come_first_then_those_that_most_wait_for() {
    let waited = Damaged { waiting: 9, ..damaged(3, &[survivor(1, 50), survivor(2, 50)]) };
    let shards = vec![damaged(1, &[survivor(1, 50), survivor(2, 50)]), damaged(2, &[survivor(1, 50)]), waited];
    let order: Vec<u64> = copies(&damage(shards)).iter().map(|copy| copy.shard.0).collect();
    assert_eq!(order, [2, 3, 1, 2], "a second copy of one comes after the first of each");
}

#[test]
fn bandwidth_is_bounded_and_what_waits_is_said() {
    let shards = (0..10).map(|shard| damaged(shard, &[survivor(1, 50), survivor(2, 50)])).collect();
    let tight = Damage { in_flight_bytes_max: 200, in_flight_bytes: 60, ..damage(shards) };
    let found = repair(&tight).unwrap();
    assert_eq!((found.copies.len(), found.postponed.len()), (2, 8));
    assert_eq!(found.postponed[0], (ShardId(2), Postponed::Bandwidth));
}

#[test]
fn a_shard_larger_than_the_bound_is_copied_alone() {
    let shards = vec![damaged(1, &[survivor(1, 50), survivor(2, 50)]), damaged(2, &[survivor(1, 50), survivor(2, 50)])];
    let found = copies(&Damage { in_flight_bytes_max: 10, ..damage(shards.clone()) });
    assert_eq!(found.len(), 1);
    assert_eq!(copies(&Damage { in_flight_bytes_max: 10, in_flight_bytes: 50, ..damage(shards) }), []);
}

#[test]
fn replicas_lie_in_different_failure_domains_where_they_can() {
    let mut cluster = damage(vec![damaged(7, &[survivor(1, 50), survivor(2, 50)])]);
    cluster.workers[2] = RepairRoom { domain: 1, free_bytes: 5000, ..cluster.workers[2] };
    assert_eq!(copies(&cluster)[0].to, WorkerId(4), "the third is beside the first");
    cluster.workers.truncate(3);
    assert_eq!(copies(&cluster)[0].to, WorkerId(3), "rather there than nowhere");
    cluster.workers.truncate(2);
    assert_eq!(repair(&cluster).unwrap().postponed, [(ShardId(7), Postponed::NoRoom)]);
}

#[test]
fn those_who_survive_send_alike() {
    let shards = (0..10).map(|shard| damaged(shard, &[survivor(1, 50), survivor(2, 50)])).collect();
    let found = copies(&damage(shards));
    let first = found.iter().filter(|copy| copy.from == CopySource::Worker(WorkerId(1))).count();
    assert_eq!((found.len(), first), (10, 5));
}

#[test]
fn what_can_not_be_is_refused() {
    let sound = damage(vec![damaged(7, &[survivor(1, 50)])]);
    let refused = |damage: &Damage| repair(damage).unwrap_err().to_string();
    assert!(refused(&Damage { in_flight_bytes_max: 0, ..sound.clone() }).contains("bound above 0"));
    assert!(refused(&Damage { workers: vec![room(1, 1), room(1, 2)], ..sound.clone() }).contains("worker 1 comes twice"));
    assert!(refused(&damage(vec![damaged(7, &[]), damaged(7, &[])])).contains("shard 7 comes twice"));
    assert!(refused(&damage(vec![damaged(7, &[survivor(1, 50), survivor(1, 60)])])).contains("worker 1 comes twice"));
    assert!(refused(&damage(vec![Damaged { base_bytes: 0, ..damaged(7, &[]) }])).contains("what its files take"));
    assert!(refused(&damage(vec![Damaged { wanted: 100, ..damaged(7, &[]) }])).contains("64 at most"));
}

#[test]
fn who_has_less_to_do_gives_of_replicas_of_one_size_and_a_copy_on_its_way_gives_nothing() {
    let arriving = Survivor { is_whole: false, ..survivor(4, 10) };
    let survivors = [survivor(1, 90), survivor(2, 50), survivor(3, 50), arriving];
    let load = |worker: WorkerId| if worker == WorkerId(2) { 7 } else { 0 };
    let workers = |order: &[u64]| order.iter().map(|worker| CopySource::Worker(WorkerId(*worker))).collect::<Vec<_>>();
    let with_storage = |order: &[u64]| [workers(order), vec![CopySource::SharedStorage]].concat();
    assert_eq!(sources(&survivors, load), with_storage(&[3, 2, 1]));
    assert_eq!(sources(&survivors, |_| 0), with_storage(&[2, 3, 1]));
    assert_eq!(sources(&[arriving], load), with_storage(&[]));
}

proptest! {
    /// Of all orders in which sources could be tried it is the one in which none should have come before another.
    #[test]
    fn the_order_of_sources_is_that_which_brute_force_finds(
        replicas in prop::collection::btree_map(0u64..6, (1u64..4, any::<bool>(), 0u64..3), 0..5),
    ) {
        let survivors: Vec<Survivor> = replicas
            .iter()
            .map(|(worker, (bytes, is_whole, _))| Survivor { is_whole: *is_whole, ..survivor(*worker, *bytes) })
            .collect();
        let load = |worker: WorkerId| replicas[&worker.0].2;
        let before = |a: &Survivor, b: &Survivor| {
            let (of_a, of_b) = (load(a.worker), load(b.worker));
            a.bytes < b.bytes || (a.bytes == b.bytes && (of_a < of_b || (of_a == of_b && a.worker.0 < b.worker.0)))
        };
        let mut orders = vec![Vec::new()];
        for survivor in survivors.iter().filter(|survivor| survivor.is_whole) {
            let longer = |order: &Vec<Survivor>| (0..=order.len()).map(|at| {
                let mut order = order.clone();
                order.insert(at, *survivor);
                order
            }).collect::<Vec<_>>();
            orders = orders.iter().flat_map(longer).collect();
        }
        orders.retain(|order| order.windows(2).all(|pair| before(&pair[0], &pair[1])));
        prop_assert_eq!(orders.len(), 1);
        let mut wanted: Vec<CopySource> = orders[0].iter().map(|survivor| CopySource::Worker(survivor.worker)).collect();
        wanted.push(CopySource::SharedStorage);
        prop_assert_eq!(sources(&survivors, load), wanted);
    }

    #[test]
    fn fewer_replicas_are_more_urgent_than_any_number_of_requests(a in 0usize..3, b in 0usize..3, x in 0u64..9, y in 0u64..9) {
        let is_first = a < b || (a == b && x > y);
        prop_assert_eq!(urgency(a, x) < urgency(b, y), is_first);
    }

    /// The postconditions are asserted inside; and repairs come to an end: every shard has its replicas, or there is no room.
    #[test]
    fn repairs_go_on_until_nothing_is_missing(
        rooms in prop::collection::vec((0u64..400, 0u32..4), 1..8),
        shards in prop::collection::vec((1u64..90, 0u32..5, prop::collection::btree_map(0u64..8, 1u64..200, 0..4)), 1..20),
        bound in 1u64..300,
    ) {
        let workers = (0..).zip(&rooms).map(|(worker, (free_bytes, domain))| RepairRoom { worker: WorkerId(worker), free_bytes: *free_bytes, domain: *domain });
        let shard = |(shard, (base_bytes, wanted, survivors)): (u64, &(u64, u32, std::collections::BTreeMap<u64, u64>))| {
            let survivors = survivors.iter().map(|(worker, bytes)| survivor(*worker, *bytes)).collect();
            Damaged { shard: ShardId(shard), base_bytes: *base_bytes, wanted: *wanted, waiting: shard % 3, survivors }
        };
        let shards = (0..).zip(&shards).map(shard).collect();
        let mut damage = Damage { workers: workers.collect(), shards, in_flight_bytes_max: bound, in_flight_bytes: 0 };
        for _ in 0..200 {
            let found = repair(&damage).unwrap();
            prop_assert_eq!(&found, &repair(&damage).unwrap());
            if found.copies.is_empty() {
                prop_assert!(found.postponed.iter().all(|(_, why)| *why == Postponed::NoRoom));
                return Ok(());
            }
            for copy in found.copies {
                let room = damage.workers.iter_mut().find(|room| room.worker == copy.to).unwrap();
                room.free_bytes -= copy.bytes;
                let shard = damage.shards.iter_mut().find(|shard| shard.shard == copy.shard).unwrap();
                shard.survivors.push(Survivor { worker: copy.to, bytes: copy.bytes, is_whole: true });
            }
        }
        prop_assert!(false, "repairs did not end");
    }
}
