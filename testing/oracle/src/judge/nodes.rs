//! Temporary nodes: linearizable by path, and lost only with a worker.

use std::collections::BTreeMap;

use todc_utils::specifications::Specification;

use super::linear::{self, NEVER, Timed, Verdict};
use super::{Rule, Violation};
use crate::history::{Call, What};

/// When temporary data may have been lost, or calls on it have gone unanswered, in microseconds of the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// From each of these times on a worker may have been lost, and what it had with it.
    pub workers: Vec<u64>,
    /// Connections broke at these times. Nothing is lost by that; but what can't be asked for twice, and was asked for at such a time, may be
    /// done or not, and `DataLost` says so.
    pub cuts: Vec<u64>,
}

impl Losses {
    /// Whether `DataLost` may be said of a call.
    fn may_be_said_of(&self, call: &Call) -> bool {
        let met = call.begin_us.saturating_sub(CUT_SLACK_US)..=call.end_us.saturating_add(CUT_SLACK_US);
        self.workers.iter().any(|lost| *lost <= call.end_us)
            || (is_done_once(call) && self.cuts.iter().any(|cut| met.contains(cut)))
    }

    /// Those that calls on a path may have met, the first one first.
    fn while_used(&self, calls: &[&Call]) -> Vec<u64> {
        let first = calls.iter().map(|call| call.begin_us).min().unwrap_or(0);
        let last = calls.iter().map(|call| call.end_us).max().unwrap_or(0);
        let mut before: Vec<u64> = self.workers.iter().copied().filter(|lost| *lost < first).collect();
        before.sort_unstable();
        let mut used = before.split_off(before.len().saturating_sub(LOSSES_BEFORE));
        used.extend(self.workers.iter().filter(|lost| (first..=last).contains(*lost)));
        used.sort_unstable();
        used
    }
}

/// A host may hear so late of a connection that broke, or be so far behind whoever says when that was.
const CUT_SLACK_US: u64 = 200_000;
/// Losses from before a path was used that are tried: they may come later, and more of them while it is used come to the same.
const LOSSES_BEFORE: usize = 3;

pub(super) fn judge(calls: &[Call], losses: &Losses) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut paths: BTreeMap<&str, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        let Some(path) = call.node() else { continue };
        paths.entry(path).or_default().push(call);
        if let Some(failure) = call.error.as_ref().filter(|failure| failure.kind == "data lost")
            && !losses.may_be_said_of(call)
        {
            let what = format!("{path} at {} us, while all workers ran and could be asked: {}", call.begin_us, failure.message);
            violations.push(Violation::new(Rule::LostWithWorker, what));
        }
    }
    violations.extend(paths.into_iter().filter_map(|(path, calls)| order(path, &calls, losses)));
    violations
}

/// Whether a call would add twice, or find its own work in its place, if it was asked for again.
fn is_done_once(call: &Call) -> bool {
    matches!(call.what, What::Append { .. } | What::Swap { .. })
}

fn order(path: &str, calls: &[&Call], losses: &Losses) -> Option<Violation> {
    let is_file = |call: &&Call| matches!(call.what, What::Append { .. } | What::Numbers { .. });
    let used = losses.while_used(calls);
    let verdict = match calls.iter().any(is_file) {
        // It never comes back: the first loss may come whenever another one may, and after one the others change nothing.
        true => search::<File>(calls, used.first().map(|begin_us| (*begin_us, Change::Lose)), of_file),
        false => {
            let lost = used.iter().enumerate().map(|(number, begin_us)| (*begin_us, Step::Lose(number)));
            search::<Value>(calls, lost, of_value)
        }
    };
    match verdict {
        Verdict::Linearizable => None,
        Verdict::NotLinearizable => {
            Some(Violation::new(Rule::Linearizable, format!("{path}: no order of {} calls explains them", calls.len())))
        }
        Verdict::Undecided => Some(Violation::new(Rule::Decided, format!("{path}: the search for an order took too long"))),
    }
}

