//! Writes psi in blocks: a directory line for each, and a payload only where the line does not say it all.

use super::{BLOCK, Column, block};
use crate::bits::word::width_of;

/// Writes psi, column after column, value after value.
pub(crate) struct PsiWriter {
    row_bits: u32,
    symbol_bits: u32,
    /// Base, symbol and offset of the payload (plus one, 0 for a run) of each block.
    blocks: Vec<(u32, u8, u32)>,
    payload: Vec<u8>,
    pending: Vec<u32>,
    symbol: u8,
}

/// What [`PsiWriter`] makes.
pub(crate) struct PsiBytes {
    pub(crate) directory: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) row_bits: u32,
    pub(crate) symbol_bits: u32,
    pub(crate) unit: u32,
}

impl PsiWriter {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let end = columns.last().map_or(0, |column| column.end());
        Self {
            row_bits: width_of(u64::from(end)),
            symbol_bits: width_of(columns.len() as u64),
            blocks: Vec::with_capacity((end / BLOCK) as usize + 1),
            payload: Vec::new(),
            pending: Vec::with_capacity(BLOCK as usize),
            symbol: 0,
        }
    }

    /// The next value of the column of `symbol`; symbols come in order.
    #[inline]
    pub(crate) fn push(&mut self, symbol: u8, value: u32) {
        if self.pending.len() == BLOCK as usize || (symbol != self.symbol && !self.pending.is_empty()) {
            self.close();
        }
        debug_assert!(symbol >= self.symbol, "column {symbol} comes after {}", self.symbol);
        self.symbol = symbol;
        self.pending.push(value);
    }

    fn close(&mut self) {
        // An offset of 0 means a run, so the payload begins with a byte that nothing points to.
        if self.payload.is_empty() {
            self.payload.push(0);
        }
        debug_assert!(self.pending.is_sorted_by(|one, next| one < next), "rows of a column grow");
        let at = self.payload.len();
        assert!(u32::try_from(at).is_ok(), "a payload at byte {at}: its offset has four bytes");
        block::encode(&self.pending, &mut self.payload);
        let offset = if self.payload.len() == at { 0 } else { at as u32 };
        self.blocks.push((self.pending[0], self.symbol, offset));
        self.pending.clear();
    }

    /// The bytes; payloads are aligned as far as the directory's offsets need it.
    pub(crate) fn finish(mut self) -> Option<PsiBytes> {
        if !self.pending.is_empty() {
            self.close();
        }
        let offset_bits = 64 - self.row_bits - self.symbol_bits;
        for unit in 0..8 {
            let fits = |payload: &[u8]| (payload.len() as u64 >> unit) < 1 << offset_bits;
            if !fits(&self.payload) {
                continue;
            }
            let payload = if unit == 0 { std::mem::take(&mut self.payload) } else { self.align(unit) };
            if !fits(&payload) {
                continue;
            }
            let mut directory = Vec::with_capacity(self.blocks.len() * 8);
            for (base, symbol, offset) in &self.blocks {
                debug_assert_eq!(*offset >> unit << unit, *offset, "payloads are aligned as the directory says");
                let entry = u64::from(*base)
                    | u64::from(*symbol) << self.row_bits
                    | u64::from(*offset >> unit) << (self.row_bits + self.symbol_bits);
                directory.extend_from_slice(&entry.to_le_bytes());
            }
            let (row_bits, symbol_bits) = (self.row_bits, self.symbol_bits);
            return Some(PsiBytes { directory, payload, row_bits, symbol_bits, unit });
        }
        None
    }

    /// Moves every payload to a multiple of `1 << unit` bytes.
    fn align(&mut self, unit: u32) -> Vec<u8> {
        let mut aligned = vec![0; 1 << unit];
        let ends: Vec<usize> = self.blocks.iter().map(|block| block.2 as usize).filter(|offset| *offset > 0).skip(1).collect();
        let mut ends = ends.into_iter().chain([self.payload.len()]);
        for (_, _, offset) in self.blocks.iter_mut().filter(|block| block.2 > 0) {
            let from = *offset as usize;
            *offset = aligned.len() as u32;
            aligned.extend_from_slice(&self.payload[from..ends.next().unwrap_or(from)]);
            aligned.resize(aligned.len().next_multiple_of(1 << unit), 0);
        }
        self.payload = aligned.clone();
        aligned
    }
}
