//! Which fault a minute has.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::cluster::WORKERS;
use crate::faults::Fault;

/// Faults that end no process but the first worker and the one that joins: what the others have is seen to grow over all that follows.
const GENTLE: [Fault; 21] = [
    Fault::WorkerStopped,
    Fault::WorkerKilled,
    Fault::CoordinatorStopped,
    Fault::StoreSlow,
    Fault::StoreRefuses,
    Fault::StoreAnswersLost,
    Fault::StoreBodiesCut,
    Fault::DiskFull,
    Fault::Partition,
    Fault::PartitionOneWay,
    Fault::LinkSlow,
    Fault::Drained,
    Fault::ScaleIn,
    Fault::ScaleOut,
    Fault::ShardsWorkerKilled,
    Fault::ShardsWorkerStopped,
    Fault::ShardsStoreRefuses,
    Fault::ShardsResharded,
    Fault::ShardsReshardedWorkerKilled,
    Fault::ShardsMergedWorkerKilled,
    Fault::ShardsTwoDisksStoreSlow,
];
/// Faults that end the coordinator or the gateway: of the first third alone.
const HARSH: [Fault; 3] = [Fault::CoordinatorKilled, Fault::GatewayKilled, Fault::ShardsCoordinatorKilled];

/// A fault for each round. All of those that can be called come once before one comes again.
pub(super) fn draw(seed: u64, rounds: usize, can: impl Fn(Fault) -> bool) -> Vec<Fault> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut left: Vec<Fault> = Vec::new();
    let mut drawn = Vec::new();
    for round in 0..rounds {
        let is_harsh = round < rounds / 3;
        left.retain(|fault| is_harsh || !HARSH.contains(fault));
        if left.is_empty() {
            left.extend(GENTLE.into_iter().chain(HARSH.into_iter().filter(|_| is_harsh)).filter(|fault| can(*fault)));
        }
        drawn.push(left.swap_remove(chance.random_range(0..left.len())));
    }
    drawn
}

/// What the load and the victim of a round follow from. Where a worker ends it is the first one.
pub(super) fn seed_of(fault: Fault, seed: u64, round: u32) -> u64 {
    let seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::from(round));
    match fault.harm() {
        Fault::WorkerKilled | Fault::ScaleIn => seed - seed % WORKERS as u64,
        _ => seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_has_the_same_faults_and_each_comes_before_one_comes_again() {
        let drawn = draw(7, 120, |_| true);
        assert_eq!((drawn.len(), &drawn), (120, &draw(7, 120, |_| true)));
        assert_ne!(drawn, draw(8, 120, |_| true));
        let all = GENTLE.len() + HARSH.len();
        assert!(GENTLE.iter().chain(&HARSH).all(|fault| drawn[..all].contains(fault)), "{:?}", &drawn[..all]);
    }

    #[test]
    fn nothing_ends_the_coordinator_or_the_gateway_in_the_last_two_thirds() {
        let drawn = draw(7, 120, |_| true);
        assert!(drawn[40..].iter().all(|fault| !HARSH.contains(fault)), "{drawn:?}");
        assert!(draw(7, 120, |fault| fault != Fault::DiskFull).iter().all(|fault| *fault != Fault::DiskFull));
    }

    #[test]
    fn it_is_the_first_worker_that_ends() {
        for round in 0..20 {
            for fault in [Fault::WorkerKilled, Fault::ScaleIn, Fault::ShardsReshardedWorkerKilled] {
                assert_eq!(seed_of(fault, 5, round) % WORKERS as u64, 0);
            }
        }
        assert!((0..20).any(|round| !seed_of(Fault::WorkerStopped, 5, round).is_multiple_of(WORKERS as u64)));
    }
}
