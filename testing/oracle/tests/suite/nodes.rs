//! Violations of what holds for temporary nodes are found, and losses with a worker are none.

use forebay_oracle::Rule;
use forebay_oracle::history::{Call, What};

use crate::written::{broken, broken_with, broken_with_cuts, call, failed, uncertain};

const PATH: &str = "/tmp/storm/values/1";

fn put(begin_us: u64, end_us: u64, value: u64) -> Call {
    call(begin_us, end_us, What::Put { path: PATH.to_owned(), value })
}

fn get(begin_us: u64, end_us: u64, value: Option<u64>) -> Call {
    call(begin_us, end_us, What::Get { path: PATH.to_owned(), value })
}

fn swap(begin_us: u64, end_us: u64, (expected, value): (Option<u64>, u64), done: Option<bool>) -> Call {
    call(begin_us, end_us, What::Swap { path: PATH.to_owned(), expected, value, done })
}

fn append(begin_us: u64, end_us: u64, value: u64, count: Option<u64>) -> Call {
    call(begin_us, end_us, What::Append { path: PATH.to_owned(), value, count })
}

fn numbers(begin_us: u64, end_us: u64, numbers: Option<&[u64]>) -> Call {
    call(begin_us, end_us, What::Numbers { path: PATH.to_owned(), numbers: numbers.map(<[u64]>::to_vec) })
}

#[test]
fn values_in_order_break_nothing() {
    let calls = [
        get(0, 5, None),
        put(10, 30, 1),
        put(12, 28, 2),
        get(31, 40, Some(1)),
        swap(41, 50, (Some(1), 3), Some(true)),
        swap(51, 60, (Some(1), 4), Some(false)),
        get(61, 70, Some(3)),
    ];
    assert_eq!(broken(&calls, 0), []);
}

#[test]
fn an_old_value_is_found() {
    assert_eq!(broken(&[put(0, 10, 1), put(20, 30, 2), get(40, 50, Some(1))], 0), [Rule::Linearizable]);
}

#[test]
fn a_lost_value_is_found_where_no_worker_was_lost() {
    let calls = [put(0, 10, 1), get(40, 50, None)];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
    assert_eq!(broken_with(&calls, 0, &[20]), []);
    assert_eq!(broken_with(&calls, 0, &[60]), [Rule::Linearizable]);
}

#[test]
fn a_lost_value_that_comes_back_is_found() {
    let calls = [put(0, 10, 1), get(40, 50, None), get(60, 70, Some(1))];
    assert_eq!(broken_with(&calls, 0, &[20]), [Rule::Linearizable]);
}

#[test]
fn two_swaps_of_one_value_are_found() {
    let calls = [put(0, 10, 1), swap(20, 40, (Some(1), 2), Some(true)), swap(25, 45, (Some(1), 3), Some(true))];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
}

#[test]
fn data_is_said_to_be_lost_only_where_a_worker_was() {
    let calls = [put(0, 10, 1), failed(get(40, 50, None), "data lost")];
    assert_eq!(broken(&calls, 0), [Rule::LostWithWorker]);
    assert_eq!(broken_with(&calls, 0, &[20]), []);
}

#[test]
fn an_uncertain_put_may_be_there_or_not() {
    let lost = || uncertain(put(20, 30, 2));
    assert_eq!(broken(&[put(0, 10, 1), lost(), get(40, 50, Some(1)), get(60, 70, Some(2))], 0), []);
    assert_eq!(broken(&[put(0, 10, 1), lost(), get(40, 50, Some(2)), get(60, 70, Some(1))], 0), [Rule::Linearizable]);
}

#[test]
fn an_uncertain_swap_does_nothing_where_it_finds_another_value() {
    let lost = || uncertain(swap(20, 30, (Some(9), 2), None));
    assert_eq!(broken(&[put(0, 10, 1), lost(), get(40, 50, Some(1))], 0), []);
    assert_eq!(broken(&[put(0, 10, 1), lost(), get(40, 50, Some(2))], 0), [Rule::Linearizable]);
}

#[test]
fn appends_in_order_break_nothing() {
    let calls =
        [append(0, 10, 1, Some(1)), append(11, 30, 2, Some(3)), append(12, 29, 3, Some(2)), numbers(31, 40, Some(&[1, 3, 2]))];
    assert_eq!(broken(&calls, 0), []);
}

