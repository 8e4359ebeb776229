//! A flight's pages by where they come from.

use std::cmp::Reverse;

use bytes::Bytes;
use forebay_types::PageRun;

use super::Given;

/// Requests to shared storage of one flight; where other workers' pages leave more gaps, some pages are fetched that they have.
const GAPS_MAX: usize = 4;
/// Pages between two gaps that are worth a request then: 256 KiB.
const WORTH_PAGES: u32 = 64;

/// Consecutive pages of a flight.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// Another worker gave them.
    Given(PageRun, Bytes),
    /// Shared storage has them.
    Missing(PageRun),
}

/// The parts of a run of which this was given, in order, covering it.
pub(crate) fn with_gaps(run: PageRun, given: Vec<Given>) -> Vec<Part> {
    let mut parts = Vec::with_capacity(2 * given.len() + 1);
    let mut at = run.start;
    for (part, bytes) in given {
        assert!(at <= part.start && part.end() <= run.end(), "what is given is some of the run, in order");
        if at < part.start {
            parts.push(Part::Missing(PageRun::new(at, part.start)));
        }
        parts.push(Part::Given(part, bytes));
        at = part.end();
    }
    if at < run.end() {
        parts.push(Part::Missing(PageRun::new(at, run.end())));
    }
    let gaps = parts.iter().filter(|part| matches!(part, Part::Missing(_))).count();
    let parts = if gaps > GAPS_MAX { with_few_gaps(parts) } else { parts };
    let len = |part: &Part| match part {
        Part::Given(run, _) | Part::Missing(run) => run.len,
    };
    assert_eq!(parts.iter().map(len).sum::<u32>(), run.len, "the parts are all of the run");
    parts
}

/// The same with gaps that are joined: of what was given between two of them, that counts which saves most, if it is worth a request.
fn with_few_gaps(parts: Vec<Part>) -> Vec<Part> {
    let gap = |part: &Part| match part {
        Part::Missing(run) => Some(*run),
        Part::Given(..) => None,
    };
    let gaps: Vec<PageRun> = parts.iter().filter_map(gap).collect();
    let behind = |at: usize| gaps[at + 1].start - gaps[at].end();
    let mut splits: Vec<usize> = (0..gaps.len() - 1).filter(|at| behind(*at) >= WORTH_PAGES).collect();
    splits.sort_by_key(|at| Reverse(behind(*at)));
    splits.truncate(GAPS_MAX - 1);
    splits.sort_unstable();
    let (mut joined, mut first) = (Vec::with_capacity(GAPS_MAX), 0);
    for last in splits.into_iter().chain([gaps.len() - 1]) {
        joined.push(PageRun::new(gaps[first].start, gaps[last].end()));
        first = last + 1;
    }
    let stays = |part: &Part| match part {
        Part::Given(run, _) => !joined.iter().any(|gap| gap.start <= run.start && run.end() <= gap.end()),
        Part::Missing(_) => false,
    };
    let mut parts: Vec<Part> = parts.into_iter().filter(stays).collect();
    parts.extend(joined.iter().map(|gap| Part::Missing(*gap)));
    parts.sort_by_key(|part| match part {
        Part::Given(run, _) | Part::Missing(run) => run.start,
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(runs: &[(u32, u32)]) -> Vec<Given> {
        runs.iter()
            .map(|(start, end)| (PageRun::new(*start, *end), Bytes::from(vec![0; (*end - *start) as usize * 4096])))
            .collect()
    }

    fn shown(parts: &[Part]) -> Vec<(bool, u32, u32)> {
        let one = |part: &Part| match part {
            Part::Given(run, _) => (true, run.start, run.end()),
            Part::Missing(run) => (false, run.start, run.end()),
        };
        parts.iter().map(one).collect()
    }

    #[test]
    fn what_is_given_is_not_fetched() {
        let run = PageRun::new(10, 30);
        assert_eq!(shown(&with_gaps(run, given(&[]))), [(false, 10, 30)]);
        assert_eq!(shown(&with_gaps(run, given(&[(10, 30)]))), [(true, 10, 30)]);
        assert_eq!(shown(&with_gaps(run, given(&[(12, 15)]))), [(false, 10, 12), (true, 12, 15), (false, 15, 30)]);
        assert_eq!(shown(&with_gaps(run, given(&[(10, 15), (15, 20)]))), [(true, 10, 15), (true, 15, 20), (false, 20, 30)]);
    }

    #[test]
    fn many_gaps_are_one_request() {
        let run = PageRun::new(0, 20);
        let holes = given(&[(0, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 20)]);
        assert_eq!(shown(&with_gaps(run, holes)), [(true, 0, 2), (false, 2, 11), (true, 11, 20)]);
    }

    #[test]
    fn what_is_large_between_many_gaps_is_not_fetched_again() {
        let run = PageRun::new(0, 2_513);
        let columns = given(&[(1, 2), (3, 4), (5, 505), (506, 507), (508, 2_508), (2_509, 2_510), (2_511, 2_512)]);
        assert_eq!(
            shown(&with_gaps(run, columns)),
            [(false, 0, 5), (true, 5, 505), (false, 505, 508), (true, 508, 2_508), (false, 2_508, 2_513)]
        );
        // Of five the three largest, so that four requests do.
        let run = PageRun::new(0, 1_000);
        let columns = given(&[(1, 101), (102, 302), (303, 403), (404, 604), (605, 905)]);
        assert_eq!(
            shown(&with_gaps(run, columns)),
            [
                (false, 0, 102),
                (true, 102, 302),
                (false, 302, 404),
                (true, 404, 604),
                (false, 604, 605),
                (true, 605, 905),
                (false, 905, 1_000)
            ]
        );
    }
}
