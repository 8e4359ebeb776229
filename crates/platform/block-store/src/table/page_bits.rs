//! The pages of one block as 256 bits, and runs of pages as such sets.

use forebay_types::{PAGES_PER_BLOCK, PageRun};

/// A set of pages of one block: 256 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBits([u64; 4]);

impl PageBits {
    pub fn span(start: u32, end: u32) -> Self {
        assert!(start <= end && end <= PAGES_PER_BLOCK, "pages {start}..{end} of a block");
        let mut words = [0; 4];
        for (index, word) in words.iter_mut().enumerate() {
            let first = index as u32 * 64;
            let (low, high) = (start.clamp(first, first + 64) - first, end.clamp(first, first + 64) - first);
            if low < high {
                *word = (u64::MAX >> (64 - (high - low))) << low;
            }
        }
        Self(words)
    }

    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn with(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    pub fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    pub fn without(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    pub fn holds(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    /// The maximal runs of the set as pages of the segment, the block being its `block`-th.
    pub fn runs(self, block: u32) -> Vec<PageRun> {
        let base = block * PAGES_PER_BLOCK;
        let mut runs = Vec::new();
        let mut page = 0;
        while let Some(start) = self.next(page, true) {
            let end = self.next(start, false).unwrap_or(PAGES_PER_BLOCK);
            runs.push(PageRun { start: base + start, len: end - start });
            page = end;
        }
        runs
    }

    /// The first page at or after `page` that is (or is not) in the set.
    fn next(self, page: u32, present: bool) -> Option<u32> {
        let mut page = page;
        while page < PAGES_PER_BLOCK {
            let word = self.0[page as usize / 64];
            let word = if present { word } else { !word } >> (page % 64);
            if word != 0 {
                return Some(page + word.trailing_zeros());
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    fn zip(self, other: Self, merge: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|index| merge(self.0[index], other.0[index])))
    }
}

/// Cuts a run at the borders of blocks: (block, its pages).
pub(crate) fn by_block(run: PageRun) -> impl Iterator<Item = (u32, PageBits)> {
    (run.start / PAGES_PER_BLOCK..run.end().div_ceil(PAGES_PER_BLOCK)).map(move |block| {
        let base = block * PAGES_PER_BLOCK;
        let start = run.start.max(base) - base;
        let end = run.end().min(base + PAGES_PER_BLOCK) - base;
        (block, PageBits::span(start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_runs_agree_with_a_naive_set() {
        for (start, end) in [(0, 0), (0, 1), (63, 65), (64, 128), (0, 256), (255, 256), (17, 200)] {
            let bits = PageBits::span(start, end);
            assert_eq!(bits.count(), end - start);
            let runs = bits.runs(3);
            if start == end {
                assert!(runs.is_empty() && bits.is_empty());
            } else {
                assert_eq!(runs, [PageRun { start: 768 + start, len: end - start }]);
            }
        }
        let bits = PageBits::span(0, 256).without(PageBits::span(60, 70)).without(PageBits::span(255, 256));
        assert_eq!(bits.runs(0), [PageRun { start: 0, len: 60 }, PageRun { start: 70, len: 185 }]);
    }
}
