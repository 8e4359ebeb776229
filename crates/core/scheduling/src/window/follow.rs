//! A window that moves with its readers.

use std::ops::Range;

use super::Window;

/// Units that a read may pass at once.
const PASSED_UNITS_MAX: usize = 1024;

impl Window {
    /// Takes `range` out of a unit; returns the bytes that were not handed out yet.
    pub(super) fn consume(&mut self, unit_ix: usize, range: &Range<u64>) -> u64 {
        let unit = &mut self.plan.units[unit_ix];
        let outstanding = unit.outstanding.remove(range);
        let pending = unit.pending.remove(range);
        self.settle(unit_ix, outstanding, pending);
        pending
    }

    /// Counts as read what the reader has passed on its way to this unit.
    pub(super) fn pass_before(&mut self, unit_ix: usize) {
        let mut passed = Vec::new();
        let mut passed_bytes = 0;
        for before in self.plan.before(unit_ix) {
            let unit = &self.plan.units[before];
            let unread_bytes = unit.unread_bytes();
            // The trail of this reader; or planned for later, thus not behind it.
            if unread_bytes == 0 || before > unit_ix {
                break;
            }
            passed_bytes += unread_bytes;
            if passed_bytes > self.bytes_max / 2 || passed.len() >= PASSED_UNITS_MAX {
                return;
            }
            passed.push(before);
        }
        for before in passed {
            let span = self.plan.units[before].span.clone();
            self.consume(before, &span);
        }
    }

    /// Gives up on the oldest bytes outstanding, whole units, until at least `bytes` are given up on.
    pub(super) fn write_off(&mut self, bytes: u64) {
        let mut written_off = 0;
        while written_off < bytes {
            let Some(unit_ix) = self.handed.pop_front() else { break };
            let outstanding = self.plan.units[unit_ix].outstanding.clear();
            self.settle(unit_ix, outstanding, 0);
            written_off += outstanding;
        }
    }

    /// Keeps the queue of what was handed out short.
    pub(super) fn forget_oldest_read(&mut self) {
        while self.handed.front().is_some_and(|unit_ix| self.plan.units[*unit_ix].outstanding.is_empty()) {
            self.handed.pop_front();
        }
    }

    fn settle(&mut self, unit_ix: usize, outstanding: u64, pending: u64) {
        let (handed, left) = (self.outstanding_bytes, self.plan.pending_bytes);
        assert!(handed >= outstanding && left >= pending, "{handed} bytes are handed out and {left} are left");
        self.outstanding_bytes -= outstanding;
        self.plan.pending_bytes -= pending;
        self.places.outstanding(self.plan.units[unit_ix].place, -(outstanding as i64));
    }
}
