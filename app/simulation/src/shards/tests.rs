//! The model's queues against theory, and the divisions against hand-made ones.

use super::arrivals::Load;
use super::curves::ShardCurve;
use super::engine::Engine;
use super::setup::Setup;
use super::skew::divide::{evenly, ideally, selectively};

/// Mean requests in a queue that is left at its level.
fn mean_queue(load: f64) -> f64 {
    let curve = ShardCurve::Paper.curve(4.0);
    let per_sec = load * 1e6 / curve.service_us(5);
    let setup = Setup::one_worker(curve, 1, 5, Load::steady(vec![per_sec]), 1);
    let setup = Setup { navigates: false, end_secs: 40_000.0, ..setup };
    let (queues, record) = Engine::new(&setup).run();
    let run = record.outcome("theory", &setup, 0.0, &queues);
    run.samples.iter().map(|sample| sample.waiting as f64).sum::<f64>() / run.samples.len() as f64
}

#[test]
fn a_queue_is_as_long_as_theory_says() {
    for load in [0.3, 0.5, 0.7] {
        let (found, theory) = (mean_queue(load), load / (1.0 - load));
        assert!((found / theory - 1.0).abs() < 0.1, "{found} at load {load}, and {theory} by M/M/1");
    }
}

#[test]
fn the_papers_curve_rises_twentyfold_from_half_to_three_quarters() {
    let curve = ShardCurve::Paper.curve(4.0);
    assert_eq!((curve.bytes(0), curve.bytes(5), curve.bytes(curve.highest())), (500, 750, 1500));
    assert!((curve.service_us(0) / curve.service_us(5) - 20.0).abs() < 1e-9);
    assert!((curve.service_us(0) / curve.service_us(curve.highest()) - 40.0).abs() < 1e-9);
}

#[test]
fn a_mix_takes_as_long_as_its_parts_together_and_what_was_measured_stands() {
    let [gets, half, searches] = [ShardCurve::Gets, ShardCurve::Half, ShardCurve::Searches].map(|curve| curve.curve(4.0));
    let speedup = |curve: &forebay_navigation::Curve, level| curve.service_us(0) / curve.service_us(level);
    let highest = gets.highest();
    assert_eq!((gets.bytes(0), gets.bytes(highest)), (350, 1500));
    assert!((speedup(&gets, highest) / (2_307_030.0 / 42_558.0) - 1.0).abs() < 1e-6);
    assert!((speedup(&searches, highest) / (1_091_560.0 / 29_602.0) - 1.0).abs() < 1e-6);
    // Half of the operations are gets, which take 1 of 42,558 of a second.
    let both = |gets: f64, searches: f64| 0.5 / gets + 0.5 / searches;
    let expected = both(42_558.0, 29_602.0) / both(2_307_030.0, 1_091_560.0);
    assert!((speedup(&half, highest) / expected - 1.0).abs() < 1e-6);
}

#[test]
fn divisions_keep_to_the_room_and_the_ideal_beats_all_others_of_two_shards() {
    let curve = ShardCurve::Paper.curve(4.0);
    let shares = [0.8, 0.2];
    for room in [1000, 1100, 1250, 1700, 2000, 3000] {
        let bytes = |levels: &[u32]| levels.iter().map(|level| curve.bytes(*level)).sum::<u64>();
        let sustained = |levels: &[u32]| {
            let most = levels.iter().zip(shares).map(|(level, share)| 1e6 / curve.service_us(*level) / share);
            most.fold(f64::INFINITY, f64::min)
        };
        let (ideal, load) = ideally(&curve, &shares, room);
        assert!(bytes(&ideal) <= room && bytes(&evenly(&curve, 2, room)) <= room && bytes(&selectively(&curve, 2, room)) <= room);
        let all = (0..=20u32).flat_map(|first| (0..=20u32).map(move |second| [first, second]));
        let best = all.filter(|levels| bytes(levels) <= room).map(|levels| sustained(&levels)).fold(0.0, f64::max);
        assert!((load / best - 1.0).abs() < 1e-6, "room {room}: {load}, and {best} by trying all");
    }
}
