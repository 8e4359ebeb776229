//! A flight's pages by where they come from.

use bytes::Bytes;
use forebay_types::PageRun;

use super::Given;

/// Requests to shared storage of one flight; where other workers' pages leave more gaps, some pages are fetched that they have.
const GAPS_MAX: usize = 4;

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
    let parts = if gaps > GAPS_MAX { with_one_gap(parts) } else { parts };
    let len = |part: &Part| match part {
        Part::Given(run, _) | Part::Missing(run) => run.len,
    };
    assert_eq!(parts.iter().map(len).sum::<u32>(), run.len, "the parts are all of the run");
    parts
}

/// From the first gap to the last one everything is fetched.
fn with_one_gap(mut parts: Vec<Part>) -> Vec<Part> {
    let gap = |part: &Part| match part {
        Part::Missing(run) => Some(*run),
        Part::Given(..) => None,
    };
    let (first, last) = (parts.iter().position(|part| gap(part).is_some()), parts.iter().rposition(|part| gap(part).is_some()));
    if let (Some(first), Some(last)) = (first, last) {
        let ends = parts.iter().filter_map(gap).map(|run| (run.start, run.end())).reduce(|one, other| (one.0, other.1));
        let (start, end) = ends.expect("there are gaps");
        parts.splice(first..=last, [Part::Missing(PageRun::new(start, end))]);
    }
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
}
