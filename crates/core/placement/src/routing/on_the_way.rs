//! What another worker does that misses pages which are on their way to this one: of all that want the same pages one fetches them.
//!
//! Workers that miss pages ask each other, and each may have begun before it hears of the other. Who has asked shared storage is waited for,
//! and waits for nobody. Of two that ask each other the one with the lower id is waited for. Whoever is not waited for is asked by the other one
//! before that asks shared storage itself, so that none of them does it without having heard of the other, and none waits for one that
//! waits for it. How long that may keep a read or a plan is bounded ([`asks_again`]).
//!
//! Parts of an object that two workers read may border on each other within a page, as row groups do that are two tasks' input. The one whose
//! part begins with that page fetches it, as it has it first of all; the other one leaves it to the end of its request, where that is long
//! ([`left_to_the_end`]), and asks for it then, so that neither waits.

use std::time::Duration;

use forebay_types::{PageRun, WorkerId};

/// Pages from which on a request is long: 256 KiB.
const LONG_PAGES: u32 = 64;
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
    /// It fetches what else it wants, and asks again; it is asked for them too before they are fetched here.
    AsksLater,
    /// It fetches them too.
    FetchesToo,
}

/// Where pages lie that two workers miss, in what the one that is asked brings and in what the other one wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// In one page, which comes last here, and with which begins what the other one wants.
    Last,
    /// In one page, which comes first here, and with which ends what the other one wants.
    First,
    /// Anywhere else.
    Within,
}

impl Meeting {
    /// Of what one `brings` and what another one `wants`.
    pub fn of(brings: PageRun, wants: PageRun) -> Self {
        let border = |before: PageRun, behind: PageRun| {
            before.start < behind.start && behind.start + 1 == before.end() && before.end() < behind.end()
        };
        match (border(brings, wants), border(wants, brings)) {
            (true, _) => Self::Last,
            (_, true) => Self::First,
            _ => Self::Within,
        }
    }
}

impl OnTheWay {
    /// What `other` does that misses pages which are so far on their way to `worker`. Where none `is_wanted` by a reader or a plan, nobody knows
    /// when they come: background work gets what all else leaves over.
    pub fn for_other(self, is_wanted: bool, meeting: Meeting, worker: WorkerId, other: WorkerId) -> ForOther {
        match (self, meeting) {
            (Self::Asking | Self::InLine, Meeting::First) if is_wanted => ForOther::AsksLater,
            (Self::Asking, Meeting::Within) if is_wanted && worker < other => ForOther::Waits,
            (Self::Asking | Self::InLine, _) => ForOther::Fetches,
            (Self::Coming, _) if is_wanted => ForOther::Waits,
            (Self::Coming | Self::Passing, _) => ForOther::FetchesToo,
        }
    }
}