#[test]
fn an_append_that_is_there_twice_is_found() {
    let calls = [append(0, 10, 1, Some(1)), uncertain(append(20, 30, 2, None)), numbers(40, 50, Some(&[1, 2, 2]))];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
}

#[test]
fn a_lost_append_is_found() {
    let calls = [append(0, 10, 1, Some(1)), append(20, 30, 2, Some(2)), numbers(40, 50, Some(&[1]))];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
}

#[test]
fn a_file_that_is_lost_with_its_worker_stays_so() {
    let calls = [append(0, 10, 1, Some(1)), numbers(40, 50, None)];
    assert_eq!(broken(&calls, 0), [Rule::Linearizable]);
    assert_eq!(broken_with(&calls, 0, &[30]), []);
    let back = [append(0, 10, 1, Some(1)), numbers(40, 50, None), numbers(60, 70, Some(&[1]))];
    assert_eq!(broken_with(&back, 0, &[30]), [Rule::Linearizable]);
}

/// An append is not asked for again while its worker is there.
#[test]
fn what_can_be_done_once_alone_is_data_lost_when_its_connection_breaks() {
    const CUT: u64 = 5_000_000;
    let lost = |call: Call| failed(call, "data lost");
    let cut = || lost(append(CUT - 10, CUT + 300, 2, None));
    let done = [append(0, 10, 1, Some(1)), cut(), numbers(CUT + 400, CUT + 500, Some(&[1, 2]))];
    let not_done = [append(0, 10, 1, Some(1)), cut(), numbers(CUT + 400, CUT + 500, Some(&[1]))];
    for calls in [&done, &not_done] {
        assert_eq!(broken_with_cuts(calls, &[CUT]), []);
        assert_eq!(broken_with_cuts(calls, &[CUT - 1_000_000, CUT + 1_000_000]), [Rule::LostWithWorker]);
    }
    let swapped = [put(0, 10, 1), lost(swap(CUT - 10, CUT + 300, (Some(1), 2), None)), get(CUT + 400, CUT + 500, Some(2))];
    assert_eq!(broken_with_cuts(&swapped, &[CUT]), []);
    // All else is asked for again, and nothing that was acknowledged goes with a connection.
    for call in [put(CUT - 10, CUT + 300, 2), get(CUT - 10, CUT + 300, None), numbers(CUT - 10, CUT + 300, None)] {
        assert_eq!(broken_with_cuts(&[lost(call)], &[CUT]), [Rule::LostWithWorker]);
    }
    let gone = [append(0, 10, 1, Some(1)), cut(), numbers(CUT + 400, CUT + 500, None)];
    assert_eq!(broken_with_cuts(&gone, &[CUT]), [Rule::Linearizable]);
}

#[test]
fn losses_of_all_of_a_long_history_do_not_make_the_search_long() {
    let losses: Vec<u64> = (0..60).collect();
    let at = |number: u64| 1_000 + number * 10;
    let mut calls: Vec<Call> = (0..40).map(|number| put(at(number), at(number) + 5, number)).collect();
    calls.push(get(at(50), at(50) + 5, Some(38)));
    assert_eq!(broken_with(&calls, 0, &losses), [Rule::Linearizable], "decided, and not given up");
    calls.pop();
    calls.extend([get(at(50), at(50) + 5, None), put(at(51), at(51) + 5, 99), get(at(52), at(52) + 5, None)]);
    assert_eq!(broken_with(&calls, 0, &losses), [], "the value is lost twice");
}

#[test]
fn losses_in_the_midst_of_a_history_do_not_make_the_search_long() {
    let at = |number: u64| 1_000 + number * 10;
    let losses: Vec<u64> = (0..30).map(|number| at(number) + 7).collect();
    let mut puts: Vec<Call> = (0..30).map(|number| put(at(number), at(number) + 5, number)).collect();
    puts.push(get(at(40), at(40) + 5, Some(28)));
    assert_eq!(broken_with(&puts, 0, &losses), [Rule::Linearizable], "decided, and not given up");
    let mut appends: Vec<Call> = (0..30).map(|number| append(at(number), at(number) + 5, number, Some(number + 1))).collect();
    appends.push(numbers(at(40), at(40) + 5, Some(&[28])));
    assert_eq!(broken_with(&appends, 0, &losses), [Rule::Linearizable], "decided, and not given up");
    appends.pop();
    appends.push(numbers(at(40), at(40) + 5, None));
    assert_eq!(broken_with(&appends, 0, &losses), [], "the last of them took it away");
}
