//! Histories, written down by hand. Times are in microseconds.

use forebay_oracle::contents::Seen;
use forebay_oracle::history::{Call, Door, Failure, What};
use forebay_oracle::{Losses, Promise, Rule, judge};

/// A call that was answered.
pub fn call(begin_us: u64, end_us: u64, what: What) -> Call {
    Call { begin_us, end_us, door: Door::Gateway, what, error: None }
}

/// The same call, of which nobody knows whether it was done.
pub fn uncertain(call: Call) -> Call {
    failed(call, "retry")
}

/// The same call with an error.
pub fn failed(call: Call, kind: &str) -> Call {
    Call { error: Some(Failure { kind: kind.to_owned(), message: "as told".to_owned(), no_effect: false }), ..call }
}

/// The same call by another door.
pub fn by(door: Door, call: Call) -> Call {
    Call { door, ..call }
}

/// Version `version` of object 1 is written.
pub fn write(begin_us: u64, end_us: u64, version: u32) -> Call {
    call(begin_us, end_us, What::Write { key: 1, version, etag: Some(format!("etag-{version}")) })
}

/// Object 1 is deleted, as version `version`.
pub fn delete(begin_us: u64, end_us: u64, version: u32) -> Call {
    call(begin_us, end_us, What::Delete { key: 1, version })
}

/// A reader of object 1 is told that there is none.
pub fn absent(begin_us: u64, end_us: u64) -> Call {
    failed(call(begin_us, end_us, What::Read { key: 1, start: 0, seen: None }), "not found")
}

pub fn read(begin_us: u64, end_us: u64, version: u32) -> Call {
    read_as(begin_us, end_us, Seen::Version(version), version)
}

/// Something is read, with the ETag of a version.
pub fn read_as(begin_us: u64, end_us: u64, seen: Seen, etag: u32) -> Call {
    call(begin_us, end_us, What::Read { key: 1, start: 0, seen: Some((seen, format!("etag-{etag}"))) })
}

/// What is broken where older versions may be read for so long, and no worker was lost.
pub fn broken(calls: &[Call], stale_us: u64) -> Vec<Rule> {
    broken_with(calls, stale_us, &[])
}

/// The same, with workers lost at these times.
pub fn broken_with(calls: &[Call], stale_us: u64, losses: &[u64]) -> Vec<Rule> {
    let promise = if stale_us == 0 { Promise::InOrder } else { Promise::Within(stale_us) };
    broken_by(calls, promise, losses)
}

/// The same, by what is promised of objects.
pub fn broken_by(calls: &[Call], promise: Promise, losses: &[u64]) -> Vec<Rule> {
    broken_rules(calls, promise, &Losses { workers: losses.to_vec(), cuts: Vec::new() })
}

/// What is broken where no worker was lost, and connections broke at these times.
pub fn broken_with_cuts(calls: &[Call], cuts: &[u64]) -> Vec<Rule> {
    broken_rules(calls, Promise::InOrder, &Losses { workers: Vec::new(), cuts: cuts.to_vec() })
}

fn broken_rules(calls: &[Call], promise: Promise, losses: &Losses) -> Vec<Rule> {
    let mut rules: Vec<Rule> = judge(calls, |_| promise, losses).into_iter().map(|one| one.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}
