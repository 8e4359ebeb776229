//! Maps by containers: one is asked of two or three times a call.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::DirId;

/// What is known of containers that are here.
pub(crate) type ByDir<V> = HashMap<DirId, V, BuildHasherDefault<DirHasher>>;

/// Odd, its bits by chance: numbers that follow one another are spread over all of a map, and their first bits differ.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Two multiplications in the place of a hash that nobody can foresee: workers give the numbers of their containers, one after the other, so that who
/// asks can't choose such as meet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DirHasher(u64);

impl Hasher for DirHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(32) ^ number).wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn containers_that_were_made_one_after_the_other_are_spread_over_a_map() {
        let state = BuildHasherDefault::<DirHasher>::default();
        for (worker, first) in [(1, 1), (1, u64::MAX >> 3), (7, 0x0123_4567_89ab_cdef), (1 << 40, 1 << 61)] {
            let hashes: Vec<u64> = (0..4096).map(|more| state.hash_one(DirId { worker, number: first + more })).collect();
            let count = |part: &dyn Fn(u64) -> u64| hashes.iter().map(|hash| part(*hash)).collect::<HashSet<_>>().len();
            // A map looks at the last bits first, and then at the first seven.
            assert_eq!(count(&|hash| hash & 4095), 4096, "each has a place of its own");
            assert_eq!(count(&|hash| hash >> 57), 128, "and they differ at a glance");
        }
    }

    #[test]
    fn workers_have_containers_of_equal_numbers() {
        let state = BuildHasherDefault::<DirHasher>::default();
        let hashes: HashSet<u64> = (0..4096).map(|worker| state.hash_one(DirId { worker, number: 5 })).collect();
        assert_eq!(hashes.len(), 4096);
    }
}
