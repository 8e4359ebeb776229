//! The copies that safety asks for.

use std::collections::BTreeSet;

use crate::plan::packing::{Packing, Piece};
use crate::{SegmentDemand, Snapshot, WorkerRoom};

/// Adds the copies that miss to a segment's minimum, each in a failure domain that the segment isn't in yet, else on a host: workers
/// that hold it first, then those with the most room for bytes. They serve nothing by plan, so they need no capacity; what
/// found none at all is on one worker at least.
pub(crate) fn add_copies(snapshot: &Snapshot<'_>, packing: &mut Packing) {
    let simple = |demand: &SegmentDemand| demand.minimum <= u32::from(demand.count > 0);
    if packing.left.is_empty() && snapshot.segments.iter().all(simple) {
        return;
    }
    let wanting: Vec<u32> =
        (0..).zip(snapshot.segments).filter(|(_, demand)| least(demand.minimum, demand.count) > 0).map(|(at, _)| at).collect();
    let mut homes: Vec<Vec<u32>> = vec![Vec::new(); snapshot.segments.len()];
    for (worker, bag) in (0..).zip(&packing.bags) {
        for piece in bag {
            homes[piece.segment as usize].push(worker);
        }
    }
    let mut roomy: BTreeSet<(u64, u32, u32)> = (0..packing.bags.len() as u32).map(|worker| place(packing, worker)).collect();
    let all: Vec<u32> = (0..snapshot.workers.len() as u32).collect();
    let levels = WorkerRoom::APART_BY.map(|apart_by| (apart_by, apart(snapshot, &all, apart_by)));
    for segment in wanting {
        let demand = &snapshot.segments[segment as usize];
        let mine = &mut homes[segment as usize];
        for (apart_by, parts) in levels {
            while apart(snapshot, mine, apart_by) < parts.min(least(demand.minimum, demand.count) as usize) {
                let part = |worker: u32| apart_by(&snapshot.workers[worker as usize]);
                let fits = |worker: u32| {
                    packing.bytes[worker as usize] >= demand.bytes && mine.iter().all(|other| part(*other) != part(worker))
                };
                let held = snapshot.held.of(segment).iter().copied().filter(|worker| (*worker as usize) < packing.bags.len());
                let roomiest = roomy.iter().rev().map(|(_, _, flipped)| !flipped);
                let Some(worker) = held.chain(roomiest).find(|worker| fits(*worker)) else { break };
                roomy.remove(&place(packing, worker));
                packing.put(worker, Piece { segment, count: 0 }, demand.bytes);
                roomy.insert(place(packing, worker));
                debug_assert!(!mine.contains(&worker), "a worker has a segment once");
                mine.push(worker);
            }
        }
    }
}

/// Most room last: bytes, then few replicas, then the lower worker.
fn place(packing: &Packing, worker: u32) -> (u64, u32, u32) {
    (packing.bytes[worker as usize], u32::MAX - packing.bags[worker as usize].len() as u32, !worker)
}

/// Replicas at least: one for whatever is read.
pub(crate) fn least(minimum: u32, count: u64) -> u32 {
    minimum.max(u32::from(count > 0))
}

/// In how many failure domains, or on how many hosts, these workers are.
pub(crate) fn apart(snapshot: &Snapshot<'_>, workers: &[u32], by: fn(&WorkerRoom) -> u32) -> usize {
    let mut parts: Vec<u32> = workers.iter().map(|worker| by(&snapshot.workers[*worker as usize])).collect();
    parts.sort_unstable();
    parts.dedup();
    parts.len()
}
