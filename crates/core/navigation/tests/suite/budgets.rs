//! Room divided by the time that a byte of it saves.

use forebay_navigation::{Cause, Division, Ladder, Owned, Step, Weighing, aged, divide, last_bytes, weigh};
use proptest::prelude::*;

fn step(bytes: u64, saved: f64) -> Step {
    Step { bytes, saved, is_held: false }
}

fn steps(room: u64, ladders: &[Ladder]) -> Vec<usize> {
    divide(room, ladders, 0.0).expect("it can be divided").steps
}

/// Seconds that a division saves in each second.
fn saved(ladders: &[Ladder], steps: &[usize]) -> f64 {
    ladders.iter().zip(steps).flat_map(|(ladder, steps)| &ladder[..*steps]).map(|step| step.saved).sum()
}

/// The most that any division saves, by trying all of them.
fn best(room: u64, ladders: &[Ladder]) -> f64 {
    let Some((first, others)) = ladders.split_first() else { return 0.0 };
    let (mut bytes, mut own, mut most) = (0, 0.0, best(room, others));
    for step in first {
        (bytes, own) = (bytes + step.bytes, own + step.saved);
        if bytes <= room {
            most = f64::max(most, own + best(room - bytes, others));
        }
    }
    most
}

/// What is held once a division is followed.
fn followed(ladders: &[Ladder], division: &Division) -> Vec<Ladder> {
    let held = |(ladder, steps): (&Ladder, &usize)| {
        let mark = |(place, step): (usize, &Step)| Step { is_held: place < *steps, ..*step };
        ladder.iter().enumerate().map(mark).collect()
    };
    ladders.iter().zip(&division.steps).map(held).collect()
}

#[test]
fn a_layer_a_replica_and_a_column_are_weighed_by_what_a_byte_saves() {
    let layers = vec![step(100, 5.0), step(100, 2.0), step(100, 0.5)];
    let (replica, column) = (vec![step(64, 0.64)], vec![step(200, 4.2)]);
    let all = [layers, replica, column];
    assert_eq!(steps(100, &all), [1, 0, 0]);
    assert_eq!(steps(300, &all), [1, 0, 1], "a column saves a little more a byte than the second layer");
    assert_eq!(steps(464, &all), [2, 1, 1]);
    assert_eq!(steps(463, &all), [2, 0, 1], "the third layer does not fit either");
    let whole = divide(1000, &all, 0.0).unwrap();
    assert_eq!((whole.steps, whole.bytes, whole.missed), (vec![3, 1, 1], 564, 0.0));
    assert_eq!(steps(0, &all), [0, 0, 0]);
    assert_eq!(divide(100, &[], 0.0).unwrap(), Division::default());
}

#[test]
fn a_step_that_saves_little_before_one_that_saves_much_is_no_obstacle() {
    let slow_start = vec![step(10, 0.1), step(10, 5.0)];
    let even = vec![step(10, 1.0), step(10, 1.0)];
    assert_eq!(steps(20, &[slow_start.clone(), even.clone()]), [2, 0]);
    assert_eq!(steps(10, &[slow_start, even]), [0, 1], "and not where both have no room");
}

#[test]
fn what_was_left_out_is_told() {
    let missed = |room| divide(room, &[vec![step(10, 5.0)], vec![step(10, 2.0)]], 0.0).unwrap().missed;
    assert_eq!((missed(20), missed(10), missed(9)), (0.0, 0.2, 0.5));
}

#[test]
fn what_is_hardly_better_takes_nothing_from_what_is_there() {
    let held = |saved| vec![Step { is_held: true, ..step(10, saved) }];
    let other = |saved| vec![step(10, saved)];
    let taken = |of_held, of_other| divide(10, &[held(of_held), other(of_other)], 0.25).unwrap().steps;
    assert_eq!(taken(1.0, 1.2), [1, 0]);
    assert_eq!(taken(1.0, 1.3), [0, 1]);
}

#[test]
fn what_can_not_be_is_refused() {
    for wrong in [step(0, 1.0), step(1, -1.0), step(1, f64::NAN), step(1, f64::INFINITY), step(u64::MAX, 1.0)] {
        assert!(divide(10, &[vec![wrong]], 0.0).is_err(), "{wrong:?}");
    }
    assert!(divide(10, &[vec![step(1, 1.0); 1025]], 0.0).is_err());
    assert!(divide(10, &[], -0.1).is_err() && divide(10, &[], f64::NAN).is_err());
}

fn ladders(bytes: std::ops::Range<u64>) -> impl Strategy<Value = Vec<Ladder>> {
    let step = (bytes, 0u32..100).prop_map(|(bytes, saved)| step(bytes, f64::from(saved)));
    prop::collection::vec(prop::collection::vec(step, 0..4), 0..5)
}

