//! What need not be verified twice: one bit a cell of one version of a file.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Table;

/// Which cells of one version of a file have verified. Bytes that have once been what was written, and that are kept since by
/// what verifies its own (tiers do), need not be verified at each scan.
#[derive(Debug)]
pub struct Verified {
    /// A bit a cell, row group by row group.
    bits: Vec<AtomicU64>,
    groups: usize,
}

impl Verified {
    /// None of the table's cells.
    pub fn none_of(table: &Table) -> Self {
        let groups = table.groups().len();
        let words = (table.row_groups() * groups).div_ceil(64);
        Self { bits: (0..words).map(|_| AtomicU64::new(0)).collect(), groups }
    }

    /// Bytes that this takes in memory.
    pub fn bytes(&self) -> usize {
        self.bits.len() * 8
    }

    pub(super) fn has(&self, row_group: usize, group: usize) -> bool {
        let (word, bit) = self.place(row_group, group);
        self.bits.get(word).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    pub(super) fn note(&self, row_group: usize, group: usize) {
        let (word, bit) = self.place(row_group, group);
        assert!(group < self.groups && word < self.bits.len(), "cell {group} of row group {row_group} is of another table");
        if let Some(word) = self.bits.get(word) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn place(&self, row_group: usize, group: usize) -> (usize, u64) {
        let at = row_group * self.groups + group;
        (at / 64, 1 << (at % 64))
    }
}
