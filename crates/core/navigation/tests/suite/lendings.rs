//! Room that a cache lends to layers.

use forebay_navigation::{
    Curve, Decision, Ladder, Lending, Level, Memory, Plan, Reason, Replica, ShardId, Step, layers, lend, margin,
};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn busy(saved_a_mib: f64, steps: u64) -> Ladder {
    (0..steps).map(|_| Step { bytes: MIB, saved: saved_a_mib, is_held: false }).collect()
}

/// MiB that are lent period after period of at most 16, with 2 MiB of shards' own, for shards whose layers save so much.
fn lent(cache_saves_a_mib: f64, ladder: &[Step], from_mib: u64) -> Vec<u64> {
    let mut lent_bytes = from_mib * MIB;
    let next = |_| {
        let cache_saves = cache_saves_a_mib / MIB as f64;
        let mut ladder = ladder.to_vec();
        ladder.iter_mut().take((2 + lent_bytes / MIB) as usize).for_each(|step| step.is_held = true);
        let lending = Lending { own_bytes: 2 * MIB, most_bytes: 16 * MIB, lent_bytes, cache_saves };
        lent_bytes = lend(&lending, vec![ladder]).expect("it can be lent");
        lent_bytes / MIB
    };
    (0..20).map(next).collect()
}

#[test]
fn room_goes_to_whom_it_saves_more_part_by_part_and_comes_back() {
    let grown = lent(1.0, &busy(2.0, 64), 0);
    assert_eq!((&grown[..3], grown[19]), (&[1, 2, 3][..], 16));
    assert_eq!(lent(1.0, &busy(1.1, 64), 0), [0; 20], "hardly better takes nothing");
    let back = lent(3.0, &busy(2.0, 64), 16);
    assert_eq!((&back[..3], back[19]), (&[15, 14, 13][..], 0));
    assert_eq!(lent(1.1, &busy(1.0, 64), 5), [5; 20], "nor does it the other way");
    assert_eq!(lent(0.0, &busy(0.0, 64), 0), [0; 20], "nobody asks");
}

#[test]
fn no_more_is_lent_than_helps_or_may_be() {
    assert_eq!(lent(0.5, &busy(2.0, 4), 0)[19], 2, "the other two have room of their own");
    let none = Lending { own_bytes: 9, most_bytes: 0, lent_bytes: 0, cache_saves: 0.0 };
    assert_eq!(lend(&none, vec![busy(1.0, 1)]).unwrap(), 0);
    for cache_saves in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(lend(&Lending { cache_saves, ..none }, vec![]).is_err());
    }
}

#[test]
fn a_layer_saves_what_requests_take_less_with_it() {
    let levels = [(10, 400.0), (14, 200.0), (20, 150.0)].map(|(bytes, service_us)| Level { bytes, service_us });
    let curve = Curve::new(levels.to_vec()).unwrap();
    let (shard, queue, arrived) = (ShardId(1), 0, 0);
    let replica =
        Replica { shard, curve: &curve, lowest: 0, start: 0, highest: 2, level: 1, ordered: 1, queue, arrived, frozen: false };
    let memory = Memory { arrivals: 50_000.0, ..Memory::default() };
    let decision = Decision { shard, from: 1, to: 1, reason: Reason::Steady, wait_us: 0.0, memory };
    let before = Plan { decisions: vec![decision], bytes: 14 };
    let of = |before: &Plan| layers(&replica, before, 10.0);
    let [first, second] = of(&before)[..] else { panic!("two layers") };
    assert_eq!((first.bytes, first.is_held, second.bytes, second.is_held), (4, true, 6, false));
    assert!((first.saved - 1.0).abs() < 1e-9 && (second.saved - 0.25).abs() < 1e-9, "5,000 a second: {first:?} {second:?}");
    assert!(of(&Plan::default()).iter().all(|step| step.saved == 0.0), "nothing is known of what comes");
}

#[test]
fn the_margin_of_a_cache_is_what_its_misses_cost() {
    assert!((margin(2.0, 0.05, 100) - 0.001).abs() < 1e-12);
    assert_eq!((margin(0.0, 0.05, 100), margin(2.0, -0.1, 100), margin(2.0, 0.05, 0)), (0.0, 0.0, 0.0));
}

proptest! {
    /// What is lent comes to rest, whatever each side saves, and where nothing moves any more neither side would save a quarter more.
    #[test]
    fn it_comes_to_rest(cache in 0.0f64..3.0, shards in 0.0f64..3.0, from in 0u64..17) {
        let lent = lent(cache, &busy(shards, 64), from);
        let rest = lent[19];
        prop_assert!(lent[17..].iter().all(|mib| *mib == rest), "{lent:?}");
        if rest < 16 {
            prop_assert!(shards <= cache * 1.25 + 1e-9, "{rest}");
        }
        if rest > 0 {
            prop_assert!(cache <= shards * 1.25 + 1e-9, "{rest}");
        }
    }
}
