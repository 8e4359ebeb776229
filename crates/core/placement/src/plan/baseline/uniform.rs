//! The same number of replicas of everything.

use super::{Ladder, share_equally};
use crate::Snapshot;
use crate::plan::dice::Dice;
use crate::plan::packing::Packing;

/// The same number of replicas of every segment, each on the worker with the fewest of those that don't have it, ties at
/// random. What is held stays, up to that number.
pub(crate) fn uniform(snapshot: &Snapshot<'_>, packing: &mut Packing, replicas: f64, seed: u64) {
    let mut dice = Dice::new(seed);
    let workers = snapshot.workers.len();
    let mut wanted: Vec<u32> = (0..)
        .zip(snapshot.segments)
        .filter(|(_, demand)| demand.count > 0 || demand.minimum > 0)
        .map(|(segment, _)| segment)
        .collect();
    dice.shuffle(&mut wanted);
    let further = (replicas.fract() * wanted.len() as f64).round() as usize;
    let mut ladder = Ladder::new((0..workers).map(|_| dice.next()).collect());
    let mut holders: Vec<Vec<u32>> = vec![Vec::new(); snapshot.segments.len()];
    let goals: Vec<usize> = (0..wanted.len()).map(|at| (replicas as usize + usize::from(at < further)).min(workers)).collect();
    for (segment, goal) in wanted.iter().zip(&goals) {
        let bytes = snapshot.segments[*segment as usize].bytes;
        for worker in snapshot.held.of(*segment).iter().copied().filter(|worker| (*worker as usize) < workers).take(*goal) {
            if packing.bytes[worker as usize] >= bytes {
                packing.bytes[worker as usize] -= bytes;
                ladder.add(worker, 1);
                holders[*segment as usize].push(worker);
            }
        }
    }
    for (segment, goal) in wanted.iter().zip(&goals) {
        let bytes = snapshot.segments[*segment as usize].bytes;
        let mine = &mut holders[*segment as usize];
        while mine.len() < *goal {
            let fit = |worker: u32| !mine.contains(&worker) && packing.bytes[worker as usize] >= bytes;
            let Some(worker) = ladder.least(fit) else { break };
            packing.bytes[worker as usize] -= bytes;
            ladder.add(worker, 1);
            mine.push(worker);
        }
    }
    share_equally(snapshot, packing, &holders);
}
