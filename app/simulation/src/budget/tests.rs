//! The model of one memory against what must hold of it, and weighed rooms against fixed ones.

use super::cache::Cache;
use super::figures::{budget, splits};
use super::layers::Layers;
use super::mix::{BLOCKS, LAYER_BYTES, MEMORY_BYTES, OWNERS, PHASE_WINDOWS, THETA, WINDOW_SECS, service_secs};
use super::run::run;
use crate::random::Random;
use crate::workload::Zipf;

#[test]
fn twenty_splits_give_each_owner_a_part() {
    let splits = splits();
    assert_eq!(splits.len(), 20);
    assert!(splits.iter().all(|split| split.iter().all(|bytes| *bytes >= MEMORY_BYTES / 7)));
    assert!(splits.iter().all(|split| (MEMORY_BYTES - 7..=MEMORY_BYTES).contains(&split.iter().sum::<u64>())));
}

#[test]
fn a_cache_misses_no_more_than_one_that_knows_what_is_popular_misses_nearly() {
    let (room, mut random) = (1_000u64, Random::new(1, 0));
    let mut cache = Cache::new(BLOCKS);
    for _ in 0..20 {
        cache.window(100.0, room << 20, &mut random);
    }
    let asked = 100.0 * WINDOW_SECS;
    let took = cache.window(100.0, room << 20, &mut random);
    let ranks = Zipf::new(BLOCKS.count, THETA);
    let hits: f64 = (0..room as usize).map(|rank| ranks.probability(rank)).sum();
    let ideal = asked * (hits * BLOCKS.hit_secs + (1.0 - hits) * BLOCKS.miss_secs);
    assert!(took >= ideal * 0.85 && took <= ideal * 2.0, "{took} s, and {ideal} s by theory");
    let owned = cache.owned(room << 20);
    assert!(owned.next_saves > 0.0 && owned.last_saves >= owned.next_saves, "{owned:?}");
    assert!(cache.window(100.0, 10 << 20, &mut random) > took, "with less room more is missed");
}

#[test]
fn layers_are_made_for_the_shards_that_are_called_and_shorten_calls() {
    let mut layers = Layers::new();
    let bare = layers.window(100.0, 64 * LAYER_BYTES).expect("a window");
    assert!((bare - 100.0 * WINDOW_SECS * service_secs(0)).abs() < 1e-6, "nothing was known of what comes: {bare}");
    for _ in 0..10 {
        layers.window(100.0, 64 * LAYER_BYTES).expect("a window");
    }
    let made = layers.window(100.0, 64 * LAYER_BYTES).expect("a window");
    assert!(made < bare / 2.0, "{made} s instead of {bare}");
    let owned = layers.owned(64 * LAYER_BYTES);
    assert!(owned.next_saves > 0.0 && owned.last_saves > 0.0, "{owned:?}");
    let gone = layers.window(100.0, 0).expect("a window");
    assert!((gone - bare).abs() < 1e-6, "without room no layer is left");
}

#[test]
fn fixed_rooms_stay_and_weighed_ones_follow_the_mix() {
    let equal = [MEMORY_BYTES / OWNERS as u64; OWNERS];
    let fixed = run(equal, false, 1).expect("a run");
    assert!(fixed.iter().all(|window| window.rooms == equal));
    let weighed = run(equal, true, 1).expect("a run");
    let (by_day, by_night) = (weighed[PHASE_WINDOWS - 1].rooms, weighed[2 * PHASE_WINDOWS - 1].rooms);
    assert!(by_day[0] > by_day[2] && by_night[2] > by_night[0], "{by_day:?} {by_night:?}");
    let again = run(equal, true, 1).expect("a run");
    assert!(weighed.iter().zip(&again).all(|(one, other)| one.rooms == other.rooms), "a run is a function of its seed");
}

#[test]
fn weighed_rooms_do_as_well_as_the_best_split_and_better_than_the_equal_one() {
    let figures = budget(1).expect("it is run");
    assert!(figures.of_best >= 0.9 && figures.of_equal >= 1.2, "{figures:?}");
    assert!(figures.again_windows <= 5 && figures.swing < 0.05, "{figures:?}");
}
