//! Gets and searches drawn from the records by a skew and a seed: all systems get the same ones.

use rand::{Rng, SeedableRng};

use super::zipf::Zipf;
use super::{Records, SELECTIVE};

/// How operations spread over records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skew {
    /// Every record as often as any other.
    Uniform,
    /// Zipf's law with exponent 0.99 over records in a scattered order.
    Zipf,
}

impl Skew {
    /// Its name in figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf 0.99",
        }
    }
}

/// The record of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Get {
    pub(crate) key: u64,
}

/// All records with a value.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) attribute: usize,
    pub(crate) value: Vec<u8>,
}

/// Rows that a skew draws.
pub(crate) struct Rows {
    zipf: Option<Zipf>,
    rows: usize,
}

impl Rows {
    pub(crate) fn new(skew: Skew, rows: usize) -> Self {
        Self { zipf: (skew == Skew::Zipf).then(|| Zipf::new(rows, 0.99)), rows }
    }

    pub(crate) fn draw(&self, random: &mut impl Rng) -> usize {
        match &self.zipf {
            None => random.random_range(0..self.rows),
            // Popular records lie anywhere: the rank is scattered by a hash, as in YCSB.
            Some(zipf) => {
                let rank = zipf.draw(random) as u64;
                (xxhash_rust::xxh3::xxh3_64(&rank.to_le_bytes()) % self.rows as u64) as usize
            }
        }
    }
}

pub(crate) fn gets(records: &Records, skew: Skew, count: usize, seed: u64) -> Vec<Get> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let rows = Rows::new(skew, records.len());
    (0..count).map(|_| Get { key: records.keys[rows.draw(&mut random)] }).collect()
}

/// `count` searches: a selective attribute at random, and the value of a drawn record.
pub(crate) fn searches(records: &Records, skew: Skew, count: usize, seed: u64) -> Vec<Search> {
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let rows = Rows::new(skew, records.len());
    let mut draw = || {
        let attribute = SELECTIVE[random.random_range(0..SELECTIVE.len())];
        Search { attribute, value: records.value(rows.draw(&mut random), attribute).to_vec() }
    };
    (0..count).map(|_| draw()).collect()
}
