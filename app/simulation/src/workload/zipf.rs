//! Draws by Zipf's law from a table of summed probabilities, for all workloads that are skewed.

use crate::random::Random;

/// Ranks 0 to n-1, the i-th with a probability in proportion to 1 / (i+1)^theta.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    /// Sums of the probabilities up to each rank; the last is 1.
    sums: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(n: usize, theta: f64) -> Self {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=n)
            .map(|rank| {
                sum += (rank as f64).powf(-theta);
                sum
            })
            .collect();
        sums.iter_mut().for_each(|s| *s /= sum);
        Self { sums }
    }

    pub(crate) fn sample(&self, random: &mut Random) -> usize {
        let u = random.unit();
        self.sums.partition_point(|sum| *sum <= u).min(self.sums.len() - 1)
    }

    pub(crate) fn probability(&self, rank: usize) -> f64 {
        self.sums[rank] - if rank == 0 { 0.0 } else { self.sums[rank - 1] }
    }
}
