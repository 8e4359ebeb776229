//! The part of an answer that is asked for.

/// Records by their numbers, which are in the order of keys: from one on, at most so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from: u32,
    pub(crate) count: usize,
}

impl Window {
    /// The whole answer.
    pub(crate) const ALL: Self = Self { from: 0, count: usize::MAX };

    /// Keeps what lies in it of records that are sorted.
    pub(crate) fn cut(self, records: &mut Vec<u32>) {
        debug_assert!(records.is_sorted());
        records.drain(..records.partition_point(|record| *record < self.from));
        records.truncate(self.count);
    }
}
