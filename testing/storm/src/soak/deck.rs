//! Which cell of the table a minute has.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::cells::Cell;
use crate::cluster::WORKERS;
use crate::faults::Fault;

/// Cells that end no process but the first worker and the one that joins: what the others have is seen to grow over all that follows.
const GENTLE: [&str; 21] = [
    "worker-stopped",
    "worker-killed",
    "coordinator-stopped",
    "store-slow",
    "store-503",
    "store-answers-lost",
    "store-bodies-cut",
    "disk-full",
    "partition",
    "partition-one-way",
    "link-slow",
    "drain",
    "scale-in",
    "scale-out",
    "shards-worker-killed",
    "shards-worker-stopped",
    "shards-store-503",
    "shards-reshard",
    "shards-reshard-worker-killed",
    "shards-merge-worker-killed",
    "shards-two-disks-store-slow",
];
/// Cells that end the coordinator or the gateway: of the first third alone.
const HARSH: [&str; 3] = ["coordinator-killed", "gateway-killed", "shards-coordinator-killed"];

/// A cell for each round. All of those that can be tried come once before one comes again.
pub(super) fn draw(seed: u64, rounds: usize, can: impl Fn(Cell) -> bool) -> Vec<Cell> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut left: Vec<Cell> = Vec::new();
    let mut drawn = Vec::new();
    for round in 0..rounds {
        let is_harsh = round < rounds / 3;
        left.retain(|cell| is_harsh || !HARSH.contains(&cell.name));
        if left.is_empty() {
            let names = GENTLE.into_iter().chain(HARSH.into_iter().filter(|_| is_harsh));
            left.extend(names.map(|name| Cell::named(name).expect("a cell of the table")).filter(|cell| can(*cell)));
        }
        drawn.push(left.swap_remove(chance.random_range(0..left.len())));
    }
    drawn
}

/// What the load and the victim of a round follow from. Where a worker ends it is the first one.
pub(super) fn seed_of(cell: Cell, seed: u64, round: u32) -> u64 {
    let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(round));
    if cell.has(Fault::WorkerKilled) || cell.has(Fault::ScaleIn) { seed - seed % WORKERS as u64 } else { seed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_has_the_same_cells_and_each_comes_before_one_comes_again() {
        let drawn = draw(7, 120, |_| true);
        assert_eq!((drawn.len(), &drawn), (120, &draw(7, 120, |_| true)));
        assert_ne!(drawn, draw(8, 120, |_| true));
        let all = GENTLE.len() + HARSH.len();
        assert!(
            GENTLE.iter().chain(&HARSH).all(|name| drawn[..all].iter().any(|cell| cell.name == *name)),
            "{:?}",
            &drawn[..all]
        );
    }

    #[test]
    fn nothing_ends_the_coordinator_or_the_gateway_in_the_last_two_thirds() {
        let drawn = draw(7, 120, |_| true);
        assert!(drawn[40..].iter().all(|cell| !HARSH.contains(&cell.name)), "{drawn:?}");
        assert!(draw(7, 120, |cell| !cell.has(Fault::DiskFull)).iter().all(|cell| !cell.has(Fault::DiskFull)));
    }

    /// Of what a soak's cluster has.
    #[test]
    fn no_cell_wants_more_than_a_small_disk() {
        for name in GENTLE.iter().chain(&HARSH) {
            let wanted = Cell::named(name).unwrap().wants();
            assert!(![wanted.postgres, wanted.standby, wanted.pair, wanted.failing_disk].contains(&true), "{name}");
            assert!(![wanted.sql, wanted.hanging, wanted.clocks].contains(&true), "{name}");
        }
    }

    #[test]
    fn it_is_the_first_worker_that_ends() {
        for round in 0..20 {
            for name in ["worker-killed", "scale-in", "shards-reshard-worker-killed"] {
                assert_eq!(seed_of(Cell::named(name).unwrap(), 5, round) % WORKERS as u64, 0);
            }
        }
        let stopped = Cell::named("worker-stopped").unwrap();
        assert!((0..20).any(|round| !seed_of(stopped, 5, round).is_multiple_of(WORKERS as u64)));
    }
}
