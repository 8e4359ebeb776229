//! How often each block of a segment is pinned, at no cost for the many segments that nobody has pinned.

/// Pins of a segment's blocks. Nothing is allocated until the first pin; from then on 4 bytes a block.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    blocks: Box<[u32]>,
    total: u64,
}

impl Pins {
    /// Pins `block`; true when it was not pinned before.
    pub fn add(&mut self, block: u32, block_count: u32) -> bool {
        if self.blocks.is_empty() {
            self.blocks = vec![0; block_count as usize].into();
        }
        let pins = &mut self.blocks[block as usize];
        *pins += 1;
        self.total += 1;
        *pins == 1
    }

    /// Ends one pin of `block`; true when it was the last.
    pub fn remove(&mut self, block: u32) -> bool {
        let pins = &mut self.blocks[block as usize];
        assert!(*pins > 0, "block {block} is not pinned");
        *pins -= 1;
        self.total -= 1;
        *pins == 0
    }

    pub fn count(&self, block: u32) -> u32 {
        self.blocks.get(block as usize).copied().unwrap_or(0)
    }

    pub fn is_pinned(&self, block: u32) -> bool {
        self.count(block) > 0
    }

    pub fn any(&self) -> bool {
        self.total > 0
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}
