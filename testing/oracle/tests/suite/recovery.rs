//! How soon reads are as fast as before.

use forebay_oracle::contents::Seen;
use forebay_oracle::history::{Call, Door, What};
use forebay_oracle::{Rule, recovery};

use crate::written::{failed, uncertain, write};

const SECOND: u64 = 1_000_000;

/// Reads that end every 50 ms from one time to another, and take so long.
fn reads(from: u64, to: u64, took: u64) -> Vec<Call> {
    let read = |end_us: u64| {
        let what = What::Read { key: 1, start: 0, seen: Some((Seen::Version(1), String::new())) };
        Call { begin_us: end_us.saturating_sub(took), end_us, door: Door::Remote, what, error: None }
    };
    (from..to).step_by(50_000).map(read).collect()
}

#[test]
fn reads_that_never_were_slow_are_back_at_once() {
    let told = recovery(&reads(0, 30 * SECOND, 5_000), 10 * SECOND, 20 * SECOND);
    assert_eq!((told.reads_p99_before_us, told.reads_back_us), (Some(5_000), Some(0)));
}

#[test]
fn reads_that_are_slow_after_the_fault_are_back_later() {
    let calls = [reads(0, 24 * SECOND, 5_000), reads(20 * SECOND, 24 * SECOND, 900_000), reads(24 * SECOND, 40 * SECOND, 5_000)];
    let back = recovery(&calls.concat(), 10 * SECOND, 20 * SECOND).reads_back_us;
    assert_eq!(back, Some(4 * SECOND));
}

#[test]
fn reads_that_fail_or_do_not_come_are_not_back() {
    let before = || reads(0, 20 * SECOND, 5_000);
    assert_eq!(recovery(&before(), 10 * SECOND, 20 * SECOND).reads_back_us, None);
    let failing = reads(20 * SECOND, 40 * SECOND, 5_000).into_iter().map(|call| failed(call, "503"));
    let calls: Vec<Call> = before().into_iter().chain(failing).collect();
    assert_eq!(recovery(&calls, 10 * SECOND, 20 * SECOND).reads_back_us, None);
}

#[test]
fn a_version_that_is_gone_now_and_then_is_no_fault_and_one_that_is_gone_for_long_is() {
    let gone_one_in = |many: usize| {
        let after = reads(20 * SECOND, 40 * SECOND, 5_000).into_iter().enumerate();
        let after = after.map(|(number, call)| if number % many == 0 { failed(call, "conflict") } else { call });
        let calls: Vec<Call> = reads(0, 20 * SECOND, 5_000).into_iter().chain(after).collect();
        recovery(&calls, 10 * SECOND, 20 * SECOND).reads_back_us
    };
    assert_eq!((gone_one_in(20), gone_one_in(9)), (Some(0), None));
}

#[test]
fn a_read_that_hangs_until_the_faults_end_counts_to_the_fault() {
    let hangs = reads(20 * SECOND, 20 * SECOND + 1, 10 * SECOND + 1);
    let told = recovery(&[hangs, reads(0, 10 * SECOND, 5_000)].concat(), 10 * SECOND, 20 * SECOND);
    assert_eq!((told.reads_p99_before_us, told.reads_p99_during_us), (Some(5_000), Some(10 * SECOND + 1)));
}

#[test]
fn reads_are_to_be_back_in_ten_seconds_on_a_machine_that_can_tell() {
    let broken = |calls: &[Call]| recovery(calls, 10 * SECOND, 20 * SECOND).violation().map(|violation| violation.rule);
    assert_eq!(broken(&reads(0, 30 * SECOND, 5_000)), None);
    let late = [reads(0, 40 * SECOND, 5_000), reads(20 * SECOND, 33 * SECOND, 900_000)].concat();
    assert_eq!(broken(&late), Some(Rule::Recovers));
    assert_eq!(broken(&reads(0, 20 * SECOND, 5_000)), Some(Rule::Recovers));
    assert_eq!(broken(&reads(0, 40 * SECOND, 1_500_000)), Some(Rule::Decided));
}

#[test]
fn the_last_write_that_failed_is_told() {
    let calls = [uncertain(write(9 * SECOND, 12 * SECOND, 2)), uncertain(write(10 * SECOND, 23 * SECOND, 3))];
    assert_eq!(recovery(&calls, 10 * SECOND, 20 * SECOND).writes_back_us, 3 * SECOND);
}