/// A loss may come at any time from its begin on, or never: as a call that is not answered.
fn search<S>(
    calls: &[&Call],
    losses: impl IntoIterator<Item = (u64, S::Operation)>,
    of: fn(&Call) -> Option<S::Operation>,
) -> Verdict
where
    S: Specification,
    S::Operation: Clone + Send + 'static,
{
    let timed = |call: &&Call| -> Option<Timed<S::Operation>> {
        let end_us = if call.error.is_some() { NEVER } else { call.end_us };
        Some((call.begin_us, end_us, of(call)?))
    };
    let lost = losses.into_iter().map(|(begin_us, lose)| (begin_us, NEVER, lose));
    linear::check::<S>(calls.iter().filter_map(timed).chain(lost).collect())
}

/// What a call says of a value. Nothing where it failed without an effect, and where a reader was told nothing.
fn of_value(call: &Call) -> Option<Step> {
    let failure = call.error.as_ref();
    match &call.what {
        _ if failure.is_some_and(|failure| failure.no_effect) => None,
        What::Put { value, .. } => Some(Step::Put(*value)),
        What::Get { value, .. } if failure.is_none() => Some(Step::Get(*value)),
        What::Swap { expected, value, done, .. } => Some(Step::Swap { expected: *expected, value: *value, done: *done }),
        _ => None,
    }
}

fn of_file(call: &Call) -> Option<Change> {
    let failure = call.error.as_ref();
    match &call.what {
        _ if failure.is_some_and(|failure| failure.no_effect) => None,
        What::Append { value, count, .. } => Some(Change::Append { value: *value, count: *count }),
        What::Numbers { numbers, .. } if failure.is_none() => Some(Change::Read(numbers.clone())),
        _ => None,
    }
}

/// A key-value: what is there, if anything is, and how often it was lost.
struct Value;

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u64),
    Get(Option<u64>),
    /// `done` is none where nobody was told.
    Swap {
        expected: Option<u64>,
        value: u64,
        done: Option<bool>,
    },
    /// One loss is as another, and the one that may come first may come in the place of any: they come by their numbers, of which there
    /// are as many states as losses, not as many as sets of them.
    Lose(usize),
}

impl Specification for Value {
    type State = (Option<u64>, usize);
    type Operation = Step;

    fn init() -> Self::State {
        (None, 0)
    }

    fn apply(step: &Step, (there, lost): &Self::State) -> (bool, Self::State) {
        let (is_so, now) = match step {
            Step::Put(value) => (true, Some(*value)),
            Step::Get(seen) => (seen == there, *there),
            Step::Swap { expected, value, done } => {
                let holds = expected == there;
                (done.is_none_or(|done| done == holds), if holds { Some(*value) } else { *there })
            }
            Step::Lose(number) => return (number == lost, (None, lost + 1)),
        };
        (is_so, (now, *lost))
    }
}

/// A file: the numbers in it, if there is one. It is there from the beginning and made once.
struct File;

#[derive(Clone, Debug)]
enum Change {
    /// `count` is none where nobody was told.
    Append {
        value: u64,
        count: Option<u64>,
    },
    Read(Option<Vec<u64>>),
    Lose,
}

impl Specification for File {
    type State = Option<Vec<u64>>;
    type Operation = Change;

    fn init() -> Option<Vec<u64>> {
        Some(Vec::new())
    }

    fn apply(change: &Change, there: &Option<Vec<u64>>) -> (bool, Option<Vec<u64>>) {
        match (change, there) {
            (Change::Append { count, .. }, None) => (count.is_none(), None),
            (Change::Append { value, count }, Some(numbers)) => {
                let longer: Vec<u64> = numbers.iter().copied().chain([*value]).collect();
                (count.is_none_or(|count| count == longer.len() as u64), Some(longer))
            }
            (Change::Read(seen), there) => (seen == there, there.clone()),
            (Change::Lose, _) => (true, None),
        }
    }
}
