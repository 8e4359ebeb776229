//! Which pages are there, in a bit for each block that is whole, and in a bitmap only where one is not.

use super::PageBits;

/// Which pages of a segment a tier has: a bit a block where it has all of a block's pages, and a bitmap for each block
/// of which it has some.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    full: u64,
    /// Sorted by block.
    partial: Vec<(u8, PageBits)>,
}

impl Presence {
    /// The pages of `block` that are there; `all` are those that the block has.
    pub fn block(&self, block: u32, all: PageBits) -> PageBits {
        if self.full >> block & 1 == 1 {
            return all;
        }
        if let Ok(at) = self.find(block) { self.partial[at].1 } else { PageBits::default() }
    }

    /// Sets the pages of `block` that are there.
    pub fn set(&mut self, block: u32, bits: PageBits, all: PageBits) {
        let full = bits == all;
        match self.find(block) {
            Ok(at) if full || bits.is_empty() => {
                self.partial.remove(at);
                if self.partial.is_empty() {
                    // Most blocks end full: then nothing is kept beside the bit.
                    self.partial = Vec::new();
                }
            }
            Ok(at) => self.partial[at].1 = bits,
            Err(at) if !full && !bits.is_empty() => self.partial.insert(at, (block as u8, bits)),
            Err(_) => {}
        }
        self.full = self.full & !(1 << block) | u64::from(full) << block;
    }

    /// A bit for each block of which any page is there.
    pub fn blocks(&self) -> u64 {
        self.partial.iter().fold(self.full, |blocks, (block, _)| blocks | 1 << block)
    }

    /// Whether all of these blocks are there whole.
    pub fn has_full(&self, blocks: u64) -> bool {
        self.full & blocks == blocks
    }

    pub fn is_empty(&self) -> bool {
        self.full == 0 && self.partial.is_empty()
    }

    pub fn heap_bytes(&self) -> usize {
        self.partial.capacity() * size_of::<(u8, PageBits)>()
    }

    fn find(&self, block: u32) -> Result<usize, usize> {
        self.partial.binary_search_by_key(&(block as u8), |(block, _)| *block)
    }
}
