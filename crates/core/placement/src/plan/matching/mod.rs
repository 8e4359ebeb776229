//! Which worker takes which part of a plan, so that the fewest bytes move (Getafix, section 3.4).
//!
//! Workers are exchanged only where that changes nothing else: those of equal capacity, equal limit of bytes, and, when
//! segments want copies that lie apart, of one host. Exact up to [`EXACT_MAX`] of them by minimum-cost
//! bipartite matching; beyond that greedy, improved by exchanges of two.

mod exact;
mod greedy;

use std::collections::BTreeMap;

use crate::Snapshot;
use crate::plan::packing::Packing;

/// Workers up to which matching is exact.
const EXACT_MAX: usize = 1000;

/// A part of the plan on a worker that holds some of it, and how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Saving {
    /// Of the plan's parts.
    pub(crate) part: u32,
    pub(crate) worker: u32,
    /// What needn't move then.
    pub(crate) bytes: u64,
}

/// Exchanges what equal workers were given, so that the fewest bytes move.
pub(crate) fn relabel(snapshot: &Snapshot<'_>, packing: &mut Packing) {
    if snapshot.held.is_empty() {
        return;
    }
    let copies = snapshot.segments.iter().any(|segment| segment.minimum > 1);
    let mut classes: BTreeMap<(u64, u64, u32), Vec<u32>> = BTreeMap::new();
    for (at, worker) in (0..).zip(snapshot.workers) {
        let host = if copies { worker.host } else { 0 };
        classes.entry((packing.capacity(at), worker.bytes, host)).or_default().push(at);
    }
    // By worker: its class, and its place in it.
    let mut places = vec![(0, 0); snapshot.workers.len()];
    for (class, workers) in classes.values().enumerate() {
        for (place, worker) in (0..).zip(workers) {
            places[*worker as usize] = (class, place);
        }
    }
    for (class, workers) in classes.values().enumerate().filter(|(_, workers)| workers.len() > 1) {
        let savings = savings(snapshot, packing, workers, |worker| {
            places.get(worker as usize).filter(|(of, _)| *of == class).map(|(_, place)| *place)
        });
        if savings.is_empty() {
            continue;
        }
        let matched = match workers.len() {
            ..=EXACT_MAX => exact::matching(workers.len(), &savings),
            _ => greedy::matching(workers.len(), &savings),
        };
        packing.exchange(workers, &matched);
    }
}

/// What needn't move for each part of the plan on each worker of a class, by part and worker.
fn savings(snapshot: &Snapshot<'_>, packing: &Packing, workers: &[u32], place: impl Fn(u32) -> Option<u32>) -> Vec<Saving> {
    let mut savings = Vec::new();
    let mut bytes = vec![0u64; workers.len()];
    let mut touched: Vec<u32> = Vec::new();
    for (part, worker) in (0..).zip(workers) {
        for piece in &packing.bags[*worker as usize] {
            for holder in snapshot.held.of(piece.segment).iter().filter_map(|holder| place(*holder)) {
                if bytes[holder as usize] == 0 {
                    touched.push(holder);
                }
                bytes[holder as usize] += snapshot.segments[piece.segment as usize].bytes.max(1);
            }
        }
        touched.sort_unstable();
        savings.extend(touched.drain(..).map(|worker| Saving {
            part,
            worker,
            bytes: std::mem::take(&mut bytes[worker as usize]),
        }));
    }
    savings
}
