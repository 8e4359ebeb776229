//! Replicas that are pinned at a level, or whose layers are to stay as they are.

use forebay_navigation::{Curve, Level, Plan, Reason, Replica, ShardId, layers};
use proptest::prelude::*;

use crate::support::{Own, Worker, bytes, loads};

/// A queue that is too long at any level, and does not drain.
fn busy(own: Own) -> Own {
    own.with(100, 100)
}

#[test]
fn what_is_pinned_above_its_level_comes_there_and_others_give_what_they_have() {
    let mut worker = Worker::new(60 + 70, &[Own::idle(1).pinned(3), Own::idle(2)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![3, 0], &Reason::Pinned));
    assert_eq!(worker.of(1).reason, Reason::Yielded(ShardId(0)));
    for _ in 0..60 {
        worker.follow();
    }
    assert_eq!(worker.levels(), [3, 0], "a load that is low for long changes nothing of it");
    worker.replicas[0].lowest = 0;
    worker.replicas[0].start = 1;
    for _ in 0..60 {
        worker.follow();
    }
    assert_eq!(worker.levels(), [1, 2], "unpinned, it returns to its start, and what was given comes back");
}

#[test]
fn where_there_is_no_room_for_a_pin_nothing_goes_and_it_waits() {
    let mut worker = Worker::new(60 + 60 + 10, &[Own::idle(1).pinned(4), Own::idle(1)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![1, 1], &Reason::PinWaits));
    worker.room_bytes = 90 + 60;
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![4, 1], &Reason::Pinned));
}

#[test]
fn what_is_pinned_gives_to_nobody_and_keeps_its_layers_in_less_room() {
    let mut worker = Worker::new(50 + 70, &[busy(Own::idle(0)), Own::idle(2).pinned(2)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![0, 2], &Reason::NoRoom));
    let mut worker = Worker::new(80 + 80, &[Own::idle(3).pinned(3), Own::idle(3)]);
    worker.room_bytes = 80 + 60;
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(1).reason), (vec![3, 1], &Reason::Crowded));
}

#[test]
fn what_is_frozen_does_not_move_until_it_is_thawed() {
    let below = Own { start: 4, ..Own::idle(1) };
    let above = Own { start: 0, ..Own::idle(3) };
    let mut worker = Worker::new(1000, &[below.frozen(), above.frozen(), busy(Own::idle(1)).frozen(), above.pinned(4).frozen()]);
    for _ in 0..60 {
        worker.follow();
        assert_eq!(worker.levels(), [1, 3, 1, 3]);
        assert!(worker.plan.decisions.iter().all(|decision| decision.reason == Reason::Frozen));
    }
    let mut crowded = Worker::new(80 + 80, &[Own::idle(3).frozen(), Own::idle(3)]);
    crowded.room_bytes = 80 + 50;
    crowded.follow();
    assert_eq!(crowded.levels(), [3, 0], "others make room");
    worker.replicas.iter_mut().for_each(|own| own.frozen = false);
    worker.replicas[2] = worker.replicas[2].with(0, 0);
    for _ in 0..60 {
        worker.follow();
    }
    assert_eq!(worker.levels(), [4, 0, 1, 4]);
}

#[test]
fn what_is_pinned_or_frozen_is_not_weighed_against_a_cache() {
    let level = |at: u32| Level { bytes: 10 + u64::from(at), service_us: 400.0 / f64::from(at + 1) };
    let curve = Curve::new((0..5).map(level).collect()).unwrap();
    let (shard, queue, arrived) = (ShardId(1), 0, 0);
    let of = |lowest, frozen| {
        let replica =
            Replica { shard, curve: &curve, lowest, start: 2, highest: 4, level: 2, ordered: 2, queue, arrived, frozen };
        layers(&replica, &Plan::default(), 10.0).iter().filter(|step| step.is_held).count()
    };
    assert_eq!((of(0, false), of(1, false), of(2, false)), (2, 1, 0));
    assert_eq!(of(0, true), 0);
}

proptest! {
    #[test]
    fn orders_hold_whatever_comes(
        replicas in prop::collection::vec((0u32..5, 0u32..5, 0u32..5, any::<bool>()), 1..8),
        spare in 0u64..200,
        loads in loads(),
    ) {
        let own = |(level, start, lowest, is_frozen): &(u32, u32, u32, bool)| {
            let own = Own { start: *start, ..Own::idle(*level) }.pinned(*lowest);
            if *is_frozen { own.frozen() } else { own }
        };
        let replicas: Vec<Own> = replicas.iter().map(own).collect();
        let mut worker = Worker::new(bytes(replicas.iter().map(|own| own.level)) + spare, &replicas);
        for load in loads {
            worker.meet(load);
            for (now, before) in worker.replicas.iter().zip(&replicas) {
                prop_assert!(now.level >= before.lowest.min(before.level));
                prop_assert!(!before.frozen || now.level == before.level);
            }
        }
    }
}
