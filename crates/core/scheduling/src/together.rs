//! Small parts of a piece of work are put together, so that none that is handed out is too small to be worth it.

use std::ops::Range;

/// Runs of neighbouring parts, each of at least `least` bytes: as many as there can be. All parts are in one where they don't have so many.
/// With 0 each part is alone. O(n).
///
/// ```
/// use forebay_scheduling::together;
///
/// assert_eq!(together(&[3, 1, 9, 2, 2], 4), [0..2, 2..3, 3..5]);
/// assert_eq!(together(&[3, 1, 9, 2, 1], 4), [0..2, 2..5], "what is left over goes with the last");
/// assert_eq!(together(&[1, 1], 4), [0..2]);
/// ```
pub fn together(bytes: &[u64], least: u64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let (mut start, mut sum) = (0, 0_u64);
    for (at, part) in bytes.iter().enumerate() {
        sum = sum.saturating_add(*part);
        if sum >= least {
            runs.push(start..at + 1);
            (start, sum) = (at + 1, 0);
        }
    }
    if start < bytes.len() {
        if let Some(last) = runs.last_mut() { last.end = bytes.len() } else { runs.push(0..bytes.len()) }
    }
    assert_eq!(runs.iter().map(ExactSizeIterator::len).sum::<usize>(), bytes.len(), "each part is in one run");
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most runs of at least `least` bytes, by trying all ways to cut; one where there is none.
    fn most(bytes: &[u64], least: u64) -> usize {
        let cuts = bytes.len().saturating_sub(1);
        let runs_of = |cut: u32| {
            let mut sums = vec![0_u64];
            for (at, part) in bytes.iter().enumerate() {
                if at > 0 && cut & (1 << (at - 1)) != 0 {
                    sums.push(0);
                }
                *sums.last_mut().unwrap() += part;
            }
            sums.iter().all(|sum: &u64| *sum >= least).then_some(sums.len())
        };
        (0..1_u32 << cuts).filter_map(runs_of).max().unwrap_or(1)
    }

    #[test]
    fn there_are_as_many_runs_as_trying_all_cuts_finds() {
        for count in 1..=6_u32 {
            for number in 0..4_u64.pow(count) {
                let bytes: Vec<u64> = (0..count).map(|at| number / 4_u64.pow(at) % 4).collect();
                for least in 0..8 {
                    let runs = together(&bytes, least);
                    assert_eq!(runs.len(), most(&bytes, least), "{bytes:?} of {least}");
                    let each: Vec<usize> = runs.iter().cloned().flatten().collect();
                    assert_eq!(each, (0..bytes.len()).collect::<Vec<_>>(), "each part once, in its order");
                    let is_enough = |run: &Range<usize>| bytes[run.clone()].iter().sum::<u64>() >= least;
                    assert!(runs.len() == 1 || runs.iter().all(is_enough), "{bytes:?} of {least}: {runs:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_in_no_run_and_too_much_is_no_error() {
        assert!(together(&[], 5).is_empty() && together(&[], 0).is_empty());
        assert_eq!(together(&[u64::MAX, u64::MAX, 1], u64::MAX), [0..1, 1..3]);
        assert_eq!(together(&[0, 0, 0], 0), [0..1, 1..2, 2..3], "with 0 each is alone");
    }
}
