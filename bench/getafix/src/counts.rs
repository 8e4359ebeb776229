//! Workloads for the planner, drawn from a seed: how often each segment is read in a window.

/// How a workload's accesses fall on segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Every segment is as likely as the others.
    Uniform,
    /// The k-th is as likely as 1/k^theta.
    Zipf(f64),
    /// A tenth of the segments gets half of the accesses.
    Bimodal,
}

impl Shape {
    /// The shapes of the random instances.
    pub const ALL: [Self; 5] = [Self::Uniform, Self::Zipf(0.8), Self::Zipf(1.0), Self::Zipf(1.2), Self::Bimodal];

    /// Its name in figures.
    pub fn name(self) -> String {
        match self {
            Self::Uniform => "uniform".into(),
            Self::Zipf(theta) => format!("zipf {theta}"),
            Self::Bimodal => "bimodal".into(),
        }
    }
}

/// Random numbers from a seed: SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        forebay_types::split_mix(&mut self.0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low + 1)
    }

    /// A number from 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// How often each of `segments` is read in a window with about `accesses` accesses: Poisson around each one's part.
pub fn counts(shape: Shape, segments: usize, accesses: usize, dice: &mut Dice) -> Vec<u64> {
    let weight = |at: usize| match shape {
        Shape::Uniform => 1.0,
        Shape::Zipf(theta) => 1.0 / ((at + 1) as f64).powf(theta),
        Shape::Bimodal if at < segments.div_ceil(10) => 9.0,
        Shape::Bimodal => 1.0,
    };
    let sum: f64 = (0..segments).map(weight).sum();
    (0..segments).map(|at| poisson(accesses as f64 * weight(at) / sum, dice)).collect()
}

/// How many of many independent, rare things happen when `mean` do on average.
fn poisson(mean: f64, dice: &mut Dice) -> u64 {
    if mean > 50.0 {
        // Close to a normal distribution; that one by the sum of twelve.
        let normal: f64 = (0..12).map(|_| dice.share()).sum::<f64>() - 6.0;
        return (mean + mean.sqrt() * normal).round().max(0.0) as u64;
    }
    let (mut left, mut happened) = (dice.share(), 0);
    let mut chance = (-mean).exp();
    while left > chance && chance > 0.0 {
        left -= chance;
        happened += 1;
        chance *= mean / happened as f64;
    }
    happened
}
