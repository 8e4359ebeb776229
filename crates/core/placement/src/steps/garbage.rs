//! What goes where bytes are short.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::{Changes, InFlight, Plan, Snapshot};

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

/// What a worker has for bytes, and how much of it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Bytes.
    pub limit: u64,
    /// Bytes in use, also by what no plan knows of.
    pub used: u64,
}

/// Replicas to drop where storage is short, as (segment, worker). Planned ones are never among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Spare: others of their segment are left, and no client's table names them.
    pub spare: Vec<(u32, u32)>,
    /// What has to make room for loads, though it is a segment's last replica or a client's table may name it.
    pub in_the_way: Vec<(u32, u32)>,
}

/// What to drop beside the deletions of `changes`; `storage` is by worker. Two rules:
///
/// * A worker that is filled beyond `from` of its limit drops spare replicas.
/// * Anything else that isn't planned goes only where what is to be loaded finds no room otherwise: a segment's last replica,
///   dropped at the threshold, would be loaded again a minute later, which in simulation made p99 three times as long; and
///   where everything is full, nothing would move at all if what is named could never go.
///
/// O(r log r) for r replicas.
pub fn collect(
    snapshot: &Snapshot<'_>,
    plan: &Plan,
    changes: &Changes,
    flight: &InFlight<'_>,
    storage: &[Storage],
    from: f64,
) -> Garbage {
    let workers = snapshot.workers.len();
    let mut left: Vec<usize> = (0..snapshot.segments.len() as u32).map(|segment| snapshot.held.of(segment).len()).collect();
    let mut mine: Vec<Vec<u32>> = vec![Vec::new(); workers];
    let mut loading: Vec<u64> = vec![0; workers];
    let mut freed: Vec<u64> = vec![0; workers];
    for (segment, worker) in flight.loading.pairs().filter(|(_, worker)| (*worker as usize) < workers) {
        left[segment as usize] += usize::from(!snapshot.held.holds(segment, worker));
        loading[worker as usize] += snapshot.segments[segment as usize].bytes;
    }
    for (segment, worker) in snapshot.held.pairs().filter(|(_, worker)| (*worker as usize) < workers) {
        if changes.delete.binary_search(&(segment, worker)).is_ok() {
            left[segment as usize] -= 1;
            freed[worker as usize] += snapshot.segments[segment as usize].bytes;
        } else {
            mine[worker as usize].push(segment);
        }
    }
    let mut coming = vec![0; workers];
    changes.load.iter().for_each(|load| coming[load.worker as usize] += snapshot.segments[load.segment as usize].bytes);
    let mut all = Garbage::default();
    for (worker, held) in (0u32..).zip(&mine) {
        let at = worker as usize;
        let Some(Storage { limit, used }) = storage.get(at).copied().filter(|storage| storage.limit > 0) else { continue };
        let known: u64 = held.iter().map(|segment| snapshot.segments[*segment as usize].bytes).sum();
        // What isn't a replica that may go: what is loading, and what no plan knows of.
        let rest = used.saturating_sub(freed[at]).max(known + loading[at]) - known;
        let replica = |segment: u32, stays: bool| {
            let demand = &snapshot.segments[segment as usize];
            let stays = stays || plan.holds(segment, worker);
            Replica { segment, bytes: demand.bytes, share: 0, count: demand.count, stays }
        };
        let other = Replica { segment: u32::MAX, bytes: rest, share: 0, count: 0, stays: true };
        let keeps = |segment: u32| left[segment as usize] <= 1 || flight.named.holds(segment, worker);
        let mut replicas: Vec<Replica> = held.iter().map(|segment| replica(*segment, keeps(*segment))).collect();
        replicas.push(other);
        let spare = garbage(&replicas, limit, from);
        let gone: HashSet<u32> = spare.iter().copied().collect();
        let mut replicas: Vec<Replica> =
            held.iter().filter(|segment| !gone.contains(segment)).map(|segment| replica(*segment, false)).collect();
        replicas.push(other);
        let in_the_way = garbage(&replicas, limit, 1.0 - coming[at] as f64 / limit as f64);
        spare.iter().chain(&in_the_way).for_each(|segment| left[*segment as usize] -= 1);
        all.spare.extend(spare.into_iter().map(|segment| (segment, worker)));
        all.in_the_way.extend(in_the_way.into_iter().map(|segment| (segment, worker)));
    }
    of_garbage(snapshot, plan, changes, &all);
    all
}

/// What goes for bytes is there, is not planned and does not go already.
pub(super) fn of_garbage(snapshot: &Snapshot<'_>, plan: &Plan, changes: &Changes, garbage: &Garbage) {
    for &(segment, worker) in garbage.spare.iter().chain(&garbage.in_the_way) {
        assert!(snapshot.held.holds(segment, worker), "segment {segment} at worker {worker} is there to go");
        assert!(!plan.holds(segment, worker), "segment {segment} at worker {worker} is planned, and stays");
        let goes = changes.delete.binary_search(&(segment, worker)).is_ok();
        assert!(!goes, "segment {segment} at worker {worker} goes once");
    }
}
