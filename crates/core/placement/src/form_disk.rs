//! Whether a decoded column is kept compressed on disk, for when it has left memory.

use crate::form::{FormCandidate, FormCosts};
use crate::learned::{doubt, learn, learn_rate};

/// Share of the disk tier that decoded columns may take: what is raw serves everyone.
const DISK_SHARE: f64 = 0.25;
/// How many times sooner a column must be back from disk than decoded anew: what is not sure to win is not done.
const MARGIN: f64 = 1.2;
/// Weight of what was measured last.
const LATEST: f64 = 0.2;
/// What of a measured disadvantage is left after a column that was passed by because of it.
const DOUBT: f64 = 0.98;
/// Until something is measured: a disk of now, a core of a server, and columns as most are.
const READ_BYTES_PER_SEC: f64 = 1.5e9;
const UNPACK_BYTES_PER_SEC: f64 = 2.5e9;
const LEFT: f64 = 0.5;

/// What reading columns back has cost lately, on one worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormDisk {
    read_bytes_per_sec: f64,
    unpack_bytes_per_sec: f64,
    /// Share of a column's bytes that is left when it is compressed.
    left: f64,
}

/// The disk tier that would hold them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FormDiskRoom {
    /// Capacity of the tier in bytes.
    pub capacity_bytes: u64,
    /// Bytes of decoded columns that it holds already.
    pub form_bytes: u64,
}

impl Default for FormDisk {
    fn default() -> Self {
        Self { read_bytes_per_sec: READ_BYTES_PER_SEC, unpack_bytes_per_sec: UNPACK_BYTES_PER_SEC, left: LEFT }
    }
}

impl FormDisk {
    /// Whether a column is sooner back from disk than it is read raw from memory and decoded.
    pub fn is_sooner(&self, costs: FormCosts, column: &FormCandidate) -> bool {
        debug_assert!(
            self.read_bytes_per_sec > 0.0 && self.unpack_bytes_per_sec > 0.0,
            "nothing is there before it is asked for"
        );
        let bytes = column.decoded_bytes as f64;
        let back = bytes * self.left / self.read_bytes_per_sec + bytes / self.unpack_bytes_per_sec;
        let anew = bytes / costs.decode_bytes_per_sec + column.raw_bytes as f64 / costs.tier_bytes_per_sec;
        bytes > 0.0 && back * MARGIN <= anew
    }

    /// Whether it is worth its place there.
    pub fn pays(&self, costs: FormCosts, column: &FormCandidate, room: FormDiskRoom) -> bool {
        let bytes = (column.decoded_bytes as f64 * self.left) as u64;
        let fits = room.form_bytes.saturating_add(bytes) <= (room.capacity_bytes as f64 * DISK_SHARE) as u64;
        fits && self.is_sooner(costs, column)
    }

    /// So many bytes of a column became so many; gives what holds of this one.
    pub fn packed(&mut self, bytes: u64, left: u64) -> Self {
        let left = left as f64 / bytes.max(1) as f64;
        learn(&mut self.left, left, LATEST);
        Self { left, ..*self }
    }

    /// A column came back: the bytes that were read, and those that they became, each with its seconds.
    pub fn came_back(&mut self, read: (u64, f64), unpacked: (u64, f64)) {
        for (known, (bytes, secs)) in [(&mut self.read_bytes_per_sec, read), (&mut self.unpack_bytes_per_sec, unpacked)] {
            // A few bytes say nothing.
            if bytes >= 64 << 10 {
                learn_rate(known, bytes, secs, LATEST);
            }
        }
    }

    /// A column was passed by because of what was measured, which counts a little less from now on.
    pub fn passed(&mut self) {
        doubt(&mut self.read_bytes_per_sec, READ_BYTES_PER_SEC, DOUBT);
        doubt(&mut self.unpack_bytes_per_sec, UNPACK_BYTES_PER_SEC, DOUBT);
        doubt(&mut self.left, LEFT, DOUBT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: FormDiskRoom = FormDiskRoom { capacity_bytes: 1 << 30, form_bytes: 0 };
    /// Texts, and numbers that are decoded about as fast as they are read.
    const SLOW: FormCosts = FormCosts { tier_bytes_per_sec: 4e9, decode_bytes_per_sec: 0.4e9 };
    const QUICK: FormCosts = FormCosts { tier_bytes_per_sec: 4e9, decode_bytes_per_sec: 3e9 };

    fn column() -> FormCandidate {
        FormCandidate { raw_bytes: 1 << 20, decoded_bytes: 8 << 20, operations: 2.0 }
    }

    #[test]
    fn what_is_slow_to_decode_is_kept_and_what_is_quick_is_not() {
        let disk = FormDisk::default();
        assert!(disk.pays(SLOW, &column(), ROOM));
        assert!(!disk.pays(QUICK, &column(), ROOM));
        assert!(!disk.pays(SLOW, &FormCandidate { decoded_bytes: 0, ..column() }, ROOM));
    }

    #[test]
    fn columns_keep_to_their_share_of_the_disk() {
        let full = FormDiskRoom { form_bytes: 254 << 20, ..ROOM };
        assert!(!FormDisk::default().pays(SLOW, &column(), full));
        assert!(FormDisk::default().is_sooner(SLOW, &column()), "what is there already is read");
    }

    #[test]
    fn a_slow_disk_is_left_alone_and_tried_again_after_a_while() {
        let mut disk = FormDisk::default();
        let mut read = 0;
        while disk.is_sooner(SLOW, &column()) {
            disk.came_back((4 << 20, 0.1), (8 << 20, 4e-3));
            read += 1;
        }
        assert!((2..20).contains(&read), "{read}");
        let again = (1..1000).find(|_| {
            disk.passed();
            disk.is_sooner(SLOW, &column())
        });
        assert!(again.is_some(), "{disk:?}");
    }

    #[test]
    fn a_column_that_hardly_shrinks_is_judged_by_itself() {
        let mut disk = FormDisk { read_bytes_per_sec: 0.5e9, ..FormDisk::default() };
        assert!(disk.pays(SLOW, &column(), ROOM));
        let this = disk.packed(8 << 20, 8 << 20);
        assert!(!this.pays(SLOW, &column(), ROOM));
        assert!(disk.pays(SLOW, &column(), ROOM), "the next may shrink");
    }
}
