//! Whether calls can be put into an order that explains all answers: the search of Wing, Gong and Lowe, which remembers where it has been.
//!
//! It ends after so many points and not after some time, so that a history has one verdict, however busy the machine is.

use std::collections::HashSet;
use std::hash::Hash;
use std::vec::IntoIter;

/// Points at most: histories that are in order take some hundred as a rule, and one that is not seldom takes a hundred thousand.
const POINTS_MAX: usize = 1_000_000;
/// The end of a call that was never answered: it may have been done at any time, or not at all.
pub(super) const NEVER: u64 = u64::MAX;

/// A call: when it was made, when it was answered, and what it was.
pub(super) type Timed<T> = (u64, u64, T);

/// What calls do to a thing.
pub(super) trait Specification {
    type State: Clone + Eq + Hash;
    type Operation;

    /// The thing before the first call.
    fn init() -> Self::State;

    /// Whether a call has the answer that it must have of a thing in this state, and the state after it.
    fn apply(operation: &Self::Operation, state: &Self::State) -> (bool, Self::State);
}

/// What the search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Linearizable,
    NotLinearizable,
    Undecided,
}

/// Looks for an order of the calls on one thing.
pub(super) fn check<S: Specification>(calls: Vec<Timed<S::Operation>>) -> Verdict {
    assert!(calls.iter().all(|(begin, end, _)| begin <= end), "a call ends after it began");
    let (mut open, mut answered): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(_, end, _)| *end == NEVER);
    open.sort_by_key(|(begin, ..)| *begin);
    answered.sort_by_key(|(begin, ..)| *begin);
    Search::<S> { answered, open, seen: HashSet::new() }.run()
}

struct Search<S: Specification> {
    /// By their begins, as those are that nobody had an answer of.
    answered: Vec<Timed<S::Operation>>,
    open: Vec<Timed<S::Operation>>,
    seen: HashSet<Point<S::State>>,
}

/// The calls that come first in an order, and the state after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Point<T> {
    /// All answered calls before this one.
    low: usize,
    /// Answered calls behind it, in their order.
    beyond: Vec<usize>,
    /// A bit for each open call.
    open: Vec<u64>,
    state: T,
}

/// The call that comes next.
#[derive(Clone, Copy)]
enum Next {
    Answered(usize),
    Open(usize),
}

/// A point that the search came to, and what is left to try from there.
struct Frame<T> {
    point: Point<T>,
    /// The state without the last call, where that is an open one.
    without: Option<T>,
    left: IntoIter<Next>,
}

impl<S: Specification> Search<S> {
    fn run(mut self) -> Verdict {
        let (mut frames, open) = (Vec::new(), vec![0; self.open.len().div_ceil(64)]);
        let mut reached = Some((Point { low: 0, beyond: Vec::new(), open, state: S::init() }, None));
        loop {
            if let Some((point, without)) = reached.take() {
                if point.low == self.answered.len() {
                    return Verdict::Linearizable;
                }
                if self.seen.len() == POINTS_MAX {
                    return Verdict::Undecided;
                }
                if self.seen.insert(point.clone()) {
                    let left = self.nexts(&point).into_iter();
                    frames.push(Frame { point, without, left });
                }
            }
            let Some(frame) = frames.last_mut() else { return Verdict::NotLinearizable };
            match frame.left.next() {
                Some(next) => reached = self.after(frame, next),
                None => drop(frames.pop()),
            }
        }
    }

    /// The calls that may come next: those that began before all that are left had their answers. Open ones last, as they need not have been done.
    fn nexts(&self, point: &Point<S::State>) -> Vec<Next> {
        let (mut nexts, mut first_end) = (Vec::new(), NEVER);
        for (at, (begin, end, _)) in self.answered.iter().enumerate().skip(point.low) {
            if *begin > first_end {
                break;
            }
            if point.beyond.binary_search(&at).is_err() {
                first_end = first_end.min(*end);
                nexts.push(Next::Answered(at));
            }
        }
        let open = self.open.iter().enumerate().take_while(|(_, (begin, ..))| *begin <= first_end);
        nexts.extend(open.filter(|(at, _)| (point.open[at / 64] >> (at % 64)) & 1 == 0).map(|(at, _)| Next::Open(at)));
        nexts
    }

