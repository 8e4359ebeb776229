//! Who takes over which part, where there are too many for the exact answer.

use super::Saving;

/// No worker, no part.
const NONE: u32 = u32::MAX;
/// Rounds over all savings in which two parts are exchanged.
const ROUNDS: usize = 4;

/// By part: the worker that it goes to. The largest savings first, or as it is where that saves more, and then exchanges
/// of two as long as they save. `savings` are by part and worker. O(s log s) a round.
pub(super) fn matching(n: usize, savings: &[Saving]) -> Vec<u32> {
    let greedy = by_size(n, savings);
    let as_it_is: Vec<u32> = (0..n as u32).collect();
    let total = |worker_of: &[u32]| (0..).zip(worker_of).map(|(part, worker)| saved(savings, part, *worker)).sum::<u64>();
    let mut worker_of = if total(&greedy) > total(&as_it_is) { greedy } else { as_it_is };
    let mut part_of = vec![NONE; n];
    for (part, worker) in (0..).zip(&worker_of) {
        part_of[*worker as usize] = part;
    }
    for _ in 0..ROUNDS {
        let mut better = false;
        for saving in savings {
            let (mine, theirs) = (worker_of[saving.part as usize], saving.worker);
            let other = part_of[theirs as usize];
            let now = saved(savings, saving.part, mine) + saved(savings, other, theirs);
            if mine != theirs && saving.bytes + saved(savings, other, mine) > now {
                (worker_of[saving.part as usize], worker_of[other as usize]) = (theirs, mine);
                (part_of[theirs as usize], part_of[mine as usize]) = (saving.part, other);
                better = true;
            }
        }
        if !better {
            break;
        }
    }
    worker_of
}

fn by_size(n: usize, savings: &[Saving]) -> Vec<u32> {
    let mut order: Vec<&Saving> = savings.iter().collect();
    order.sort_by_key(|saving| (std::cmp::Reverse(saving.bytes), saving.part, saving.worker));
    let (mut worker_of, mut free) = (vec![NONE; n], vec![true; n]);
    for saving in order {
        let worker = &mut worker_of[saving.part as usize];
        if *worker == NONE && free[saving.worker as usize] {
            *worker = saving.worker;
            free[saving.worker as usize] = false;
        }
    }
    let mut rest = (0..n as u32).filter(|worker| free[*worker as usize]);
    for worker in worker_of.iter_mut().filter(|worker| **worker == NONE) {
        *worker = rest.next().expect("there are as many workers as parts");
    }
    worker_of
}

fn saved(savings: &[Saving], part: u32, worker: u32) -> u64 {
    let at = savings.binary_search_by_key(&(part, worker), |saving| (saving.part, saving.worker));
    at.map_or(0, |at| savings[at].bytes)
}
