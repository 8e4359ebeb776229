//! How far waits move, and how far those at replicas of one shard are apart.

use std::collections::BTreeMap;

/// The wait at a replica at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    pub(super) shard: usize,
    pub(super) worker: usize,
    pub(super) secs: f64,
}

/// The standard deviation of each replica's wait from its own mean, taken together.
pub(super) fn swing<'a>(moments: impl Iterator<Item = &'a [Wait]>) -> f64 {
    let mut replicas: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    moments.flatten().for_each(|wait| replicas.entry((wait.shard, wait.worker)).or_default().push(wait.secs));
    let squares = replicas.values().flat_map(|waits| {
        let mean = mean(waits);
        waits.iter().map(move |wait| (wait - mean).powi(2))
    });
    mean(&squares.collect::<Vec<f64>>()).sqrt()
}

/// The mean difference between the wait at a replica and the mean of its shard's, over that mean, of shards with several replicas
/// one of which has a wait past `target`; none: there were no such.
pub(super) fn apart<'a>(moments: impl Iterator<Item = &'a [Wait]>, target: f64) -> Option<f64> {
    let all: Vec<f64> = moments.flat_map(|moment| of_moment(moment, target)).collect();
    (!all.is_empty()).then(|| mean(&all))
}

fn of_moment(moment: &[Wait], target: f64) -> Vec<f64> {
    let mut shards: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    moment.iter().for_each(|wait| shards.entry(wait.shard).or_default().push(wait.secs));
    let long = shards.into_values().filter(|waits| waits.len() > 1 && waits.iter().any(|wait| *wait > target));
    long.map(|waits| {
        let middle = mean(&waits);
        mean(&waits.iter().map(|wait| (wait - middle).abs()).collect::<Vec<f64>>()) / middle
    })
    .collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(secs: [f64; 3]) -> Vec<Wait> {
        let places = [(0, 0), (0, 1), (1, 0)];
        places.into_iter().zip(secs).map(|((shard, worker), secs)| Wait { shard, worker, secs }).collect()
    }

    #[test]
    fn swing_is_over_time_and_not_between_replicas() {
        let still = [moment([1.0, 5.0, 9.0]), moment([1.0, 5.0, 9.0])];
        assert_eq!(swing(still.iter().map(Vec::as_slice)), 0.0);
        let moving = [moment([1.0, 5.0, 9.0]), moment([3.0, 7.0, 11.0])];
        assert_eq!(swing(moving.iter().map(Vec::as_slice)), 1.0);
    }

    #[test]
    fn apart_is_between_replicas_of_one_shard_where_one_waits_long() {
        let of = |secs| apart([moment(secs)].iter().map(Vec::as_slice), 2.0);
        assert_eq!(of([3.0, 1.0, 100.0]), Some(0.5));
        assert_eq!(of([1.0, 1.5, 100.0]), None, "the other shard has one replica");
    }
}