/// The page of a long request that it leaves to its end, where others may bring some of it still: its last, with which the part of another one
/// may begin, who has it by then. A short one has it as soon as what is before it. None where nothing of the segment, of so many `pages`, lies
/// behind it.
pub fn left_to_the_end(run: PageRun, pages: u32) -> Option<PageRun> {
    assert!(run.end() <= pages, "a request is for pages of its segment");
    (run.len >= LONG_PAGES && run.end() < pages).then(|| PageRun::new(run.end() - 1, run.end()))
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

    /// Where the page lies in what each of them brings, as it is asked for by the other one.
    type Met = [Meeting; 2];

    const IDS: [WorkerId; 2] = [WorkerId(1), WorkerId(2)];

    fn turn(one: &mut One) {
        match std::mem::take(&mut one.told) {
            true => one.step = Step::AsksAgain,
            false => (one.step, one.fetched) = (Step::Coming, one.fetched + 1),
        }
    }

    /// `me` asks the other one, and goes on by what that says.
    fn ask(two: &mut Two, met: Met, me: usize) {
        let other = 1 - me;
        two[other].heard = true;
        let at = match two[other].step {
            Step::Here => return two[me].step = Step::Here,
            Step::Before => None,
            Step::Asks | Step::Waits | Step::AsksAgain => Some(OnTheWay::Asking),
            Step::InLine => Some(OnTheWay::InLine),
            Step::Coming => Some(OnTheWay::Coming),
        };
        match at.map(|at| at.for_other(true, met[other], IDS[other], IDS[me])) {
            Some(ForOther::Waits) => return two[me].step = Step::Waits,
            Some(ForOther::Fetches) => two[other].told = true,
            Some(ForOther::AsksLater) => (two[me].told, two[other].told) = (true, true),
            Some(ForOther::FetchesToo) | None => {}
        }
        if two[me].step == Step::Asks { two[me].step = Step::InLine } else { turn(&mut two[me]) }
    }

    /// One step of `me`, where it has one to make. The home asks those only who have asked it.
    fn step(mut two: Two, met: Met, me: usize, home: usize) -> Option<Two> {
        let one = two[me];
        match one.step {
            Step::Before if me == home && !one.heard => two[me].step = Step::InLine,
            Step::Before => two[me].step = Step::Asks,
            Step::Asks | Step::AsksAgain => ask(&mut two, met, me),
            Step::Waits if two[1 - me].step == Step::Here => two[me].step = Step::Here,
            Step::InLine => turn(&mut two[me]),
            Step::Coming => two[me].step = Step::Here,
            Step::Waits | Step::Here => return None,
        }
        Some(two)
    }

    #[test]
    fn of_two_workers_one_fetches_whatever_comes_first() {
        let places = [[Meeting::Within; 2], [Meeting::First, Meeting::Last], [Meeting::Last, Meeting::First]];
        for (met, home) in places.into_iter().flat_map(|met| [(met, 0), (met, 1)]) {
            let none = One { step: Step::Before, heard: false, told: false, fetched: 0 };
            let (mut seen, mut left, mut ends) = (HashSet::new(), vec![[none; 2]], 0);
            while let Some(two) = left.pop() {
                if !seen.insert(two) {
                    continue;
                }
                let next: Vec<Two> = [0, 1].into_iter().filter_map(|me| step(two, met, me, home)).collect();
                if next.is_empty() {
                    assert!(two.iter().all(|one| one.step == Step::Here), "they wait for each other: {two:?}");
                    assert_eq!(two[0].fetched + two[1].fetched, 1, "{met:?} {two:?}");
                    ends += 1;
                }
                left.extend(next);
            }
            assert!(ends > 1 && seen.len() > 20, "there are several ways to the end");
        }
    }

    #[test]
    fn two_parts_that_meet_in_a_page_waited_for_each_other() {
        let run = PageRun::new;
        assert_eq!(Meeting::of(run(0, 100), run(99, 200)), Meeting::Last);
        assert_eq!(Meeting::of(run(99, 200), run(0, 100)), Meeting::First);
        let within =
            [(run(0, 100), run(98, 200)), (run(0, 100), run(0, 100)), (run(0, 100), run(99, 100)), (run(99, 100), run(0, 100))];
        for (brings, wants) in within {
            assert_eq!(Meeting::of(brings, wants), Meeting::Within, "{brings:?} {wants:?}");
        }
        for (worker, other) in [(IDS[0], IDS[1]), (IDS[1], IDS[0])] {
            for at in [OnTheWay::Asking, OnTheWay::InLine] {
                assert_eq!(at.for_other(true, Meeting::Last, worker, other), ForOther::Fetches, "it has it before this one");
                assert_eq!(at.for_other(true, Meeting::First, worker, other), ForOther::AsksLater, "and this one before that");
            }
        }
        assert_eq!(left_to_the_end(run(0, 100), 300), Some(run(99, 100)));
        assert_eq!(left_to_the_end(run(40, 100), 300), None, "it comes with the others");
        assert_eq!(left_to_the_end(run(0, 300), 300), None, "nobody's part begins there");
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
            for meeting in [Meeting::Within, Meeting::First, Meeting::Last] {
                assert_eq!(at.for_other(false, meeting, low, high), expected, "background work, {at:?}, {meeting:?}");
            }
        }
        assert_eq!(OnTheWay::Passing.for_other(true, Meeting::Within, low, high), ForOther::FetchesToo);
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
