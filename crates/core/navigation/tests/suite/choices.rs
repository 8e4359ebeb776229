//! Which replica a request goes to.

use forebay_navigation::{Candidate, choose, join_shortest};

fn queue(told: u32, service_us: f64) -> Candidate {
    Candidate { own: 0, told, service_us }
}

/// Random numbers that reach all pairs.
fn chances() -> impl Iterator<Item = u64> {
    (0..1000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
fn of_two_the_one_that_answers_sooner_is_asked() {
    let candidates = [queue(2, 900.0), queue(9, 100.0)];
    assert!(chances().all(|chance| choose(&candidates, chance) == Some(1)));
    assert!(chances().all(|chance| join_shortest(&candidates, chance) == Some(0)), "by length alone the slow one is");
}

#[test]
fn own_requests_in_flight_count_though_no_answer_told_of_them() {
    let candidates = [Candidate { own: 5, told: 0, service_us: 100.0 }, Candidate { own: 0, told: 4, service_us: 100.0 }];
    assert!(chances().all(|chance| choose(&candidates, chance) == Some(1)));
    assert!(chances().all(|chance| join_shortest(&candidates, chance) == Some(1)));
}

#[test]
fn equal_ones_are_asked_alike() {
    for way in [choose, join_shortest] {
        let mut asked = [0; 4];
        chances().for_each(|chance| asked[way(&[queue(3, 10.0); 4], chance).unwrap()] += 1);
        assert!(asked.iter().all(|count| (200..300).contains(count)), "{asked:?}");
    }
}

#[test]
fn the_best_of_all_is_asked_in_about_two_of_its_share() {
    let candidates = [queue(0, 10.0), queue(9, 10.0), queue(9, 10.0), queue(9, 10.0)];
    let best = chances().filter(|chance| choose(&candidates, *chance) == Some(0)).count();
    assert!((450..550).contains(&best), "{best} of 1000: whoever draws it takes it, and half of all draw it");
    assert!(chances().all(|chance| join_shortest(&candidates, chance) == Some(0)));
}

#[test]
fn a_replica_of_which_nothing_is_known_is_asked_as_if_it_were_the_quickest() {
    for unknown in [0.0, f64::NAN, -1.0, f64::INFINITY] {
        let asked = chances().filter(|chance| choose(&[queue(0, 10.0), queue(0, unknown)], *chance) == Some(1)).count();
        assert!((400..600).contains(&asked), "{asked} of 1000");
        assert!(chances().all(|chance| choose(&[queue(1, 10.0), queue(0, unknown)], chance) == Some(1)));
    }
}

/// Of 0.9x, 0.5x and 0.5x one answers twenty times as fast: two that are drawn evenly are both slow a third of the time, which is
/// more than the slow ones can answer when the quick one is a third busy.
#[test]
fn slow_replicas_are_not_asked_because_two_of_them_were_drawn() {
    let candidates = [queue(0, 11_000.0), queue(0, 250_000.0), queue(0, 250_000.0)];
    let slow = chances().filter(|chance| choose(&candidates, *chance) != Some(0)).count();
    assert!(slow < 20, "{slow} of 1000 go to a slow one though the quick one is idle");
}

#[test]
fn a_replica_of_which_nothing_is_known_is_not_flooded() {
    let unknown = Candidate { own: 3, told: 0, service_us: 0.0 };
    assert!(chances().all(|chance| choose(&[queue(2, 10.0), unknown], chance) == Some(0)));
}

#[test]
fn none_and_one_are_no_choice() {
    assert_eq!((choose(&[], 7), join_shortest(&[], 7)), (None, None));
    assert_eq!((choose(&[queue(1, 1.0)], 7), join_shortest(&[queue(1, 1.0)], 7)), (Some(0), Some(0)));
}
