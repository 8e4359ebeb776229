//! The bounded window in which a plan is prefetched.
//!
//! A plan is cut into units (`plan.rs`), handed out from one or more places in plan order (`place.rs`) and followed
//! by what the reader really reads (`follow.rs`).

mod follow;
mod place;
mod plan;

use std::collections::VecDeque;
use std::ops::Range;

use place::Places;
use plan::Plan;
pub use plan::{PlannedRange, UNIT_BYTES_MAX};

/// What a scan is about to read, handed out a bounded number of bytes ahead of the reader.
///
/// Units of at most [`UNIT_BYTES_MAX`] are handed out in plan order while fewer than `bytes_max` bytes are handed out
/// and not read. What the reader has read is never handed out, and nothing is handed out twice. The engine does not
/// always read what was planned, nor in that order; the window follows it by these rules:
///
/// - **Passed.** A read of a version counts what it has passed as read: units before it, in bytes and in plan order,
///   back to the last one that was read; unless that is more than half a window, which is no skip but another reader.
/// - **Places.** A read far ahead of all that was handed out opens a place there: several partitions read several
///   places of a plan at once. Room goes to the place with the fewest bytes outstanding.
/// - **Written off.** A read of bytes that were not handed out, while the window is full, shows that the window
///   stands where nobody reads: as many of the oldest bytes outstanding are given up on.
///
/// So what is never read (pruned at run time, behind a LIMIT) does not block the window for ever, at the price of at
/// most a window of bytes in vain for each reader that was guessed wrong.
///
/// ```
/// use forebay_scheduling::{PlannedRange, Window};
///
/// let mut window = Window::new(vec![PlannedRange { version_ix: 0, start: 0, len: 10 << 20 }], 8 << 20);
/// let unit = |start, len| Some(PlannedRange { version_ix: 0, start, len });
/// assert_eq!(window.next(), unit(0, 4 << 20));
/// assert_eq!(window.next(), unit(4 << 20, 4 << 20));
/// assert_eq!(window.next(), None); // full
/// window.read(0, 0..4 << 20);
/// assert_eq!(window.next(), unit(8 << 20, 2 << 20));
/// ```
#[derive(Clone, Debug)]
pub struct Window {
    plan: Plan,
    places: Places,
    /// Units in the order in which they were handed out; the front is the oldest that may be outstanding.
    handed: VecDeque<usize>,
    outstanding_bytes: u64,
    bytes_max: u64,
}

impl Window {
    /// A window of `bytes_max` bytes over `ranges`, in the order in which they will be read. Bytes that are planned
    /// twice are handed out once, at their first place. `bytes_max` is at least one byte.
    pub fn new(ranges: Vec<PlannedRange>, bytes_max: u64) -> Self {
        Self {
            plan: Plan::cut(ranges),
            places: Places::start(),
            handed: VecDeque::new(),
            outstanding_bytes: 0,
            bytes_max: bytes_max.max(1),
        }
    }

    /// What to hand over now; none when the window is full, or when everything is handed out or read.
    #[expect(clippy::should_implement_trait, reason = "none is not the end: the next read makes room")]
    pub fn next(&mut self) -> Option<PlannedRange> {
        if self.outstanding_bytes >= self.bytes_max {
            return None;
        }
        let (place, unit_ix) = self.places.choose(&self.plan)?;
        let unit = &mut self.plan.units[unit_ix];
        let span = unit.pending.take_first().expect("places point at units with pending bytes");
        let len = span.end - span.start;
        // A unit that was read in part is handed out in parts, and the place may have changed between two.
        let earlier_bytes = unit.outstanding.bytes() as i64;
        self.places.outstanding(unit.place, -earlier_bytes);
        self.places.outstanding(place, earlier_bytes + len as i64);
        unit.place = place;
        unit.outstanding.insert(span.clone());
        let unit_bytes = unit.span.end - unit.span.start;
        assert!(unit.unread_bytes() <= unit_bytes, "of {unit_bytes} bytes none is handed out twice");
        self.plan.pending_bytes -= len;
        self.outstanding_bytes += len;
        let bytes_max = self.bytes_max.saturating_add(UNIT_BYTES_MAX);
        assert!(self.outstanding_bytes < bytes_max, "{} bytes are handed out, and no unit more than fit", self.outstanding_bytes);
        self.handed.push_back(unit_ix);
        Some(PlannedRange { version_ix: unit.version_ix, start: span.start, len })
    }

    /// The reader has read `range` of a version, planned or not, handed out or not: the window moves. Reads come in
    /// any order, in parts, and repeatedly.
    pub fn read(&mut self, version_ix: usize, range: Range<u64>) {
        let units = self.plan.overlapping(version_ix, &range);
        let Some(&first) = units.first() else { return };
        let was_full = self.outstanding_bytes >= self.bytes_max;
        let mut unexpected_bytes = 0;
        for &unit_ix in &units {
            let bytes = self.consume(unit_ix, &range);
            if bytes > 0 {
                unexpected_bytes += bytes;
                self.places.open_near(unit_ix, &self.plan, self.bytes_max / 2);
            }
        }
        self.pass_before(first);
        if was_full {
            self.write_off(unexpected_bytes);
        }
        self.forget_oldest_read();
    }

    /// Bytes handed out and not read yet.
    pub fn outstanding(&self) -> u64 {
        self.outstanding_bytes
    }

    /// Whether there is nothing left that [`Self::next`] could ever hand out.
    pub fn is_finished(&self) -> bool {
        self.plan.pending_bytes == 0
    }
}