proptest! {
    #[test]
    fn it_is_within_one_ladder_of_the_best_that_trying_all_finds(ladders in ladders(1..30), room in 0u64..150) {
        let division = divide(room, &ladders, 0.0).unwrap();
        let largest = ladders.iter().map(|ladder| ladder.iter().map(|step| step.saved).sum::<f64>()).fold(0.0, f64::max);
        let (found, most) = (saved(&ladders, &division.steps), best(room, &ladders));
        prop_assert!(found <= most + 1e-6 && found + largest + 1e-6 >= most, "{found} of {most}, largest {largest}");
        // With what misses nothing there is no better one.
        if division.missed == 0.0 {
            prop_assert!((found - most).abs() < 1e-6);
        }
    }

    #[test]
    fn with_steps_of_one_size_that_save_less_and_less_it_is_the_best(ladders in ladders(7..8), room in 0u64..150) {
        let sorted = |mut ladder: Ladder| {
            ladder.sort_by(|a, b| b.saved.total_cmp(&a.saved));
            ladder
        };
        let ladders: Vec<Ladder> = ladders.into_iter().map(sorted).collect();
        let division = divide(room, &ladders, 0.0).unwrap();
        prop_assert!((saved(&ladders, &division.steps) - best(room, &ladders)).abs() < 1e-6);
    }

    #[test]
    fn what_was_decided_is_decided_again(ladders in ladders(1..30), room in 0u64..150) {
        let first = divide(room, &ladders, 0.25).unwrap();
        let again = divide(room, &followed(&ladders, &first), 0.25).unwrap();
        prop_assert_eq!(saved(&ladders, &again.steps), saved(&ladders, &first.steps));
    }

    /// Measurements that swing by a tenth move nothing.
    #[test]
    fn noise_moves_nothing(
        saved_by in prop::collection::vec(1u32..100, 1..8),
        noise in prop::collection::vec(0.95f64..1.05, 8),
        room in 0u64..8,
    ) {
        let of = |noise: &[f64]| -> Vec<Ladder> {
            saved_by.iter().zip(noise).map(|(saved, noise)| vec![step(1, f64::from(*saved) * noise)]).collect()
        };
        let quiet = of(&[1.0; 8]);
        let first = divide(room, &quiet, 0.25).unwrap();
        let again = divide(room, &followed(&of(&noise), &first), 0.25).unwrap();
        prop_assert_eq!(again.steps, first.steps);
    }
}

/// The rooms of owners of which each byte saves its weight over the bytes that it has: less, the more it has.
fn weighed(mut rooms: Vec<u64>, weights: &[f64], windows: usize) -> Vec<Vec<u64>> {
    let mut before = Weighing::default();
    let window = |_| {
        let owned = |(bytes, weight): (&u64, &f64)| {
            let saves = weight / (*bytes).max(1) as f64;
            Owned { room_bytes: *bytes, floor_bytes: 0, most_bytes: u64::MAX, last_saves: saves, next_saves: saves }
        };
        let owners: Vec<Owned> = rooms.iter().zip(weights).map(owned).collect();
        before = weigh(&owners, &before).expect("they can be weighed");
        rooms = before.rooms.iter().map(|room| room.bytes).collect();
        rooms.clone()
    };
    (0..windows).map(window).collect()
}

fn owned(room_bytes: u64, saves: f64) -> Owned {
    Owned { room_bytes, floor_bytes: 0, most_bytes: u64::MAX, last_saves: saves, next_saves: saves }
}

fn bytes(weighing: &Weighing) -> Vec<u64> {
    weighing.rooms.iter().map(|room| room.bytes).collect()
}

#[test]
fn bytes_go_where_they_save_more_and_stay_where_it_is_hardly_more() {
    let none = Weighing::default();
    assert_eq!(bytes(&weigh(&[owned(600, 1.2), owned(600, 1.0)], &none).unwrap()), [600, 600], "hardly better takes nothing");
    assert_eq!(bytes(&weigh(&[owned(600, 0.0), owned(600, 0.0)], &none).unwrap()), [600, 600], "nobody asks");
    let moved = weigh(&[owned(600, 1.0), owned(600, 6.0), owned(600, 1.1)], &none).unwrap();
    assert_eq!(bytes(&moved), [375, 825, 600], "three quarters of a sixth, from who saves least");
    let causes: Vec<Cause> = moved.rooms.iter().map(|room| room.cause).collect();
    assert_eq!(causes, [Cause::Gave { to: 1, bytes: 225 }, Cause::Took { from: 0, bytes: 225 }, Cause::Even]);
    let few = [owned(1_600_000, 1.0), owned(0, 1e9)];
    assert_eq!(bytes(&weigh(&few, &none).unwrap()), [1_400_000, 200_000], "what has nothing begins with an eighth");
    let hungry = Owned { last_saves: 0.1, ..owned(600, 5.0) };
    assert_eq!(bytes(&weigh(&[hungry, owned(600, 6.0)], &none).unwrap()), [600, 600], "it would come to ask for them again");
    let free = Owned { floor_bytes: 500, ..owned(600, 0.0) };
    let moved = weigh(&[owned(600, 1.0), owned(600, 6.0), free], &none).unwrap();
    assert_eq!(bytes(&moved), [375, 825, 600], "much that saves little before a little that saves nothing");
    let enough = Owned { most_bytes: 640, ..owned(600, 5.0) };
    assert_eq!(bytes(&weigh(&[enough, owned(600, 1.0)], &none).unwrap()), [640, 560], "no more than is of use");
}

