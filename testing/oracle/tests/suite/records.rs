//! Calls about records in orders that explain them, and in none.

use std::time::{Duration, Instant};

use forebay_oracle::{RecordCall, RecordOp, Rule, is_certain, records};
use forebay_types::Error;

fn text(text: &str) -> Option<String> {
    Some(text.to_string())
}

/// Calls about record 0, from a second to another one.
fn at(zero: Instant, from: u64, to: u64, op: RecordOp) -> RecordCall {
    RecordCall { key: 0, began: zero + Duration::from_secs(from), ended: Some(zero + Duration::from_secs(to)), op }
}

fn broken(calls: &[&RecordCall]) -> Vec<Rule> {
    records(&calls.iter().map(|call| (*call).clone()).collect::<Vec<_>>()).into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn the_check_finds_what_is_out_of_order() {
    let zero = Instant::now();
    let write = at(zero, 0, 10, RecordOp::Write(text("a")));
    let (seen, gone) = (at(zero, 2, 3, RecordOp::Read(text("a"))), at(zero, 5, 6, RecordOp::Read(None)));
    assert_eq!((broken(&[&write, &seen]), broken(&[&write, &gone])), (vec![], vec![]));
    assert_eq!(broken(&[&write, &seen, &gone]), [Rule::Linearizable], "who has seen it makes it so for all");
    let late = at(zero, 11, 12, RecordOp::Read(None));
    assert_eq!(broken(&[&write, &late]), [Rule::Linearizable], "it was acknowledged");
    let unknown = RecordCall { ended: None, ..at(zero, 0, 0, RecordOp::Write(text("a"))) };
    assert_eq!(broken(&[&unknown, &late]), [], "it may come later");
}

#[test]
fn a_search_sees_what_was_acknowledged_before_it_and_a_condition_what_was_there() {
    let zero = Instant::now();
    let write = at(zero, 0, 1, RecordOp::Write(text("a")));
    let found = |found| at(zero, 2, 3, RecordOp::Found("a".into(), found));
    assert_eq!(broken(&[&write, &found(true)]), []);
    assert_eq!(broken(&[&write, &found(false)]), [Rule::Linearizable]);
    let swap = |before| at(zero, 4, 5, RecordOp::Swap(before, "b".into()));
    let read = at(zero, 6, 7, RecordOp::Read(text("b")));
    assert_eq!(broken(&[&write, &swap(text("a")), &read]), []);
    assert_eq!(broken(&[&write, &swap(None), &read]), [Rule::Linearizable]);
}

#[test]
fn each_record_has_an_order_of_its_own() {
    let zero = Instant::now();
    let write = at(zero, 0, 1, RecordOp::Write(text("a")));
    let other = RecordCall { key: 1, ..at(zero, 2, 3, RecordOp::Read(None)) };
    assert_eq!(broken(&[&write, &other]), []);
    assert_eq!(broken(&[]), []);
}

#[test]
fn only_a_retry_leaves_open_whether_something_was_changed() {
    assert!(is_certain(Ok(1)).unwrap());
    assert!(!is_certain::<u64>(Err(Error::retry("no answer"))).unwrap());
    is_certain::<u64>(Err(Error::conflict("another version"))).unwrap_err();
}
