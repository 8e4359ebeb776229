//! What is random.

use std::cell::RefCell;

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::distr::{Distribution, StandardUniform};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

thread_local! {
    static REPEATED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A random value, from a generator that is fit for secrets; on a thread that repeats, the next one of its series.
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    REPEATED.with_borrow_mut(|repeated| if let Some(series) = repeated { series.random() } else { rand::random() })
}

/// A random value of a range.
pub fn random_range<T: SampleUniform>(range: impl SampleRange<T>) -> T {
    REPEATED.with_borrow_mut(|repeated| match repeated {
        Some(series) => series.random_range(range),
        None => rand::random_range(range),
    })
}

/// Fills `bytes` on a thread that repeats, from its series; false on all others, which have the system's for secrets.
pub fn fill_repeated(bytes: &mut [u8]) -> bool {
    REPEATED.with_borrow_mut(|repeated| repeated.as_mut().map(|series| series.fill(bytes)).is_some())
}

/// In the child of a fork: from now on this thread draws something else than its parent, and than the parent's other children, which would
/// all go on from where the parent was.
pub fn draw_anew() {
    rand::rng().reseed().expect("the system has chance for a new process");
}

/// From now on this thread draws the series of `seed`, until what this gives is dropped. For tests: such values are no secrets.
#[must_use = "the series ends when this is dropped"]
pub fn repeat(seed: u64) -> Repeated {
    REPEATED.set(Some(StdRng::seed_from_u64(seed)));
    Repeated(())
}

/// A thread that draws a series.
#[derive(Debug)]
pub struct Repeated(());

impl Drop for Repeated {
    fn drop(&mut self) {
        REPEATED.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_series_on_its_thread_only() {
        let draw = |seed| {
            let _series = repeat(seed);
            [random::<u64>(), random(), random_range(5..u64::MAX)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let _series = repeat(7);
        let other = std::thread::spawn(|| [random::<u64>(), random(), random()]).join().unwrap_or_default();
        assert_ne!(other, draw(7));
        assert_ne!(random::<u128>(), random::<u128>());
    }
}
