//! Violations of what holds for objects are found, and what only looks like one is not.

use forebay_oracle::contents::Seen;
use forebay_oracle::history::Door;
use forebay_oracle::{Promise, Rule};

use crate::written::{absent, broken, broken_by, by, delete, read, read_as, uncertain, write};

#[test]
fn a_history_in_order_breaks_nothing() {
    let calls = [write(0, 10, 1), read(20, 30, 1), write(25, 50, 2), read(28, 60, 1), read(61, 70, 2)];
    assert_eq!(broken(&calls, 0), []);
}

#[test]
fn a_stale_read_is_found() {
    let calls = [write(0, 10, 1), write(20, 30, 2), read(40, 50, 1)];
    assert_eq!(broken(&calls, 0), [Rule::NotStale, Rule::Linearizable]);
}

#[test]
fn a_stale_read_within_the_mounts_rule_is_none() {
    let calls = [write(0, 10, 1), write(20, 30, 2), read(40, 50, 1)];
    assert_eq!(broken(&calls, 11), []);
    assert_eq!(broken(&calls, 10), [Rule::NotStale]);
}

#[test]
fn the_mounts_rule_is_none_of_the_stores() {
    let calls = [write(0, 10, 1), write(20, 30, 2), by(Door::Store, read(40, 50, 1))];
    assert_eq!(broken(&calls, 1_000_000), [Rule::NotLost]);
}

#[test]
fn an_answer_of_two_versions_is_found() {
    let mixed = Seen::Mixed { first: 1, at: 4096 };
    let calls = [write(0, 10, 1), write(20, 60, 2), read_as(30, 50, mixed, 1)];
    assert_eq!(broken(&calls, 0), [Rule::OneVersion]);
}

#[test]
fn an_answer_that_ends_early_is_found() {
    let short = Seen::Length { version: 1, expected: 100, came: 99 };
    assert_eq!(broken(&[write(0, 10, 1), read_as(30, 50, short, 1)], 0), [Rule::OneVersion]);
}

#[test]
fn bytes_with_the_etag_of_another_version_are_found() {
    let calls = [write(0, 10, 1), write(20, 60, 2), read_as(30, 50, Seen::Version(1), 2)];
    assert_eq!(broken(&calls, 0), [Rule::OneVersion]);
}

#[test]
fn an_acknowledged_write_that_is_gone_is_found() {
    let calls = [write(0, 10, 1), write(20, 30, 2), by(Door::Store, read(100, 110, 1))];
    assert_eq!(broken(&calls, 0), [Rule::NotLost, Rule::Linearizable]);
    assert_eq!(broken(&[write(0, 10, 1), absent(100, 110)], 0), [Rule::NotLost, Rule::Linearizable]);
}

#[test]
fn an_object_that_was_deleted_is_not_there_until_it_is_written_again() {
    let deleted = [write(0, 10, 1), delete(20, 30, 2)];
    let then = |more: &[forebay_oracle::history::Call]| broken(&[&deleted[..], more].concat(), 0);
    assert_eq!(then(&[absent(25, 40), absent(50, 60), write(70, 80, 3), read(90, 95, 3)]), []);
    assert_eq!(then(&[read(50, 60, 1)]), [Rule::NotStale, Rule::Linearizable]);
    assert_eq!(then(&[write(70, 80, 3), absent(90, 95)]), [Rule::NotLost, Rule::Linearizable]);
    // While it is written again, or deleted, it is there or not.
    assert_eq!(then(&[write(70, 80, 3), absent(75, 78), read(79, 85, 3)]), []);
    assert_eq!(then(&[write(70, 80, 3), read(75, 78, 3), absent(79, 85)]), [Rule::Linearizable]);
    // A second delete: what the store has in its place is not the first one.
    let again = [write(70, 80, 3), delete(90, 95, 4), by(Door::Store, absent(100, 110)), absent(120, 130)];
    assert_eq!(then(&again), []);
    // Nobody has begun to delete it.
    assert_eq!(broken(&[write(0, 10, 1), absent(12, 15), delete(20, 30, 2)], 0), [Rule::NotLost, Rule::Linearizable]);
}

