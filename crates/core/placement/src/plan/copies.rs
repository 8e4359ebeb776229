//! The copies that safety asks for.

use std::collections::BTreeSet;

use crate::plan::packing::{Packing, Piece};
use crate::{SegmentDemand, Snapshot};

/// Adds the copies that miss to a segment's minimum, each in a failure domain that the segment isn't in yet: workers that
/// hold it first, then those with the most room for bytes. They serve nothing by plan, so they need no capacity; what
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
    for segment in wanting {
        let demand = &snapshot.segments[segment as usize];
        let mine = &mut homes[segment as usize];
        while domains(snapshot, mine) < least(demand.minimum, demand.count) as usize {
            let fits = |worker: u32| {
                let domain = snapshot.workers[worker as usize].domain;
                packing.bytes[worker as usize] >= demand.bytes
                    && mine.iter().all(|other| snapshot.workers[*other as usize].domain != domain)
            };
            let mut held = snapshot.held.of(segment).iter().copied().filter(|worker| (*worker as usize) < packing.bags.len());
            let held = held.find(|worker| fits(*worker));
            let Some(worker) = held.or_else(|| roomy.iter().rev().map(|(_, _, flipped)| !flipped).find(|worker| fits(*worker)))
            else {
                break;
            };
            roomy.remove(&place(packing, worker));
            packing.put(worker, Piece { segment, count: 0 }, demand.bytes);
            roomy.insert(place(packing, worker));
            mine.push(worker);
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

/// In how many failure domains these workers are.
pub(crate) fn domains(snapshot: &Snapshot<'_>, workers: &[u32]) -> usize {
    let mut domains: Vec<u32> = workers.iter().map(|worker| snapshot.workers[*worker as usize].domain).collect();
    domains.sort_unstable();
    domains.dedup();
    domains.len()
}
