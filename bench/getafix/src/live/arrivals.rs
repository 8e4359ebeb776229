//! What clusters that plan otherwise are compared by: so many workers and objects, and reads that come when they come.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

pub(super) const WORKERS: usize = 8;
/// Bytes a second that each sends: little of what two cores can do.
pub(super) const SENDS: u64 = 10_000_000;
/// Share of what they send together that is asked for.
const LOAD: f64 = 0.7;
pub(super) const OBJECTS: usize = 100;
pub(super) const OBJECT_BYTES: usize = 1 << 20;
pub(super) const READ_BYTES: u64 = 256 << 10;
/// Users have a minute.
pub(super) const WINDOW: Duration = Duration::from_secs(4);
/// Windows before reads count, and of all.
pub(super) const WINDOWS_SETTLED: u32 = 3;
pub(super) const WINDOWS: u32 = 6;

/// A read: when it comes, of the object of which rank, from where on.
pub(super) struct Arrival {
    pub(super) at: Duration,
    pub(super) rank: usize,
    pub(super) start: u64,
}

/// As they come at random, so many a second on average, until all windows are over.
pub(super) fn arrivals(seed: u64) -> Vec<Arrival> {
    let a_second = LOAD * SENDS as f64 * WORKERS as f64 / READ_BYTES as f64;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut sum = 0.0;
    let steps: Vec<f64> = (1..=OBJECTS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let (mut at, mut all) = (0.0, Vec::new());
    loop {
        at -= (1.0 - random.random::<f64>()).ln() / a_second;
        if at >= (WINDOW * WINDOWS).as_secs_f64() {
            return all;
        }
        let drawn = random.random::<f64>() * sum;
        let rank = steps.partition_point(|step| *step < drawn).min(OBJECTS - 1);
        let start = random.random_range(0..=OBJECT_BYTES as u64 - READ_BYTES);
        all.push(Arrival { at: Duration::from_secs_f64(at), rank, start });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_the_same_for_all_and_ask_for_their_share() {
        let all = arrivals(7);
        let again = arrivals(7);
        assert!(all.iter().zip(&again).all(|(one, other)| (one.at, one.rank, one.start) == (other.at, other.rank, other.start)));
        assert!(all.len() == again.len() && all.is_sorted_by_key(|arrival| arrival.at));
        let asked = all.len() as f64 * READ_BYTES as f64 / (WINDOW * WINDOWS).as_secs_f64();
        let share = asked / (SENDS as f64 * WORKERS as f64);
        assert!((share / LOAD - 1.0).abs() < 0.1, "{share}");
        let first = all.iter().filter(|arrival| arrival.rank == 0).count() as f64 / all.len() as f64;
        assert!((first / 0.193 - 1.0).abs() < 0.2, "a hundred by Zipf of 1: {first}");
    }
}
