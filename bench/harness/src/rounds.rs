//! Two ways that are measured in turns.

use crate::median;

/// Student's t at 97.5 % by degrees of freedom, from one on; 1.96 beyond.
const T: [f64; 20] = [
    12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101,
    2.093, 2.086,
];

/// What each round gave, ours and the other's.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    ours: Vec<f64>,
    other: Vec<f64>,
}

impl Rounds {
    /// One round of both.
    pub fn push(&mut self, ours: f64, other: f64) {
        self.ours.push(ours);
        self.other.push(other);
    }

    /// The medians of both.
    pub fn medians(&self) -> (f64, f64) {
        (median(self.ours.clone()), median(self.other.clone()))
    }

    /// The ratio of a round, geometric mean, and the ends of its 95 % interval (Student's t over the logarithms of the rounds'
    /// ratios, which pairs them).
    pub fn ratio(&self) -> (f64, f64, f64) {
        let logs: Vec<f64> = self.ours.iter().zip(&self.other).map(|(ours, other)| (ours / other).ln()).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        if logs.len() < 2 {
            return (mean.exp(), 0.0, f64::INFINITY);
        }
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let t = T.get(logs.len() - 2).copied().unwrap_or(1.96);
        let half = t * (variance / count).sqrt();
        (mean.exp(), (mean - half).exp(), (mean + half).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_agree_have_a_narrow_interval() {
        let mut rounds = Rounds::default();
        // A machine that is twice as slow in every other round takes nothing from what is paired.
        for slow in [1.0, 2.0, 1.0, 2.0, 1.0] {
            rounds.push(11.0 * slow, 10.0 * slow);
        }
        let (ratio, low, high) = rounds.ratio();
        assert!((ratio - 1.1).abs() < 1e-9 && high - low < 1e-6, "{ratio} {low} {high}");
        assert_eq!(rounds.medians(), (11.0, 10.0));
    }

    #[test]
    fn the_interval_is_student_s() {
        let mut rounds = Rounds::default();
        for log in [0.0_f64, 0.1, 0.2] {
            rounds.push(log.exp(), 1.0);
        }
        // Standard error 0.1 / sqrt 3, t of two degrees of freedom 4.303.
        let (ratio, low, high) = rounds.ratio();
        let half = 4.303 * 0.1 / 3.0_f64.sqrt();
        assert!((ratio.ln() - 0.1).abs() < 1e-9);
        assert!((high.ln() - 0.1 - half).abs() < 1e-9 && (0.1 - low.ln() - half).abs() < 1e-9);
    }
}
