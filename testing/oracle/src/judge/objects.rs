//! Objects: one version an answer, none too old, no acknowledged write lost.

use std::collections::{BTreeMap, HashMap, HashSet};

use todc_utils::specifications::Specification;

use super::linear::{self, NEVER, Timed, Verdict};
use super::{Promise, Rule, Violation};
use crate::contents::Seen;
use crate::history::{Call, Door, What};

/// A version as its writer knows it.
#[derive(Clone, Copy, Debug)]
struct Written {
    version: u32,
    begin_us: u64,
    end_us: u64,
    /// The writer was told that it is written. Else it may have been at any time from its begin on, or never.
    is_acknowledged: bool,
    /// The object was deleted.
    is_delete: bool,
}

/// An answer to a reader.
#[derive(Clone, Debug)]
struct Answer<'a> {
    call: &'a Call,
    start: u64,
    /// None where he was told that there is no object.
    seen: Option<&'a Seen>,
    etag: &'a str,
}

/// All that was done with one object.
#[derive(Debug, Default)]
struct Object<'a> {
    writes: Vec<Written>,
    answers: Vec<Answer<'a>>,
    /// When the store itself was seen to have a version: begins and ends of these calls. Looked up for each answer and each write before it.
    stored: BTreeMap<u32, Vec<(u64, u64)>>,
    etags: HashMap<&'a str, u32>,
}

/// What a reader is told when there is no object.
const ABSENT: u32 = 0;

pub(super) fn judge(calls: &[Call], promise: impl Fn(u32) -> Promise) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (key, object) in objects(calls) {
        let promise = promise(key);
        let stale_us = if let Promise::Within(stale_us) = promise { stale_us } else { 0 };
        violations.extend(object.answers.iter().filter_map(|answer| object.fault_of(key, answer, stale_us)));
        if promise == Promise::InOrder {
            violations.extend(object.order(key));
        }
    }
    violations
}

fn objects(calls: &[Call]) -> BTreeMap<u32, Object<'_>> {
    let mut objects: BTreeMap<u32, Object<'_>> = BTreeMap::new();
    for call in calls {
        match &call.what {
            What::Write { key, version, etag } => {
                let object = objects.entry(*key).or_default();
                object.writes.extend(Written::of(call, *version, false));
                if let Some(etag) = etag {
                    object.etags.insert(etag, *version);
                }
            }
            What::Delete { key, version } => {
                objects.entry(*key).or_default().writes.extend(Written::of(call, *version, true));
            }
            What::Read { key, start, seen: Some((seen, etag)) } => {
                objects.entry(*key).or_default().answers(Answer { call, start: *start, seen: Some(seen), etag });
            }
            What::Read { key, start, .. } if call.error.as_ref().is_some_and(|failure| failure.kind == "not found") => {
                objects.entry(*key).or_default().answers(Answer { call, start: *start, seen: None, etag: "" });
            }
            _ => {}
        }
    }
    objects
}

impl Written {
    /// What a call may have written; nothing where it did not for certain.
    fn of(call: &Call, version: u32, is_delete: bool) -> Option<Self> {
        let may_be = call.error.as_ref().is_none_or(|failure| !failure.no_effect);
        let (begin_us, end_us, is_acknowledged) = (call.begin_us, call.end_us, call.error.is_none());
        may_be.then_some(Self { version, begin_us, end_us, is_acknowledged, is_delete })
    }

    /// What a reader sees since then.
    fn seen(&self) -> u32 {
        if self.is_delete { ABSENT } else { self.version }
    }
}

impl<'a> Object<'a> {
    fn answers(&mut self, answer: Answer<'a>) {
        let Call { begin_us, end_us, door, .. } = answer.call;
        if let Some(version) = answer.version().filter(|_| *door == Door::Store) {
            self.stored.entry(version).or_default().push((*begin_us, *end_us));
        }
        self.answers.push(answer);
    }
}

