//! How few replicas any plan could have.

use crate::Snapshot;

/// Replicas that every plan within these capacities has at least, whatever the method.
///
/// A segment takes ceil(count / capacity) workers, and at least its minimum. Between equal workers more is proven:
/// write each count as whole workers and a rest. Of rests above capacity/t, a group of k workers that shares no segment
/// with others holds at most t*k - 1, so B of them on n' workers need B - (t-1) n' further replicas.
pub(crate) fn lower_bound(snapshot: &Snapshot<'_>, capacities: &[u64]) -> u64 {
    let widest = capacities.iter().copied().max().unwrap_or(0);
    if widest == 0 {
        return 0;
    }
    let workers = capacities.len() as u64;
    let pieces = |count: u64, minimum: u32| count.div_ceil(widest).max(u64::from(minimum).min(workers));
    let whole: u64 = snapshot.segments.iter().map(|segment| pieces(segment.count, segment.minimum)).sum();
    let equal = capacities.iter().all(|capacity| *capacity == widest);
    // A minimum may already have paid for a split.
    if !equal || snapshot.segments.iter().any(|segment| segment.minimum > 1) {
        return whole;
    }
    let full: u64 = snapshot.segments.iter().map(|segment| segment.count / widest).sum();
    let Some(left) = workers.checked_sub(full).filter(|left| *left > 0) else { return whole };
    let mut rests: Vec<u64> = snapshot.segments.iter().map(|segment| segment.count % widest).filter(|rest| *rest > 0).collect();
    rests.sort_unstable();
    let mut extra = 0;
    for t in 2.. {
        // rest > widest / t, without division.
        let big = (rests.len() - rests.partition_point(|rest| u128::from(*rest) * t <= u128::from(widest))) as u64;
        extra = extra.max(big.saturating_sub((t as u64 - 1).saturating_mul(left)));
        if big as usize == rests.len() || (t as u64 - 1).saturating_mul(left) >= rests.len() as u64 {
            break;
        }
    }
    whole + extra
}
