//! Which replicas should move, since what is read together lies together.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::plan::neighbours::{NEXT, Neighbours};
use crate::plan::packing::Packing;
use crate::{Holdings, Snapshot};

/// How much less of what is read together with a segment of average count must lie elsewhere for it to be worth a move,
/// in next neighbours; for one that is twice as popular half of it is enough.
const WORTH_A_MOVE: f64 = 0.3;
/// Nothing moves for less.
const WORTH_A_MOVE_MIN: f64 = 0.15;
/// In larger clusters everything stays where it is.
const SEGMENTS_MAX: usize = 200_000;
/// Workers that are looked at for a better place: more than a segment has neighbours within reach.
const LOOKED_AT: usize = 256;
/// One segment in so many may move in a run.
const MOVES_PART: usize = 16;

/// What is held without those replicas that should rather be elsewhere: popular segments on a worker that also has what
/// the same queries read, while another has less of that. The default plan keeps everything else where it is.
///
/// Without this a placement stays as crowded as it was found: in simulation the median with two replicas was a tenth
/// longer. O(m (log m + r)) for r neighbours within reach, and as many workers as that at most.
///
/// None when everything may stay, and in clusters of so many segments that the time is better spent otherwise.
pub(crate) fn without_crowded(snapshot: &Snapshot<'_>, capacity: &[u64]) -> Option<Holdings> {
    let held = snapshot.held;
    if held.is_empty() || snapshot.segments.len() > SEGMENTS_MAX {
        return None;
    }
    let workers = snapshot.workers.len();
    let total: u64 = snapshot.segments.iter().map(|demand| demand.count).sum();
    let average = total as f64 / snapshot.segments.len().max(1) as f64;
    let mut order: Vec<u32> = (0..snapshot.segments.len() as u32)
        .filter(|segment| !held.of(*segment).is_empty() && count(snapshot, *segment) > 0)
        .collect();
    order.sort_unstable_by_key(|segment| (Reverse(count(snapshot, *segment)), *segment));
    let mut neighbours = Neighbours::of(snapshot);
    // Where what moves will probably be, and what everyone has to do then.
    let mut moved: HashMap<u32, (u32, Vec<u32>)> = HashMap::new();
    let mut loads = loads(snapshot);
    let most = snapshot.segments.len() / MOVES_PART + 1;
    for segment in order {
        if moved.len() >= most {
            break;
        }
        let scores = neighbours.scores(segment, |other| moved.get(&other).map_or(snapshot.holders(other), |(_, then)| then));
        let worth = (WORTH_A_MOVE * average / count(snapshot, segment) as f64).max(WORTH_A_MOVE_MIN) * f64::from(NEXT);
        let mine = snapshot.holders(segment);
        let Some(worst) = mine.iter().copied().max_by_key(|worker| (scores[*worker as usize], *worker)) else { continue };
        if f64::from(scores[worst as usize]) < worth {
            continue;
        }
        let part = count(snapshot, segment) / mine.len() as u64;
        let fits = |worker: &u32| !mine.contains(worker) && loads[*worker as usize] + part <= capacity[*worker as usize];
        // Most workers of a large cluster have none of the neighbours, so one of the first that fit does.
        let others = (0..workers as u32).filter(fits).take(LOOKED_AT);
        let Some(best) = others.min_by_key(|worker| (scores[*worker as usize], loads[*worker as usize], *worker)) else {
            continue;
        };
        if f64::from(scores[worst as usize]) - f64::from(scores[best as usize]) >= worth {
            let then = mine.iter().map(|worker| if *worker == worst { best } else { *worker }).collect();
            loads[worst as usize] = loads[worst as usize].saturating_sub(part);
            loads[best as usize] += part;
            moved.insert(segment, (worst, then));
        }
    }
    let stays = |(segment, worker): &(u32, u32)| moved.get(segment).is_none_or(|(from, _)| from != worker);
    (!moved.is_empty()).then(|| Holdings::from_pairs(snapshot.segments.len(), held.pairs().filter(stays)))
}

/// How much of what is read together a packing has on one worker, weighted by what is asked for.
pub(crate) fn crowding(snapshot: &Snapshot<'_>, packing: &Packing) -> u128 {
    let mut homes: Vec<Vec<u32>> = vec![Vec::new(); snapshot.segments.len()];
    for (worker, bag) in (0..).zip(&packing.bags) {
        bag.iter().for_each(|piece| homes[piece.segment as usize].push(worker));
    }
    let mut neighbours = Neighbours::of(snapshot);
    let mut sum = 0;
    for (worker, piece) in packing.bags.iter().enumerate().flat_map(|(worker, bag)| bag.iter().map(move |piece| (worker, piece)))
    {
        let scores = neighbours.scores(piece.segment, |other| &homes[other as usize]);
        sum += u128::from(scores[worker]) * u128::from(piece.count);
    }
    sum
}

/// What each worker has to do when holders share what is asked of a segment evenly.
fn loads(snapshot: &Snapshot<'_>) -> Vec<u64> {
    let mut loads = vec![0; snapshot.workers.len()];
    for segment in 0..snapshot.segments.len() as u32 {
        let mine = snapshot.holders(segment);
        mine.iter().for_each(|worker| loads[*worker as usize] += count(snapshot, segment) / mine.len() as u64);
    }
    loads
}

fn count(snapshot: &Snapshot<'_>, segment: u32) -> u64 {
    snapshot.segments[segment as usize].count
}
