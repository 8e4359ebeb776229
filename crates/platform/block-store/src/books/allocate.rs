//! Free ranges of a tier's addresses, so that an extent is found without a look at what is taken.

use std::collections::{BTreeMap, BTreeSet};

/// The free addresses of a tier, in pages. An extent takes the smallest free range that holds it (the lowest of equals),
/// so that used addresses, and with them the page tables, are used again before fresh ones.
#[derive(Debug)]
pub(crate) struct Addresses {
    by_start: BTreeMap<u64, u64>,
    by_len: BTreeSet<(u64, u64)>,
}

impl Addresses {
    /// `pages` addresses, all free.
    pub fn new(pages: u64) -> Self {
        let mut addresses = Self { by_start: BTreeMap::new(), by_len: BTreeSet::new() };
        addresses.insert(0, pages);
        addresses
    }

    /// Takes `len` consecutive addresses; none when no free range is long enough.
    pub fn allocate(&mut self, len: u64) -> Option<u64> {
        let (free, start) = *self.by_len.range((len, 0)..).next()?;
        self.remove(start, free);
        self.insert(start + len, free - len);
        Some(start)
    }

    /// Takes exactly these addresses, as recovery does; false when some of them are taken or do not exist.
    pub fn take(&mut self, start: u64, len: u64) -> bool {
        let Some((&free_start, &free)) = self.by_start.range(..=start).next_back() else { return false };
        if start + len > free_start + free {
            return false;
        }
        self.remove(free_start, free);
        self.insert(free_start, start - free_start);
        self.insert(start + len, free_start + free - start - len);
        true
    }

    pub fn release(&mut self, start: u64, len: u64) {
        let (mut first, mut end) = (start, start + len);
        if let Some((&before, &before_len)) = self.by_start.range(..start).next_back() {
            assert!(before + before_len <= start, "addresses {start}+{len} are released twice");
            if before + before_len == start {
                self.remove(before, before_len);
                first = before;
            }
        }
        if let Some((&after, &after_len)) = self.by_start.range(start..).next() {
            assert!(after >= end, "addresses {start}+{len} are released twice");
            if after == end {
                self.remove(after, after_len);
                end += after_len;
            }
        }
        self.insert(first, end - first);
    }

    /// The free ranges in order: (start, length).
    pub fn free(&self) -> impl Iterator<Item = (u64, u64)> {
        self.by_start.iter().map(|(start, len)| (*start, *len))
    }

    pub fn heap_bytes(&self) -> usize {
        self.by_start.len() * 2 * size_of::<(u64, u64)>() * 3 / 2
    }

    fn insert(&mut self, start: u64, len: u64) {
        if len > 0 {
            self.by_start.insert(start, len);
            self.by_len.insert((len, start));
        }
    }

    fn remove(&mut self, start: u64, len: u64) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn extents_never_overlap_and_come_back_whole(steps in prop::collection::vec((any::<bool>(), 1u64..40, any::<prop::sample::Index>()), 1..200)) {
            let mut addresses = Addresses::new(300);
            let mut held: Vec<(u64, u64)> = Vec::new();
            for (allocate, len, which) in steps {
                if allocate {
                    if let Some(start) = addresses.allocate(len) {
                        prop_assert!(start + len <= 300);
                        prop_assert!(held.iter().all(|(other, other_len)| start + len <= *other || other + other_len <= start));
                        held.push((start, len));
                    }
                } else if !held.is_empty() {
                    let (start, len) = held.swap_remove(which.index(held.len()));
                    addresses.release(start, len);
                    prop_assert!(addresses.take(start, len));
                    prop_assert!(!addresses.take(start, 1));
                    addresses.release(start, len);
                }
            }
            for (start, len) in held {
                addresses.release(start, len);
            }
            prop_assert_eq!(addresses.free().collect::<Vec<_>>(), vec![(0, 300)]);
        }
    }
}