#[test]
fn a_delete_that_nobody_answered_may_be_done_or_not_or_come_late() {
    let uncertain = || uncertain(delete(20, 30, 2));
    assert_eq!(broken(&[write(0, 10, 1), uncertain(), read(40, 50, 1)], 0), []);
    assert_eq!(broken(&[write(0, 10, 1), uncertain(), absent(40, 50)], 0), []);
    assert_eq!(broken(&[write(0, 10, 1), uncertain(), write(40, 50, 3), read(60, 70, 3), absent(80, 90)], 0), []);
    assert_eq!(broken(&[write(0, 10, 1), uncertain(), absent(40, 50), read(60, 70, 1)], 0), [Rule::Linearizable]);
}

#[test]
fn a_version_that_nobody_wrote_is_found() {
    assert_eq!(broken(&[write(0, 10, 1), read(30, 40, 7)], 5), [Rule::Written]);
    // Nor one that is written later.
    assert_eq!(broken(&[write(0, 10, 1), read(30, 40, 2), write(50, 60, 2)], 5), [Rule::Written]);
}

#[test]
fn an_uncertain_write_may_be_there_or_not_or_come_late() {
    let lost = || uncertain(write(20, 30, 2));
    assert_eq!(broken(&[write(0, 10, 1), lost(), read(40, 50, 1)], 0), []);
    assert_eq!(broken(&[write(0, 10, 1), lost(), read(40, 50, 2)], 0), []);
    // Its request was on its way all the time, and it comes over the next one.
    let late = [write(0, 10, 1), lost(), write(40, 50, 3), read(60, 70, 3), read(80, 90, 2)];
    assert_eq!(broken(&late, 0), []);
}

#[test]
fn an_uncertain_write_that_comes_and_goes_is_found() {
    let calls =
        [write(0, 10, 1), uncertain(write(20, 30, 2)), read(40, 50, 1), read(60, 70, 2), read(80, 90, 1), read(91, 95, 2)];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
}

#[test]
fn two_readers_that_see_a_write_come_and_go_are_found() {
    // While version 2 is being written, both answers alone are right.
    let calls = [write(0, 10, 1), write(20, 100, 2), read(30, 40, 2), read(50, 60, 1)];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
    // A mount that does not ask the store at each open promises no more than what was acknowledged.
    assert_eq!(broken_by(&calls, Promise::SinceAcknowledged, &[]), []);
    let calls = [write(0, 10, 1), write(20, 30, 2), read(40, 50, 1)];
    assert_eq!(broken_by(&calls, Promise::SinceAcknowledged, &[]), [Rule::NotStale]);
}

#[test]
fn two_writers_at_a_time_may_come_in_either_order() {
    let both = [write(0, 10, 1), write(20, 40, 3), write(25, 35, 2)];
    for last in [2, 3] {
        let calls = [&both[..], &[read(50, 60, last), read(70, 80, last)]].concat();
        assert_eq!(broken(&calls, 0), []);
    }
}

#[test]
fn the_first_of_two_writes_at_a_time_is_not_read_once_the_store_has_the_other() {
    let both = [write(0, 10, 1), write(20, 40, 3), write(25, 35, 2)];
    let read_after = |last| [&both[..], &[by(Door::Store, read(50, 55, 2)), read(60, 70, last)]].concat();
    assert_eq!(broken_by(&read_after(2), Promise::SinceAcknowledged, &[]), []);
    assert_eq!(broken_by(&read_after(3), Promise::SinceAcknowledged, &[]), [Rule::NotStale]);
    // While the store was looked at, the other one may still have come over it.
    let calls = [&both[..], &[by(Door::Store, read(30, 55, 2)), read(60, 70, 3)]].concat();
    assert_eq!(broken_by(&calls, Promise::SinceAcknowledged, &[]), []);
}

#[test]
fn many_uncertain_writes_are_no_long_search() {
    let mut calls = vec![write(0, 10, 1)];
    for version in 2..200 {
        let at = u64::from(version) * 100;
        calls.extend([uncertain(write(at, at + 10, version)), read(at + 20, at + 30, 1)]);
    }
    assert_eq!(broken(&calls, 0), []);
}
