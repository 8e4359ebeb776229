//! Accesses of a segment, to be kept beside what else is known of it.

use super::{Popularity, halved};

/// Accesses of a segment as they were once looked up. Who looks through many segments keeps it beside each, and is spared as many searches:
/// windows that close since are reckoned with. It is to be looked up anew after whatever else changes the segment's popularity.
///
/// ```
/// use forebay_placement::{Popularity, Usage};
/// use forebay_types::SegmentId;
///
/// let mut popularity = Popularity::new(10);
/// let heat = popularity.add(10, SegmentId(1), Usage { accesses: 8.0, ..Usage::default() });
/// popularity.close(12);
/// assert_eq!((heat.at(10), heat.at(12)), (8.0, popularity.of(SegmentId(1)).accesses));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heat {
    pub(super) accesses: f64,
    pub(super) window: u64,
}

impl Heat {
    /// The accesses when `window` counts in full, which isn't earlier than the one that did when they were looked up.
    pub fn at(self, window: u64) -> f64 {
        debug_assert!(self.window <= window, "window {window} is over, {} counts", self.window);
        if window <= self.window {
            return self.accesses;
        }
        let accesses = self.accesses * halved(window - self.window);
        // What has faded is forgotten when a window closes.
        if accesses >= Popularity::FADED { accesses } else { 0.0 }
    }
}
