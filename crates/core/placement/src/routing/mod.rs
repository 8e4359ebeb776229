//! Which worker a read of a segment goes to: the rank that all agree on without talking (`rank`), the table's parts in proportion to the
//! plan (`shares`), the choice among the replicas that the table names (`pick`) by what their `queues` are known to be, when another
//! one is asked beside (`second`), whom a worker asks for what it misses (`asking`), and which of several workers fetches what all of them miss
//! (`on_the_way`).

mod asking;
mod on_the_way;
mod pick;
mod queues;
mod second;
mod shares;

use std::cmp::Reverse;

use forebay_types::{RouteKey, WorkerId};
use xxhash_rust::xxh3::xxh3_64;

pub use asking::{Asking, by_part};
pub use on_the_way::{ForOther, Meeting, OnTheWay, asks_again, left_to_the_end};
pub use pick::{Candidate, Pick, pick, two_choices};
pub use queues::QueueView;
pub use second::{Allowance, Usual};
pub use shares::largest_remainder;
pub(crate) use shares::percentages;

/// All of `workers`, the best holder of `route` first; whoever can't reach the first goes on to the next.
///
/// The order does not depend on that of `workers`, and taking a worker out or putting one in leaves the order of the
/// others as it was. O(n log n).
///
/// ```
/// use forebay_placement::{holder, rank};
/// use forebay_types::{RouteKey, WorkerId};
///
/// let workers = [WorkerId(1), WorkerId(2), WorkerId(3)];
/// let order = rank(RouteKey(7), &workers);
/// assert_eq!(order.len(), 3);
/// assert_eq!(holder(RouteKey(7), &workers), Some(order[0]));
/// ```
pub fn rank(route: RouteKey, workers: &[WorkerId]) -> Vec<WorkerId> {
    let mut order = workers.to_vec();
    order.sort_by_cached_key(|worker| Reverse(standing(route, *worker)));
    order
}

/// The first of [`rank`], without allocating; none without workers. O(n).
pub fn holder(route: RouteKey, workers: &[WorkerId]) -> Option<WorkerId> {
    workers.iter().copied().max_by_key(|worker| standing(route, *worker))
}

/// What decides between two workers; the id only when the scores are equal, so that the order is always total.
fn standing(route: RouteKey, worker: WorkerId) -> (u64, WorkerId) {
    let mut pair = [0; 16];
    pair[..8].copy_from_slice(&route.0.to_le_bytes());
    pair[8..].copy_from_slice(&worker.0.to_le_bytes());
    (xxh3_64(&pair), worker)
}
