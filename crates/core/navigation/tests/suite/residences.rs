//! Whether a shard is brought, or answered from afar.

use forebay_navigation::{FarCost, Residence, residence};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn who_asks_once_a_minute_is_answered_from_afar_for_ever() {
    let mut cost = FarCost::default();
    for minute in 0..10_000 {
        let now = f64::from(minute) * 60.0;
        assert_eq!(residence(cost.at(now), 1, 0, 40 * MIB, GIB), Residence::Far, "minute {minute}");
        cost = cost.with(now, 1, 2, 40_000);
    }
}

#[test]
fn a_shard_is_brought_when_answers_from_afar_have_cost_as_much() {
    let mut cost = FarCost::default();
    let brought = (0u32..).find(|asked| {
        let now = f64::from(*asked) * 0.1;
        let place = residence(cost.at(now), 1, 0, 40 * MIB, GIB);
        cost = cost.with(now, 1, 1, 32_768);
        place == Residence::FarUntilBrought
    });
    assert!((120..180).contains(&brought.unwrap()), "{brought:?}");
}

#[test]
fn answers_that_are_in_the_tiers_bring_it_late() {
    let mut cost = FarCost::default();
    (0..5000).for_each(|asked| cost = cost.with(f64::from(asked) * 0.01, 1, 0, 0));
    assert_eq!(residence(cost.at(50.0), 1, 0, 40 * MIB, GIB), Residence::Far);
    (0..10_000).for_each(|asked| cost = cost.with(50.0 + f64::from(asked) * 0.01, 1, 0, 0));
    assert_eq!(residence(cost.at(150.0), 1, 0, 40 * MIB, GIB), Residence::FarUntilBrought);
}

#[test]
fn what_is_small_or_asked_for_much_at_once_is_brought_first() {
    assert_eq!(residence(0.0, 1, 0, 10_000, GIB), Residence::Brought);
    assert_eq!(residence(0.0, 0, 1, 250_000, GIB), Residence::Brought);
    assert_eq!(residence(0.0, 1000, 0, 40 * MIB, GIB), Residence::Brought);
    assert_eq!(residence(0.0, 16, 0, 40 * MIB, GIB), Residence::Far);
}

#[test]
fn what_no_room_is_large_enough_for_is_never_brought() {
    let cost = FarCost::default().with(0.0, 10_000, 10_000, GIB);
    assert_eq!(residence(cost.at(0.0), 10_000, 10, 40 * MIB, 40 * MIB - 1), Residence::Far);
    assert_eq!(residence(0.0, 1, 0, 10_000, 0), Residence::Far);
    assert_eq!(residence(cost.at(0.0), 1, 0, 40 * MIB, 40 * MIB), Residence::FarUntilBrought, "it has just the room");
}

#[test]
fn a_clock_that_stands_still_or_goes_back_forgets_nothing() {
    let cost = FarCost::default().with(100.0, 0, 0, 1000);
    assert_eq!((cost.at(100.0), cost.at(0.0)), (1000.0, 1000.0));
    assert!((cost.at(700.0) - 500.0).abs() < 1e-9);
}
