use std::cmp::Reverse;

/// A replica on a worker, as garbage collection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The segment.
    pub segment: u32,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Accesses a window that the plan sends to this replica; 0 when it isn't planned.
    pub share: u64,
    /// Accesses a window of the segment as a whole.
    pub count: u64,
    /// Whether it must stay: it is pinned, is being read in place, or a client's table names it.
    pub stays: bool,
}

/// Which of a worker's replicas to drop, so that what is used comes down to `target` of `limit` bytes: the least popular
/// first, those that aren't planned before all others, until the pressure is gone (Getafix, section 4.4; 0.8).
///
/// What stays is never dropped, so the pressure may remain. O(r log r).
pub fn garbage(replicas: &[Replica], limit: u64, target: f64) -> Vec<u32> {
    let mut used: u64 = replicas.iter().map(|replica| replica.bytes).sum();
    let target = (limit as f64 * target.clamp(0.0, 1.0)) as u64;
    let mut order: Vec<&Replica> = replicas.iter().filter(|replica| !replica.stays && replica.bytes > 0).collect();
    order.sort_by_key(|replica| (replica.share, replica.count, Reverse(replica.bytes), replica.segment));
    let mut dropped = Vec::new();
    for replica in order {
        if used <= target {
            break;
        }
        used -= replica.bytes;
        dropped.push(replica.segment);
    }
    dropped
}
