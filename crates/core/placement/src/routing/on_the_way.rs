//! What another worker does that misses pages which are on their way to this one: of all that want the same pages one fetches them.
//!
//! Workers that miss pages ask each other, and each may have begun before it hears of the other. Who has asked shared storage is waited for,
//! and waits for nobody. Of two that ask each other the one with the lower id is waited for. Whoever is not waited for is asked by the other one
//! before that asks shared storage itself, so that none of them does it without having heard of the other, and none waits for one that
//! waits for it. How long that may keep a read or a plan is bounded ([`asks_again`]).

use std::time::Duration;

use forebay_types::WorkerId;

/// How long a reader waits for other workers at most once shared storage could be asked, and how often they are asked for one request then.
const READER_WAITS: (u32, Duration) = (1, Duration::from_millis(200));
/// The same of a plan.
const PLAN_WAITS: (u32, Duration) = (4, Duration::from_secs(1));

/// How far pages are that are on their way to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTheWay {
    /// Other workers are asked for them.
    Asking,
    /// Their request waits for its turn at shared storage.
    InLine,
    /// Shared storage has been asked, or they are at hand.
    Coming,
    /// They come into no tier, and go to who waits for them there.
    Passing,
}

/// What another worker does that misses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForOther {
    /// It waits for them.
    Waits,
    /// It fetches them, and is asked for them before they are fetched here.
    Fetches,
    /// It fetches them too.
    FetchesToo,
}

impl OnTheWay {
    /// What `other` does that misses pages which are so far on their way to `worker`. Where none `is_wanted` by a reader or a plan, nobody knows
    /// when they come: background work gets what all else leaves over.
    pub fn for_other(self, is_wanted: bool, worker: WorkerId, other: WorkerId) -> ForOther {
        match self {
            Self::Asking if is_wanted && worker < other => ForOther::Waits,
            Self::Asking | Self::InLine => ForOther::Fetches,
            Self::Coming if is_wanted => ForOther::Waits,
            Self::Coming | Self::Passing => ForOther::FetchesToo,
        }
    }
}

/// Whether workers that were told to fetch pages, or have them coming, are asked before shared storage, when they were asked for the same request
/// in so many rounds and have been waited for for so long: what any of them says or does not say delays a read by no more.
pub fn asks_again(is_read: bool, rounds: u32, waited: Duration) -> bool {
    assert!(rounds <= PLAN_WAITS.0, "{rounds} rounds for one request");
    let (rounds_max, longest) = if is_read { READER_WAITS } else { PLAN_WAITS };
    rounds < rounds_max && waited < longest
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// How far one of two workers is with the same page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Step {
        Before,
        Asks,
        Waits,
        InLine,
        AsksAgain,
        Coming,
        Here,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    struct One {
        step: Step,
        /// The other one has asked here.
        heard: bool,
        /// It was told to fetch the page, and was not asked since.
        told: bool,
        fetched: u32,
    }

    type Two = [One; 2];

    const IDS: [WorkerId; 2] = [WorkerId(1), WorkerId(2)];

    fn turn(one: &mut One) {
        match std::mem::take(&mut one.told) {
            true => one.step = Step::AsksAgain,
            false => (one.step, one.fetched) = (Step::Coming, one.fetched + 1),
        }
    }

    /// `me` asks the other one, and goes on by what that says.
    fn ask(two: &mut Two, me: usize) {
        let other = 1 - me;
        two[other].heard = true;
        let at = match two[other].step {
            Step::Here => return two[me].step = Step::Here,
            Step::Before => None,
            Step::Asks | Step::Waits | Step::AsksAgain => Some(OnTheWay::Asking),
            Step::InLine => Some(OnTheWay::InLine),
            Step::Coming => Some(OnTheWay::Coming),
        };
        match at.map(|at| at.for_other(true, IDS[other], IDS[me])) {
            Some(ForOther::Waits) => return two[me].step = Step::Waits,
            Some(ForOther::Fetches) => two[other].told = true,
            Some(ForOther::FetchesToo) | None => {}
        }
        if two[me].step == Step::Asks { two[me].step = Step::InLine } else { turn(&mut two[me]) }
    }

    /// One step of `me`, where it has one to make. The home asks those only who have asked it.
    fn step(mut two: Two, me: usize, home: usize) -> Option<Two> {
        let one = two[me];
        match one.step {
            Step::Before if me == home && !one.heard => two[me].step = Step::InLine,
            Step::Before => two[me].step = Step::Asks,
            Step::Asks | Step::AsksAgain => ask(&mut two, me),
            Step::Waits if two[1 - me].step == Step::Here => two[me].step = Step::Here,
            Step::InLine => turn(&mut two[me]),
            Step::Coming => two[me].step = Step::Here,
            Step::Waits | Step::Here => return None,
        }
        Some(two)
    }

    #[test]
    fn of_two_workers_one_fetches_whatever_comes_first() {
        for home in [0, 1] {
            let none = One { step: Step::Before, heard: false, told: false, fetched: 0 };
            let (mut seen, mut left, mut ends) = (HashSet::new(), vec![[none; 2]], 0);
            while let Some(two) = left.pop() {
                if !seen.insert(two) {
                    continue;
                }
                let next: Vec<Two> = [0, 1].into_iter().filter_map(|me| step(two, me, home)).collect();
                if next.is_empty() {
                    assert!(two.iter().all(|one| one.step == Step::Here), "they wait for each other: {two:?}");
                    assert_eq!(two[0].fetched + two[1].fetched, 1, "{two:?}");
                    ends += 1;
                }
                left.extend(next);
            }
            assert!(ends > 1 && seen.len() > 20, "there are several ways to the end");
        }
    }

    #[test]
    fn what_nobody_knows_the_time_of_is_not_waited_for() {
        let [low, high] = IDS;
        for (at, expected) in [
            (OnTheWay::Asking, ForOther::Fetches),
            (OnTheWay::InLine, ForOther::Fetches),
            (OnTheWay::Coming, ForOther::FetchesToo),
            (OnTheWay::Passing, ForOther::FetchesToo),
        ] {
            assert_eq!(at.for_other(false, low, high), expected, "background work, {at:?}");
        }
        assert_eq!(OnTheWay::Passing.for_other(true, low, high), ForOther::FetchesToo);
    }

    #[test]
    fn a_reader_was_kept_from_shared_storage_as_long_as_others_asked_meanwhile() {
        let ms = Duration::from_millis;
        assert!(asks_again(true, 0, ms(0)) && asks_again(true, 0, ms(199)));
        assert!(!asks_again(true, 1, ms(0)), "one round for a request");
        assert!(!asks_again(true, 0, ms(200)), "of several parts a later one, or who has waited for a worker that is away");
        assert!(asks_again(false, 3, ms(999)) && !asks_again(false, 4, ms(0)) && !asks_again(false, 0, ms(1_000)));
    }
}
