//! Pages of a segment, one run of them or any set: what readers ask for and what holders say they have.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Error, PAGE_BYTES, PAGES_PER_SEGMENT, Result};

/// Consecutive pages of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Said")]
pub struct PageRun {
    /// First page, counted from the segment's start.
    pub start: u32,
    /// Number of pages; never 0.
    pub len: u32,
}

/// A run as somebody says it.
#[derive(Deserialize)]
struct Said {
    start: u32,
    len: u32,
}

impl TryFrom<Said> for PageRun {
    type Error = Error;

    fn try_from(said: Said) -> Result<Self> {
        let Said { start, len } = said;
        let end = start.checked_add(len).filter(|end| len > 0 && *end <= PAGES_PER_SEGMENT);
        let end = end.ok_or_else(|| Error::invalid(format!("{len} pages from {start} on are none of a segment")))?;
        Ok(Self::new(start, end))
    }
}

impl PageRun {
    /// The `len` pages from `start` on. `Invalid` when they are none of a segment.
    pub fn of(start: u32, len: u32) -> Result<Self> {
        Said { start, len }.try_into()
    }

    /// The pages `start..end`. Panics when empty or past a segment's end, which no valid range is.
    pub fn new(start: u32, end: u32) -> Self {
        assert!(start < end && end <= PAGES_PER_SEGMENT, "pages {start}..{end} are no run of a segment");
        Self { start, len: end - start }
    }

    /// The pages that hold the bytes `range` of a segment; nothing for an empty range.
    pub fn covering(range: Range<u64>) -> Option<Self> {
        (range.start < range.end).then(|| Self::new((range.start / PAGE_BYTES) as u32, range.end.div_ceil(PAGE_BYTES) as u32))
    }

    /// One past the last page.
    pub fn end(&self) -> u32 {
        self.start + self.len
    }

    /// The pages as a range.
    pub fn pages(&self) -> Range<u32> {
        self.start..self.end()
    }

    /// The bytes of the segment that these pages hold, as if its last page were full.
    pub fn bytes(&self) -> Range<u64> {
        u64::from(self.start) * PAGE_BYTES..u64::from(self.end()) * PAGE_BYTES
    }
}

/// A set of a segment's pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `page` is in the set.
    pub fn contains(&self, page: u32) -> bool {
        self.words.get(page as usize / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// Adds all pages of `run`.
    pub fn insert(&mut self, run: PageRun) {
        let words = (run.end() as usize).div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        for page in run.pages() {
            self.words[page as usize / 64] |= 1 << (page % 64);
        }
        debug_assert!(run.pages().all(|page| self.contains(page)), "{run:?} is in the set");
        self.check();
    }

    /// Takes out all pages of `run`.
    pub fn remove(&mut self, run: PageRun) {
        for page in run.pages() {
            if let Some(word) = self.words.get_mut(page as usize / 64) {
                *word &= !(1 << (page % 64));
            }
        }
        // Equal sets have equal words.
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        debug_assert!(!run.pages().any(|page| self.contains(page)), "nothing of {run:?} is in the set");
        self.check();
    }

    /// The last word has a page, so that sets of the same pages are equal.
    fn check(&self) {
        assert!(self.words.last() != Some(&0), "the last of {} words has a page", self.words.len());
        assert!(self.words.len() <= PAGES_PER_SEGMENT as usize / 64, "{} words are of one segment", self.words.len());
    }

    /// Number of pages in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The maximal runs of pages in the set, in order.
    pub fn runs(&self) -> Vec<PageRun> {
        let runs = self.runs_within(0..self.words.len() as u32 * 64, true);
        debug_assert_eq!(runs.iter().map(|run| run.len).sum::<u32>(), self.len(), "each page is in a run");
        runs
    }

    /// The maximal runs of pages of `run` that are not in the set, in order.
    pub fn missing(&self, run: PageRun) -> Vec<PageRun> {
        self.runs_within(run.pages(), false)
    }

    fn runs_within(&self, pages: Range<u32>, present: bool) -> Vec<PageRun> {
        let mut runs: Vec<PageRun> = Vec::new();
        for page in pages {
            if self.contains(page) == present {
                match runs.last_mut() {
                    Some(run) if run.end() == page => run.len += 1,
                    _ => runs.push(PageRun { start: page, len: 1 }),
                }
            }
        }
        runs
    }
}

impl FromIterator<PageRun> for PageSet {
    fn from_iter<I: IntoIterator<Item = PageRun>>(runs: I) -> Self {
        let mut set = Self::new();
        runs.into_iter().for_each(|run| set.insert(run));
        set
    }
}

#[cfg(test)]
mod planted {
    use super::*;

    #[test]
    #[should_panic(expected = "the last of 2 words has a page")]
    fn a_word_without_pages_is_at_the_end() {
        PageSet { words: vec![1, 0] }.insert(PageRun { start: 1, len: 1 });
    }

    #[test]
    #[should_panic(expected = "words are of one segment")]
    fn there_are_more_pages_than_a_segment_has() {
        PageSet { words: vec![1; PAGES_PER_SEGMENT as usize / 64 + 1] }.remove(PageRun { start: 0, len: 1 });
    }
}