    /// The point with one more call; none where its answer is another one, or where that call or the one before it makes no difference: an open
    /// call that nobody sees can be left out.
    fn after(&self, frame: &Frame<S::State>, next: Next) -> Option<(Point<S::State>, Option<S::State>)> {
        let (_, _, operation) = match next {
            Next::Answered(at) => &self.answered[at],
            Next::Open(at) => &self.open[at],
        };
        let (is_so, state) = S::apply(operation, &frame.point.state);
        let is_idle = matches!(next, Next::Open(_)) && state == frame.point.state;
        let is_same_without = |without: &S::State| {
            let (is_so, other) = S::apply(operation, without);
            is_so && other == state
        };
        if !is_so || is_idle || frame.without.as_ref().is_some_and(is_same_without) {
            return None;
        }
        let mut point = Point { state, ..frame.point.clone() };
        match next {
            Next::Answered(at) => {
                let place = point.beyond.partition_point(|other| *other < at);
                point.beyond.insert(place, at);
                while point.beyond.first() == Some(&point.low) {
                    point.beyond.remove(0);
                    point.low += 1;
                }
                Some((point, None))
            }
            Next::Open(at) => {
                point.open[at / 64] |= 1 << (at % 64);
                Some((point, Some(frame.point.state.clone())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// A value that is put, got, replaced on a condition, and lost.
    struct Cell;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u8),
        Get(Option<u8>),
        Swap(Option<u8>, u8, Option<bool>),
        Lose,
    }

    impl Specification for Cell {
        type State = Option<u8>;
        type Operation = Step;

        fn init() -> Option<u8> {
            None
        }

        fn apply(step: &Step, there: &Option<u8>) -> (bool, Option<u8>) {
            match step {
                Step::Put(value) => (true, Some(*value)),
                Step::Get(seen) => (seen == there, *there),
                Step::Swap(expected, value, done) => {
                    let holds = expected == there;
                    (done.is_none_or(|done| done == holds), if holds { Some(*value) } else { *there })
                }
                Step::Lose => (true, None),
            }
        }
    }

    /// The same by trying all orders.
    fn has_order(calls: &[Timed<Step>], done: u32, state: Option<u8>) -> bool {
        let left = || (0..calls.len()).filter(move |at| (done >> at) & 1 == 0);
        let Some(first_end) = left().map(|at| calls[at].1).filter(|end| *end != NEVER).min() else { return true };
        left().filter(|at| calls[*at].0 <= first_end).any(|at| {
            let (is_so, now) = Cell::apply(&calls[at].2, &state);
            is_so && has_order(calls, done | (1 << at), now)
        })
    }

    fn history(chance: &mut StdRng) -> Vec<Timed<Step>> {
        let count = chance.random_range(1..=6);
        let drawn = |chance: &mut StdRng| {
            let begin: u64 = chance.random_range(0..12);
            let is_open = chance.random_ratio(1, 3);
            let (value, other): (u8, u8) = (chance.random_range(1..=2), chance.random_range(0..=2));
            let other = (other > 0).then_some(other);
            let step = match chance.random_range(0..8) {
                0..2 => Step::Put(value),
                2..5 => Step::Get(other),
                5..7 => Step::Swap(other, value, (!is_open).then(|| chance.random())),
                _ => return (begin, NEVER, Step::Lose),
            };
            let end = if is_open { NEVER } else { begin + chance.random_range(0..6_u64) };
            (begin, end, step)
        };
        (0..count).map(|_| drawn(chance)).collect()
    }

    #[test]
    fn the_verdict_is_that_of_trying_all_orders() {
        let (mut chance, mut in_order) = (StdRng::seed_from_u64(1), 0);
        for _ in 0..4_000 {
            let calls = history(&mut chance);
            let expected = has_order(&calls, 0, None);
            let verdict = if expected { Verdict::Linearizable } else { Verdict::NotLinearizable };
            assert_eq!(check::<Cell>(calls.clone()), verdict, "{calls:?}");
            in_order += u32::from(expected);
        }
        assert!((400..3_600).contains(&in_order), "{in_order} are in order");
    }

    /// Each of them may have been done, or not, and none was: to try all sets of them would take longer than anybody waits.
    #[test]
    fn many_calls_without_an_answer_do_not_make_the_search_long() {
        let put = |number: u64| (number, NEVER, Step::Put(number as u8));
        let mut calls: Vec<_> = (0..60).map(put).collect();
        calls.extend((0..60).map(|number| (100 + 2 * number, 101 + 2 * number, Step::Get(None))));
        assert_eq!(check::<Cell>(calls.clone()), Verdict::Linearizable);
        calls.push((300, 301, Step::Get(Some(200))));
        assert_eq!(check::<Cell>(calls), Verdict::NotLinearizable);
    }
}