#[test]
fn what_was_just_moved_takes_more_to_be_turned_around() {
    let none = Weighing::default();
    let moved = weigh(&[owned(600, 6.0), owned(600, 1.0)], &none).unwrap();
    assert_eq!(bytes(&moved), [750, 450]);
    let back = [owned(750, 1.0), owned(450, 1.8)];
    assert_eq!(bytes(&weigh(&back, &moved).unwrap()), [750, 450], "not by so little");
    assert_ne!(bytes(&weigh(&back, &none).unwrap()), [750, 450], "as it would be else");
    let much = [owned(750, 1.0), owned(450, 6.0)];
    assert_ne!(bytes(&weigh(&much, &moved).unwrap()), [750, 450]);
    let mut calm = moved;
    for _ in 0..4 {
        calm = weigh(&[owned(750, 1.0), owned(450, 1.0)], &calm).unwrap();
    }
    assert_ne!(bytes(&weigh(&back, &calm).unwrap()), [750, 450], "after a while it counts as before");
}

#[test]
fn nobody_falls_below_its_floor_and_who_needs_more_gets_it_at_once() {
    let pinned = Owned { floor_bytes: 540, ..owned(600, 0.0) };
    let moved = weigh(&[owned(600, 5.0), pinned], &Weighing::default()).unwrap();
    assert_eq!(bytes(&moved), [630, 570], "half of what it can spare");
    let grown = Owned { floor_bytes: 900, ..owned(600, 0.0) };
    let moved = weigh(&[owned(600, 5.0), grown, owned(200, 1.0)], &Weighing::default()).unwrap();
    assert_eq!(bytes(&moved), [500, 900, 0], "first from who saves less, then from the other one");
    assert_eq!(moved.rooms[1].cause, Cause::Raised);
    let all = Owned { floor_bytes: 9_000, ..owned(600, 0.0) };
    assert_eq!(bytes(&weigh(&[owned(600, 5.0), all], &Weighing::default()).unwrap()), [0, 1_200], "more than there is");
}

#[test]
fn what_fits_is_worth_a_part_of_its_mean_though_nothing_of_it_comes_back() {
    assert_eq!((last_bytes(0.0, 8.0), last_bytes(2.0, 8.0)), (1.0, 2.0));
    assert!((aged(1.0, 0.0) - 0.6).abs() < 1e-12 && (aged(0.0, 1.0) - 0.4).abs() < 1e-12);
}

#[test]
fn what_is_no_measurement_is_refused() {
    for saves in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(weigh(&[owned(1, saves)], &Weighing::default()).is_err());
    }
    assert!(weigh(&[owned(u64::MAX, 1.0)], &Weighing::default()).is_err());
    assert!(weigh(&[owned(1, 1.0); 17], &Weighing::default()).is_err());
}

#[test]
fn a_load_that_is_swapped_moves_most_of_the_way_in_five_windows() {
    let rest = weighed(vec![300_000; 4], &[8.0, 1.0, 2.0, 1.0], 40);
    let swapped = weighed(rest[39].clone(), &[1.0, 1.0, 2.0, 8.0], 5);
    // Ideally two thirds of it.
    assert!(rest[39][0] > 600_000, "{rest:?}");
    assert!(swapped[4][3] > 540_000, "{swapped:?}");
}

proptest! {
    /// Whatever each owner saves, rooms come to rest: they swing by less than a twentieth of all.
    #[test]
    fn rooms_come_to_rest(weights in proptest::collection::vec(0.1f64..10.0, 2..6), first in 10_000u64..1_000_000) {
        let mut rooms = vec![first; weights.len()];
        rooms[0] *= 3;
        let whole: u64 = rooms.iter().sum();
        let windows = weighed(rooms, &weights, 120);
        for owner in 0..weights.len() {
            let of = || windows[60..].iter().map(|window| window[owner]);
            let (most, least) = (of().max().unwrap_or(0), of().min().unwrap_or(0));
            prop_assert!((most - least) * 20 < whole, "{owner} swings from {least} to {most} of {whole}");
        }
        prop_assert!(windows.iter().all(|window| window.iter().sum::<u64>() == whole));
    }
}
