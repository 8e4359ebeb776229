//! The last look at placement, for all who ask within a moment: each goes through all segments, while the coordinator answers nobody.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// One look at a time, however many ask.
pub(crate) struct Recent<T> {
    look: Box<dyn Fn(usize) -> T + Send + Sync>,
    bounds: Bounds,
    last: Mutex<Option<Look<T>>>,
}

/// What looks are like.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// How much a look has: as much as is asked for, or the next of these.
    pub(crate) steps: &'static [usize],
    /// How old one may be.
    pub(crate) fresh: Duration,
}

struct Look<T> {
    at: Instant,
    step: usize,
    seen: Arc<T>,
}

impl<T> Recent<T> {
    pub(crate) fn new(bounds: Bounds, look: impl Fn(usize) -> T + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { look: Box::new(look), bounds, last: Mutex::new(None) })
    }

    /// A look that has so much or more, where there is so much.
    pub(crate) fn of(&self, limit: usize) -> Arc<T> {
        let mut last = self.last.lock();
        match &*last {
            Some(known) if known.step >= limit && known.at.elapsed() < self.bounds.fresh => Arc::clone(&known.seen),
            _ => {
                let step = self.bounds.steps.iter().copied().find(|step| *step >= limit).unwrap_or(limit);
                let seen = Arc::new((self.look)(step));
                *last = Some(Look { at: forebay_runtime::now(), step, seen: Arc::clone(&seen) });
                seen
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_within_half_a_second_shares_a_look_that_has_enough() {
        let fresh = Duration::from_millis(500);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let recent = Recent::new(Bounds { steps: &[100, 1000, 10_000], fresh }, move |limit| {
            seen.lock().push(limit);
            seen.lock().len()
        });
        let runs = |limits: &[usize]| limits.iter().map(|limit| *recent.of(*limit)).collect::<Vec<_>>();
        assert_eq!(runs(&[1, 100, 7, 101, 1000, 5, 10_000, 3]), [1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(*asked.lock(), [100, 1000, 10_000]);
        if let Some(last) = recent.last.lock().as_mut() {
            last.at -= fresh;
        }
        assert_eq!(runs(&[3, 4]), [4, 4]);
        assert_eq!(asked.lock().last(), Some(&100), "the next look has what is asked for then");
    }
}