impl Object<'_> {
    fn fault_of(&self, key: u32, answer: &Answer<'_>, stale_us: u64) -> Option<Violation> {
        let Call { begin_us, end_us, door, .. } = answer.call;
        let told = format!("object {key}, {door:?} read from byte {} at {begin_us}..{end_us} us", answer.start);
        let Some(seen) = answer.seen else { return self.fault_of_absence(&told, answer, stale_us) };
        let Seen::Version(version) = seen else {
            return Some(Violation::new(Rule::OneVersion, format!("{told}: {seen:?}")));
        };
        if let Some(named) = self.etags.get(answer.etag).filter(|named| *named != version) {
            let what = format!("{told}: bytes of version {version} with the ETag of version {named}");
            return Some(Violation::new(Rule::OneVersion, what));
        }
        let Some(written) = self.writes.iter().find(|written| written.version == *version && written.begin_us <= *end_us) else {
            return Some(Violation::new(Rule::Written, format!("{told}: version {version}, which nobody had begun to write")));
        };
        let newest = self.after(written, answer.call, stale_us)?;
        let rule = if *door == Door::Store { Rule::NotLost } else { Rule::NotStale };
        let late_ms = (begin_us - newest.end_us) / 1000;
        Some(Violation::new(
            rule,
            format!("{told}: version {version}, {late_ms} ms after version {} was acknowledged", newest.version),
        ))
    }

    /// That there is no object is the word of a delete, over which nothing has come yet.
    fn fault_of_absence(&self, told: &str, answer: &Answer<'_>, stale_us: u64) -> Option<Violation> {
        let Call { end_us, error, .. } = answer.call;
        let may_be = |deleted: &Written| {
            deleted.is_delete && deleted.begin_us <= *end_us && self.after(deleted, answer.call, stale_us).is_none()
        };
        if self.writes.iter().any(may_be) {
            return None;
        }
        let message = error.as_ref().map_or("", |failure| failure.message.as_str());
        Some(Violation::new(Rule::NotLost, format!("{told}: {message}")))
    }

    /// The newest write that a reader must see in the place of an older one.
    fn after(&self, written: &Written, call: &Call, stale_us: u64) -> Option<&Written> {
        // A write that was not acknowledged may still come, whatever was written after it.
        if !written.is_acknowledged {
            return None;
        }
        let allowed_us = if call.door == Door::Store { 0 } else { stale_us };
        let is_past = |newer: &&Written| newer.is_acknowledged && newer.end_us.saturating_add(allowed_us) <= call.begin_us;
        let is_over_it = |newer: &&Written| newer.begin_us > written.end_us || self.is_over(newer, written, call.begin_us);
        self.writes.iter().filter(is_past).filter(is_over_it).max_by_key(|newer| newer.end_us)
    }

    /// Whether the store itself was seen to have another version in the place of one, before some time: of two that were written at a time
    /// nobody else can tell.
    fn is_over(&self, newer: &Written, older: &Written, before_us: u64) -> bool {
        let mut seen = self.stored.get(&newer.seen()).into_iter().flatten();
        newer.seen() != older.seen() && seen.any(|(begin_us, end_us)| *begin_us > older.end_us && *end_us <= before_us)
    }

    /// What single answers do not show: two readers that see two writes in two orders.
    fn order(&self, key: u32) -> Option<Violation> {
        let seen: HashSet<u32> = self.answers.iter().filter_map(Answer::version).collect();
        // Where a write that nobody saw and nobody acknowledged comes last, nothing else changes.
        let matters = |written: &&Written| written.is_acknowledged || seen.contains(&written.seen());
        let write = |written: &Written| -> Timed<Access> {
            let end_us = if written.is_acknowledged { written.end_us } else { NEVER };
            (written.begin_us, end_us, Access::Write(written.seen()))
        };
        let read = |answer: &Answer<'_>| Some((answer.call.begin_us, answer.call.end_us, Access::Read(answer.version()?)));
        let calls = self.writes.iter().filter(matters).map(write).chain(self.answers.iter().filter_map(read)).collect();
        match linear::check::<Register>(calls) {
            Verdict::Linearizable => None,
            Verdict::NotLinearizable => {
                Some(Violation::new(Rule::Linearizable, format!("object {key}: no order of its reads and writes explains them")))
            }
            Verdict::Undecided => {
                Some(Violation::new(Rule::Decided, format!("object {key}: the search for an order took too long")))
            }
        }
    }
}

impl Answer<'_> {
    fn version(&self) -> Option<u32> {
        match self.seen {
            None => Some(ABSENT),
            Some(Seen::Version(version)) => Some(*version),
            Some(_) => None,
        }
    }
}

/// An object, as versions are written and read.
struct Register;

#[derive(Clone, Copy, Debug)]
enum Access {
    Write(u32),
    Read(u32),
}

impl Specification for Register {
    type State = u32;
    type Operation = Access;

    fn init() -> u32 {
        ABSENT
    }

    fn apply(access: &Access, version: &u32) -> (bool, u32) {
        match access {
            Access::Write(new) => (true, *new),
            Access::Read(seen) => (seen == version, *version),
        }
    }
}
