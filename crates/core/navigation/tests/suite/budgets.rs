//! Room divided by the time that a byte of it saves.

use forebay_navigation::{Division, Ladder, Step, divide};
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
