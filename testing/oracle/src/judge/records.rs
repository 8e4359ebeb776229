//! Records that many change: what was done with each key can be put into one order, whoever was killed meanwhile.

use std::collections::BTreeMap;
use std::time::Instant;

use forebay_types::{ErrorKind, Result};
use todc_utils::specifications::Specification;

use super::linear::{self, NEVER, Timed, Verdict};
use super::{Rule, Violation};

/// What was done with one record, by a text in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordOp {
    /// The text that an answer has; none where there is no record.
    Read(Option<String>),
    /// Put with a text, or deleted.
    Write(Option<String>),
    /// Put under the condition that this was there.
    Swap(Option<String>, String),
    /// A search for a text has found it, or not.
    Found(String, bool),
}

/// One call about one record.
#[derive(Clone, Debug)]
pub struct RecordCall {
    /// Whose.
    pub key: u64,
    /// When it was made.
    pub began: Instant,
    /// When it was answered; none where nobody knows whether it was done.
    pub ended: Option<Instant>,
    /// What it was, with its answer.
    pub op: RecordOp,
}

struct Record;

impl Specification for Record {
    type State = Option<String>;
    type Operation = RecordOp;

    fn init() -> Self::State {
        None
    }

    fn apply(op: &RecordOp, state: &Self::State) -> (bool, Self::State) {
        match op {
            RecordOp::Read(text) => (text == state, state.clone()),
            RecordOp::Write(text) => (true, text.clone()),
            RecordOp::Swap(before, text) => (before == state, Some(text.clone())),
            RecordOp::Found(text, found) => ((state.as_ref() == Some(text)) == *found, state.clone()),
        }
    }
}

/// What must hold of calls about records that were not there before the first of them.
pub fn records(calls: &[RecordCall]) -> Vec<Violation> {
    let Some(first) = calls.iter().map(|call| call.began).min() else { return Vec::new() };
    let nanos = |at: Instant| u64::try_from((at - first).as_nanos()).unwrap_or(NEVER - 1);
    let mut by_key: BTreeMap<u64, Vec<Timed<RecordOp>>> = BTreeMap::new();
    for call in calls {
        // What may have been done can come at any time, also after all that was seen.
        let timed = (nanos(call.began), call.ended.map_or(NEVER, nanos), call.op.clone());
        by_key.entry(call.key).or_default().push(timed);
    }
    let judge = |(key, calls): (u64, Vec<Timed<RecordOp>>)| {
        let count = calls.len();
        match linear::check::<Record>(calls) {
            Verdict::Linearizable => None,
            Verdict::NotLinearizable => {
                Some(Violation::new(Rule::Linearizable, format!("record {key}: {count} calls in no order that explains them")))
            }
            Verdict::Undecided => Some(Violation::new(Rule::Decided, format!("record {key}: an order of {count} calls"))),
        }
    };
    by_key.into_iter().filter_map(judge).collect()
}

/// Whether a change was made, as far as its asker knows; an error that does not leave it open is one.
pub fn is_certain<T>(changed: Result<T>) -> Result<bool> {
    match changed {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Retry => Ok(false),
        Err(error) => Err(error),
    }
}
