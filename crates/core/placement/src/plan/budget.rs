//! What further replicas a budget of bytes is spent on.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::plan::copies::least;
use crate::{SegmentDemand, Snapshot};

/// Share of the budget that is left for what moves, which is held twice until no client's table names the old place.
const MOVING_SHARE: f64 = 0.02;
/// How long an access waits, in the time that it takes to serve one, by the number of workers whose queues are compared: a
/// worker that is busy for 0.7 of its time (M. Mitzenmacher, "The power of two choices in randomized load balancing", 2001,
/// theorem 4). Past the last one nothing is gained that counts.
const WAITS: [f64; 5] = [2.33, 0.61, 0.36, 0.24, 0.18];
/// How much more a replica that isn't held yet must gain than one that is held.
const STICKY: f64 = 1.5;

/// What is asked for, with minima raised so that replicas take what the budget (bytes) allows: each goes where it saves the most
/// waiting for its bytes. O((m + b) log m) for b further replicas.
pub(crate) fn raised(snapshot: &Snapshot<'_>, capacity: &[u64], budget: f64) -> Vec<SegmentDemand> {
    let mut demands = snapshot.segments.to_vec();
    let widest = capacity.iter().copied().max().unwrap_or(0).max(1);
    let workers = snapshot.workers.len() as u64;
    let held = |segment: usize| snapshot.held.of(segment as u32).len() as u64;
    let one_each: f64 = demands.iter().map(|demand| demand.bytes as f64).sum();
    let mut left = one_each * budget * (1.0 - MOVING_SHARE);
    let mut replicas: Vec<u64> = Vec::with_capacity(demands.len());
    let mut heap = BinaryHeap::new();
    for (segment, demand) in demands.iter().enumerate() {
        let needed = u64::from(least(demand.minimum, demand.count)).max(demand.count.div_ceil(widest)).min(workers);
        // What isn't read any more takes its room for as long as it is held.
        left -= demand.bytes as f64 * if needed == 0 { held(segment) as f64 } else { needed as f64 };
        replicas.push(needed);
        if demand.count > 0 {
            heap.extend(Gain::of(segment, demand, needed, held(segment)));
        }
    }
    while let Some(Gain { segment, .. }) = heap.pop() {
        let demand = &mut demands[segment];
        if replicas[segment] >= workers || demand.bytes as f64 > left {
            continue;
        }
        left -= demand.bytes as f64;
        replicas[segment] += 1;
        demand.minimum = replicas[segment] as u32;
        heap.extend(Gain::of(segment, demand, replicas[segment], held(segment)));
    }
    demands
}

/// What one more replica of a segment saves.
struct Gain {
    saved: f64,
    segment: usize,
}

impl Gain {
    fn of(segment: usize, demand: &SegmentDemand, replicas: u64, held: u64) -> Option<Self> {
        let at = usize::try_from(replicas).ok()?.checked_sub(1)?;
        let saved = (WAITS.get(at)? - WAITS.get(at + 1)?) * demand.count as f64 / demand.bytes.max(1) as f64;
        Some(Self { saved: if held > replicas { saved * STICKY } else { saved }, segment })
    }
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.saved.total_cmp(&other.saved).then_with(|| other.segment.cmp(&self.segment))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Gain {}
