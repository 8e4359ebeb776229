//! Rows by the symbol that their suffixes begin with: where each symbol's rows stand, aligned to psi's blocks.

use super::BLOCK;

/// The rows of the suffixes that begin with one symbol: `start..start + count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

impl Column {
    /// The row after the column's last.
    #[inline(always)]
    pub(crate) fn end(self) -> u32 {
        self.start + self.count
    }

    /// Lays out columns of these sizes, each at a multiple of [`BLOCK`]; `None` if the rows do not fit in 32 bits.
    pub(crate) fn layout(counts: &[u32]) -> Option<Vec<Self>> {
        let mut start = 0u32;
        let mut columns = Vec::with_capacity(counts.len());
        for &count in counts {
            columns.push(Self { start, count });
            start = start.checked_add(count.checked_next_multiple_of(BLOCK)?)?;
        }
        Some(columns)
    }
}
