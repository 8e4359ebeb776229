//! Who takes over which part, so that the most bytes stay where they are.

use super::Saving;

/// No part, no worker.
const NONE: usize = usize::MAX;

/// By part: the worker that it goes to, so that the most bytes are saved in all. The shortest augmenting path method with
/// potentials (H. W. Kuhn 1955, R. Jonker and A. Volgenant 1987): O(n^3), and far less when most parts are wanted by a
/// worker that no one else wants.
pub(super) fn matching(n: usize, savings: &[Saving]) -> Vec<u32> {
    let mut saved = vec![0i64; n * n];
    for saving in savings {
        saved[saving.part as usize * n + saving.worker as usize] = i64::try_from(saving.bytes).unwrap_or(i64::MAX / 4);
    }
    // Costs are what isn't saved. Every worker's potential makes its cheapest part cost nothing.
    let mut worker_cost: Vec<i64> =
        (0..n).map(|worker| (0..n).map(|part| -saved[part * n + worker]).min().unwrap_or(0)).collect();
    let mut part_cost = vec![0i64; n];
    let mut part_of = vec![NONE; n];
    let mut worker_of = vec![NONE; n];
    // Where a part can stay at no cost it does; then any free pair at no cost.
    for part in 0..n {
        let free = |worker: usize| part_of[worker] == NONE && -saved[part * n + worker] == worker_cost[worker];
        if let Some(worker) = Some(part).filter(|worker| free(*worker)).or_else(|| (0..n).find(|worker| free(*worker))) {
            (part_of[worker], worker_of[part]) = (part, worker);
        }
    }
    let (mut distance, mut before, mut done) = (vec![0i64; n], vec![0usize; n], vec![false; n]);
    for start in (0..n).filter(|part| worker_of[*part] == NONE).collect::<Vec<_>>() {
        distance.fill(i64::MAX);
        done.fill(false);
        let (mut part, mut from, mut reached) = (start, NONE, 0);
        let end = loop {
            let row = &saved[part * n..(part + 1) * n];
            let (mut next, mut least) = (NONE, i64::MAX);
            for worker in (0..n).filter(|worker| !done[*worker]) {
                let length = reached - row[worker] - part_cost[part] - worker_cost[worker];
                if length < distance[worker] {
                    (distance[worker], before[worker]) = (length, from);
                }
                if distance[worker] < least || (distance[worker] == least && part_of[worker] == NONE && part_of[next] != NONE) {
                    (next, least) = (worker, distance[worker]);
                }
            }
            done[next] = true;
            (from, reached) = (next, least);
            if part_of[next] == NONE {
                break next;
            }
            part = part_of[next];
        };
        part_cost[start] += reached;
        for worker in (0..n).filter(|worker| done[*worker] && part_of[*worker] != NONE) {
            part_cost[part_of[worker]] += reached - distance[worker];
            worker_cost[worker] -= reached - distance[worker];
        }
        let mut worker = end;
        loop {
            let previous = before[worker];
            part_of[worker] = if previous == NONE { start } else { part_of[previous] };
            worker_of[part_of[worker]] = worker;
            if previous == NONE {
                break;
            }
            worker = previous;
        }
    }
    worker_of.into_iter().map(|worker| worker as u32).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::matching::greedy;

    fn total(savings: &[Saving], worker_of: &[u32]) -> u64 {
        let kept = savings.iter().filter(|saving| worker_of[saving.part as usize] == saving.worker);
        kept.map(|saving| saving.bytes).sum()
    }

    /// The most that any order saves.
    fn most(savings: &[Saving], worker_of: &mut Vec<u32>, from: usize) -> u64 {
        if from == worker_of.len() {
            return total(savings, worker_of);
        }
        let mut best = 0;
        for to in from..worker_of.len() {
            worker_of.swap(from, to);
            best = best.max(most(savings, worker_of, from + 1));
            worker_of.swap(from, to);
        }
        best
    }

    proptest! {
        #[test]
        fn no_other_matching_moves_less(n in 1usize..7, cells in prop::collection::vec((0u32..6, 0u32..6, 1u64..20), 0..25)) {
            let mut cells: Vec<Saving> = cells.into_iter().map(|(part, worker, bytes)| Saving { part, worker, bytes }).collect();
            cells.retain(|cell| (cell.part as usize) < n && (cell.worker as usize) < n);
            cells.sort_by_key(|cell| (cell.part, cell.worker));
            cells.dedup_by_key(|cell| (cell.part, cell.worker));
            let best = most(&cells, &mut (0..n as u32).collect(), 0);
            let exact = matching(n, &cells);
            let greedy = greedy::matching(n, &cells);
            for matched in [&exact, &greedy] {
                let mut workers = matched.clone();
                workers.sort_unstable();
                prop_assert_eq!(workers, (0..n as u32).collect::<Vec<_>>(), "everyone gets one part");
            }
            prop_assert_eq!(total(&cells, &exact), best);
            prop_assert!(total(&cells, &greedy) * 2 >= best, "greedy saves half at least");
            prop_assert!(total(&cells, &greedy) >= total(&cells, &(0..n as u32).collect::<Vec<_>>()), "and never less than no exchange");
        }
    }
}
