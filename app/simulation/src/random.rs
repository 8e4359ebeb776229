//! All chance of a run, from one seed, in streams that do not disturb each other.

use forebay_types::split_mix;

/// Seeded numbers: xoshiro256++ (D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", 2021),
/// kept here so that a seed gives the same run with every version of every dependency.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The `stream`-th sequence of `seed`; streams don't influence each other, so that two policies see one workload.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut mix = seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        Self { state: std::array::from_fn(|_| split_mix(&mut mix)) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// From 0 to just below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// From 0 to `n` - 1. The bias is below n / 2^64.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// The time to the next event of a Poisson process, in the unit of `mean`.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}
