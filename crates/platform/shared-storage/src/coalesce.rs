//! Ranges that lie close together become one, since a request costs more than a few bytes that nobody asked for.

use std::ops::Range;

/// Joins ranges that overlap, touch, or lie at most `gap_max` bytes apart; empty ones vanish. The answer is in order.
///
/// ```
/// # use forebay_shared_storage::coalesce;
/// assert_eq!(coalesce([20..30, 0..10, 10..12, 40..40], 0), [0..12, 20..30]);
/// assert_eq!(coalesce([20..30, 0..10], 10), [0..30]);
/// ```
pub fn coalesce(ranges: impl IntoIterator<Item = Range<u64>>, gap_max: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap_max) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}
