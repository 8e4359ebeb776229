//! Whether an answer is compressed on its way to another host.

use crate::learned::{doubt, learn, learn_rate};

/// Smaller answers go as they are: what a message costs by itself is more than there is to save.
const SMALL_BYTES: u64 = 64 << 10;
/// Seconds that must be saved for each that is spent: what is not sure to win is not done.
const MARGIN: f64 = 1.2;
/// Time that unpacking takes for each second of packing, at most; LZ4 unpacks several times as fast as it packs.
const UNPACKING: f64 = 0.5;
/// Weight of what was measured last.
const LATEST: f64 = 0.3;
/// What of a measured disadvantage is left after an answer that was not compressed because of it.
const DOUBT: f64 = 0.99;
/// Until something is measured: a core of a server of now, on decoded columns that were made narrow.
const BYTES_PER_SEC: f64 = 0.6e9;
const LEFT: f64 = 0.5;
/// An answer is taken to become no smaller than this: one that shrank to nothing says little of the next.
const LEFT_LEAST: f64 = 0.1;

/// What compressing answers has taken and left of them lately, on one worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packing {
    bytes_per_sec: f64,
    /// Share of the bytes that is left.
    left: f64,
}

impl Default for Packing {
    fn default() -> Self {
        Self { bytes_per_sec: BYTES_PER_SEC, left: LEFT }
    }
}

impl Packing {
    /// Whether an answer is sooner there compressed: over a link that carries so many bytes a second, none where that is not known. Where it
    /// can't be known the answer goes as it is.
    pub fn pays(&self, bytes: u64, link_bytes_per_sec: Option<u64>) -> bool {
        debug_assert!(self.bytes_per_sec > 0.0 && (0.0..=1.0).contains(&self.left), "what was measured can be: {self:?}");
        let Some(link) = link_bytes_per_sec.filter(|link| *link > 0) else { return false };
        let (saved, spent) = ((1.0 - self.left) / link as f64, (1.0 + UNPACKING) / self.bytes_per_sec);
        bytes >= SMALL_BYTES && saved >= MARGIN * spent
    }

    /// Bytes that an answer may have before it is compressed, if it may have `most` then.
    pub fn before(&self, most: u64) -> u64 {
        (most as f64 / self.left.max(LEFT_LEAST)) as u64
    }

    /// So many bytes became so many, in so many seconds.
    pub fn packed(&mut self, bytes: u64, left: u64, secs: f64) {
        if bytes == 0 {
            return;
        }
        learn(&mut self.left, (left as f64 / bytes as f64).min(1.0), LATEST);
        learn_rate(&mut self.bytes_per_sec, bytes, secs, LATEST);
    }

    /// An answer of so many bytes went as it is. Unless that was for its size, what was measured counts a little less from now on.
    pub fn passed(&mut self, bytes: u64) {
        if bytes >= SMALL_BYTES {
            doubt(&mut self.left, LEFT, DOUBT);
            doubt(&mut self.bytes_per_sec, BYTES_PER_SEC, DOUBT);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIGABIT: Option<u64> = Some(125_000_000);

    fn measured(bytes_per_sec: f64, left: f64) -> Packing {
        Packing { bytes_per_sec, left }
    }

    #[test]
    fn a_link_slower_than_the_compressor_gets_less_and_a_faster_one_all() {
        let usual = measured(0.6e9, 0.5);
        assert!(usual.pays(1 << 20, GIGABIT));
        assert!(!usual.pays(1 << 20, Some(1_250_000_000)), "10 Gbit/s carry it sooner than it is compressed");
        assert!(!usual.pays(1 << 20, None), "nobody knows");
        assert!(!usual.pays(1 << 20, Some(0)));
        assert!(!usual.pays(SMALL_BYTES - 1, GIGABIT), "small");
        assert!(!measured(0.6e9, 0.95).pays(1 << 20, GIGABIT), "it would hardly become smaller");
        assert!(!measured(0.1e9, 0.5).pays(1 << 20, GIGABIT), "a busy worker");
    }

    #[test]
    fn answers_that_do_not_shrink_are_left_alone_and_tried_again_after_a_while() {
        let mut packing = measured(0.6e9, 0.5);
        let mut tried = 0;
        while packing.pays(1 << 20, GIGABIT) {
            packing.packed(1 << 20, 1 << 20, 2e-3);
            tried += 1;
        }
        assert!(tried <= 3, "{tried}");
        let again = (1..1000).find(|_| {
            packing.passed(1 << 20);
            packing.pays(1 << 20, GIGABIT)
        });
        assert!(again.is_some_and(|passed| passed > 10), "{packing:?} after {again:?}");
        let before = packing;
        packing.passed(100);
        assert_eq!(packing, before, "small answers say nothing");
    }

    #[test]
    fn an_answer_may_be_larger_before_it_is_compressed() {
        assert_eq!(measured(1e9, 0.5).before(1000), 2000);
        assert_eq!(measured(1e9, 0.0).before(1000), 10_000);
        assert_eq!(measured(1e9, 1.0).before(1000), 1000);
    }

    proptest! {
        /// Whatever was measured before, where it says yes and the answer is as those lately, it is there sooner.
        #[test]
        fn it_never_loses_by_what_is_known(
            answers in proptest::collection::vec((1u64..1 << 25, 0.0f64..1.5, 1e-6f64..1.0), 0..40),
            bytes in 1u64..1 << 25,
            link in 1u64..10_000_000_000,
        ) {
            let mut packing = Packing::default();
            for (bytes, left, secs) in answers {
                packing.packed(bytes, (bytes as f64 * left) as u64, secs);
                packing.passed(bytes);
            }
            if packing.pays(bytes, Some(link)) {
                let plain = bytes as f64 / link as f64;
                let taken = bytes as f64 * (1.0 + UNPACKING) / packing.bytes_per_sec;
                prop_assert!(taken + plain * packing.left < plain);
            }
        }
    }
}
