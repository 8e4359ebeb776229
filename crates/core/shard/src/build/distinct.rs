//! About how many different values an attribute has, in a kilobyte: for what indexes will take, and which values get numbers.

use xxhash_rust::xxh3::xxh3_64;

/// Registers of the estimate: an error of about 3 %.
const REGISTERS: usize = 1024;

/// How many distinct values there were, about (HyperLogLog, with linear counting for few).
pub(crate) struct Distinct {
    registers: Box<[u8; REGISTERS]>,
}

impl Distinct {
    pub(crate) fn new() -> Self {
        Self { registers: Box::new([0; REGISTERS]) }
    }

    #[inline]
    pub(crate) fn add(&mut self, value: &[u8]) {
        let hash = xxh3_64(value);
        let register = &mut self.registers[hash as usize % REGISTERS];
        *register = (*register).max((hash >> 10 | 1 << 54).trailing_zeros() as u8 + 1);
    }

    pub(crate) fn estimate(&self) -> u64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|rank| 2f64.powi(-i32::from(*rank))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.registers.iter().filter(|rank| **rank == 0).count() as f64;
        if raw < 2.5 * count && empty > 0.0 { (count * (count / empty).ln()) as u64 } else { raw as u64 }
    }
}
