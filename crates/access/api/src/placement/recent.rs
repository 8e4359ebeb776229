//! The last look at placement, for all who ask within half a second: each goes through all segments, while the coordinator answers nobody.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_protocol::PlacementStatus;
use parking_lot::Mutex;

/// Segments that one answer has at most.
pub(crate) const SEGMENTS_MAX: usize = 10_000;
/// How many a look has: as many as are asked for, or the next of these.
const STEPS: [usize; 3] = [100, 1000, SEGMENTS_MAX];
/// How old a look may be.
const FRESH: Duration = Duration::from_millis(500);

/// One look at a time, however many ask.
pub(crate) struct Recent {
    look: Box<dyn Fn(usize) -> PlacementStatus + Send + Sync>,
    last: Mutex<Option<Look>>,
}

struct Look {
    at: Instant,
    step: usize,
    status: Arc<PlacementStatus>,
}

impl Recent {
    pub(crate) fn new(look: impl Fn(usize) -> PlacementStatus + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { look: Box::new(look), last: Mutex::default() })
    }

    /// A look that has so many segments or more, where there are so many.
    pub(crate) fn of(&self, limit: usize) -> Arc<PlacementStatus> {
        let mut last = self.last.lock();
        match &*last {
            Some(known) if known.step >= limit && known.at.elapsed() < FRESH => Arc::clone(&known.status),
            _ => {
                let step = STEPS.into_iter().find(|step| *step >= limit).unwrap_or(SEGMENTS_MAX);
                let status = Arc::new((self.look)(step));
                *last = Some(Look { at: forebay_runtime::now(), step, status: Arc::clone(&status) });
                status
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_within_half_a_second_shares_a_look_that_has_enough() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let recent = Recent::new(move |limit| {
            seen.lock().push(limit);
            PlacementStatus { segments_known: seen.lock().len() as u64, ..PlacementStatus::default() }
        });
        let runs = |limits: &[usize]| limits.iter().map(|limit| recent.of(*limit).segments_known).collect::<Vec<_>>();
        assert_eq!(runs(&[1, 100, 7, 101, 1000, 5, 10_000, 3]), [1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(*asked.lock(), [100, 1000, 10_000]);
        if let Some(last) = recent.last.lock().as_mut() {
            last.at -= FRESH;
        }
        assert_eq!(runs(&[3, 4]), [4, 4]);
        assert_eq!(asked.lock().last(), Some(&100), "the next look has what is asked for then");
    }
}
