//! NextCharIdx (psi), the one large array of a shard: from the row of a suffix to the row of the suffix one symbol later.
//!
//! Rows are grouped in columns by first symbol, and each column begins at a multiple of 128 rows, so that a block of 128
//! has one symbol and its values grow. The few rows that this leaves unused are never pointed to.
//!
//! Steps along psi and ranks in it: each in two halves, so that callers hide the wait for memory between them.

mod block;
mod column;
mod encode;

use std::ops::Range;

use bytes::Bytes;

use crate::bits::prefetch::prefetch;
use crate::bits::word::load;
use crate::steps::step;

pub(crate) use column::Column;
pub(crate) use encode::{PsiBytes, PsiWriter};

/// Rows of a block.
pub(crate) const BLOCK: u32 = 128;

/// psi over the bytes of a part.
#[derive(Clone, Debug)]
pub(crate) struct Psi {
    directory: Bytes,
    payload: Bytes,
    row_bits: u32,
    symbol_bits: u32,
    unit: u32,
    /// The columns by symbol.
    pub(crate) columns: Vec<Column>,
}

/// What the directory says of a row: enough to ask for the payload, or to be done for a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    base: u32,
    offset: usize,
    /// The first symbol of the row's suffix.
    pub(crate) symbol: u8,
}

impl Psi {
    pub(crate) fn new(directory: Bytes, payload: Bytes, bits: [u32; 3], columns: Vec<Column>) -> Self {
        let [row_bits, symbol_bits, unit] = bits;
        Self { directory, payload, row_bits: row_bits.min(32), symbol_bits: symbol_bits.min(9), unit: unit.min(7), columns }
    }

    /// The column of `symbol`; empty if there is none.
    #[inline(always)]
    pub(crate) fn column(&self, symbol: u8) -> Column {
        self.columns.get(symbol as usize).copied().unwrap_or_default()
    }

    /// Asks for the directory's line of `row`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, row: u32) {
        prefetch(&self.directory, (row / BLOCK) as usize * 8);
    }

    #[inline(always)]
    fn entry(&self, block: u32) -> u64 {
        load(&self.directory, block as usize * 8)
    }

    #[inline(always)]
    fn base(&self, block: u32) -> u32 {
        (self.entry(block) & ((1 << self.row_bits) - 1)) as u32
    }

    #[inline(always)]
    fn place_of(&self, entry: u64) -> Place {
        Place {
            base: (entry & ((1 << self.row_bits) - 1)) as u32,
            symbol: (entry >> self.row_bits & ((1 << self.symbol_bits) - 1)) as u8,
            offset: ((entry >> (self.row_bits + self.symbol_bits)) as usize) << self.unit,
        }
    }

    /// The first half of a step: one access to the directory.
    #[inline(always)]
    pub(crate) fn place(&self, row: u32) -> Place {
        self.place_of(self.entry(row / BLOCK))
    }

    /// Asks for the payload of `place`.
    #[inline(always)]
    pub(crate) fn prefetch_payload(&self, place: Place) {
        if place.offset != 0 {
            prefetch(&self.payload, place.offset);
        }
    }

    /// The second half of a step: the row one symbol on.
    #[inline(always)]
    pub(crate) fn next(&self, place: Place, row: u32) -> u32 {
        step();
        let j = row % BLOCK;
        let run = place.base.wrapping_add(j);
        if place.offset == 0 { run } else { run.wrapping_add(block::excess(&self.payload, place.offset, j)) }
    }

    /// The first row of `column` whose psi is at least `row`, or the column's end.
    pub(crate) fn rank(&self, column: Column, row: u32) -> u32 {
        self.rank_both(column, [row])[0]
    }

    /// [`rank`](Self::rank) of both ends of a range of rows at once: the two binary searches wait for memory together.
    #[inline(always)]
    pub(crate) fn rank_range(&self, column: Column, rows: Range<u32>) -> Range<u32> {
        let [start, end] = self.rank_both(column, [rows.start, rows.end]);
        start..end
    }

    #[inline(always)]
    fn rank_both<const N: usize>(&self, column: Column, rows: [u32; N]) -> [u32; N] {
        if column.count == 0 {
            return [column.start; N];
        }
        // The last block whose base is below the row holds the border; no branch depends on what was loaded.
        let first = column.start / BLOCK;
        let mut blocks = [first; N];
        let mut size = column.count.div_ceil(BLOCK);
        while size > 1 {
            let half = size / 2;
            for (block, row) in blocks.iter_mut().zip(rows) {
                let middle = *block + half;
                *block = if self.base(middle) < row { middle } else { *block };
            }
            size -= half;
        }
        let mut out = [column.start; N];
        for ((block, row), out) in blocks.into_iter().zip(rows).zip(&mut out) {
            let place = self.place_of(self.entry(block));
            if place.base < row {
                let count = (column.end() - block * BLOCK).min(BLOCK);
                *out = block * BLOCK + self.rank_in_block(place, count, row);
            }
        }
        out
    }

    #[inline(always)]
    fn rank_in_block(&self, place: Place, rows: u32, row: u32) -> u32 {
        if place.offset == 0 {
            return row.saturating_sub(place.base).min(rows);
        }
        let (mut low, mut size) = (0, rows);
        while size > 0 {
            let half = size / 2;
            if self.next(place, low + half) < row {
                low += half + 1;
                size -= half + 1;
            } else {
                size = half;
            }
        }
        low
    }
}
