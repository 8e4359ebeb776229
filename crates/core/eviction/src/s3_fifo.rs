//! The policy of eviction in use: a long scan takes a tenth of a tier, and what is read again stays.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use forebay_types::SegmentId;

/// Share of the entries that the small queue is cut back to: one in this many.
const SMALL_SHARE: usize = 10;
/// Entries remembered after they went, however few there are.
const GHOSTS_MIN: usize = 64;
/// Of those that left the main queue so many fewer are remembered: enough to tell how many come back.
const PARTED_SHARE: usize = 4;

/// What is found about a block that a policy considers for eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not in the tier any more, or can't be evicted until it is admitted again; the policy drops its entry.
    Gone,
    /// It may not be evicted now: pinned, or kept and not on disk yet. The policy keeps its entry.
    Held,
    /// It was used since it was last asked about; one use is spent. The policy keeps its entry.
    Used,
    /// It is taken out of the tier; the policy drops its entry. With a hash to remember the block by.
    Taken(u32),
}

/// Chooses which block of a tier goes next. Uses are counted beside the blocks, so that a read touches no state that all readers share;
/// this learns of them by the verdicts.
///
/// S3-FIFO (Yang et al., SOSP'23) over blocks. New blocks enter a small queue; those used again while they pass through it
/// move to the main queue, the others go and are remembered for a while: coming back, they enter the main queue at once.
/// So a scan, however long, only ever takes the small queue, a tenth of the tier.
///
/// Where the paper asks for two uses to leave the small queue, one is enough here, since reads of one pass over a
/// block count as none.
///
/// A `Block` is what names one: a few bytes, since each is kept in a queue.
#[derive(Debug)]
pub struct S3Fifo<Block> {
    small: VecDeque<Block>,
    main: VecDeque<Block>,
    ghost: Ghost,
    /// Those that left the main queue: they are only counted when they come back.
    parted: Ghost,
    returned: u64,
    /// Of these, marked ones.
    returned_marked: u64,
}

impl<Block> Default for S3Fifo<Block> {
    fn default() -> Self {
        let (ghost, parted) = (Ghost::default(), Ghost::default());
        Self { small: VecDeque::new(), main: VecDeque::new(), ghost, parted, returned: 0, returned_marked: 0 }
    }
}

impl<Block: Copy> S3Fifo<Block> {
    fn remembered_max(&self) -> usize {
        (self.small.len() + self.main.len()).max(GHOSTS_MIN)
    }

    /// Judges the oldest of the small queue; true when it was taken.
    fn try_small(&mut self, judge: &mut dyn FnMut(Block) -> Verdict) -> bool {
        let Some(block) = self.small.pop_front() else { return false };
        match judge(block) {
            Verdict::Gone => {}
            Verdict::Held => self.small.push_back(block),
            Verdict::Used => self.main.push_back(block),
            Verdict::Taken(fingerprint) => {
                let limit = self.remembered_max();
                self.ghost.push(fingerprint, limit);
                return true;
            }
        }
        false
    }

    /// Judges the oldest of the main queue; true when it was taken.
    fn try_main(&mut self, judge: &mut dyn FnMut(Block) -> Verdict) -> bool {
        let Some(block) = self.main.pop_front() else { return false };
        match judge(block) {
            Verdict::Gone => {}
            Verdict::Held | Verdict::Used => self.main.push_back(block),
            Verdict::Taken(fingerprint) => {
                let limit = self.remembered_max() / PARTED_SHARE;
                self.parted.push(fingerprint, limit);
                return true;
            }
        }
        false
    }

    /// A block has its first pages in the tier. `fingerprint` is the hash that [`Verdict::Taken`] would carry.
    pub fn admit(&mut self, block: Block, fingerprint: u32) {
        let is_known = self.ghost.take(fingerprint);
        let has_returned = is_known || self.parted.take(fingerprint);
        self.returned += u64::from(has_returned);
        self.returned_marked += u64::from(has_returned && is_marked(fingerprint));
        debug_assert!(self.returned_marked <= self.returned, "marked ones are some of all");
        if is_known {
            self.main.push_back(block);
        } else {
            self.small.push_back(block);
        }
    }

    /// Asks `judge` about one block after another until one is taken; false when none can be.
    pub fn evict(&mut self, judge: &mut dyn FnMut(Block) -> Verdict) -> bool {
        // Each entry of the small queue once; those of the main queue four times: three uses, then their turn.
        let (mut small_left, mut main_left) = (self.small.len(), self.main.len() * 4);
        loop {
            let small_is_large = self.small.len() * SMALL_SHARE >= self.small.len() + self.main.len();
            if small_left > 0 && (small_is_large || main_left == 0) {
                small_left -= 1;
                let before = self.main.len();
                if self.try_small(judge) {
                    return true;
                }
                main_left += (self.main.len() - before) * 4;
            } else if main_left > 0 {
                main_left -= 1;
                if self.try_main(judge) {
                    return true;
                }
            } else {
                return false;
            }
        }
    }

    /// Drops the entries that `live` denies.
    pub fn retain(&mut self, mut live: impl FnMut(Block) -> bool) {
        self.small.retain(|block| live(*block));
        self.main.retain(|block| live(*block));
    }

    /// Entries, those of blocks that are gone among them.
    pub fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks that were admitted again while they were remembered, since the start.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Blocks that are remembered after they went.
    pub fn remembered(&self) -> usize {
        self.ghost.len() + self.parted.len()
    }

    /// Of those that returned, the ones with a mark ([`marked`]).
    pub fn returned_marked(&self) -> u64 {
        self.returned_marked
    }

    /// Of those that are remembered, the ones with a mark.
    pub fn remembered_marked(&self) -> usize {
        self.ghost.marked + self.parted.marked
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        (self.small.capacity() + self.main.capacity()) * size_of::<Block>() + self.ghost.heap_bytes() + self.parted.heap_bytes()
    }
}

/// Blocks that went without having been used again, the latest ones, by fingerprint: at most 20 bytes each. Two blocks
/// with one fingerprint (1 in 4 billion) cost a wrong guess of the policy, no more.
#[derive(Debug, Default)]
struct Ghost {
    order: VecDeque<u32>,
    set: HashSet<u32, BuildHasherDefault<HashedAlready>>,
    /// Marked ones of the set.
    marked: usize,
}

impl Ghost {
    /// Remembers a block, and forgets the oldest beyond `limit`.
    fn push(&mut self, fingerprint: u32, limit: usize) {
        if self.set.insert(fingerprint) {
            self.order.push_back(fingerprint);
            self.marked += usize::from(is_marked(fingerprint));
        }
        while self.order.len() > limit {
            if let Some(oldest) = self.order.pop_front() {
                self.take(oldest);
            }
        }
        debug_assert!(self.set.len() <= self.order.len(), "what is remembered has a place in the order");
    }

    /// Whether the block is remembered; it is forgotten by that.
    fn take(&mut self, fingerprint: u32) -> bool {
        // Its place in the order stays: taken once more before that comes up, it is forgotten early.
        let is_there = self.set.remove(&fingerprint);
        self.marked -= usize::from(is_there && is_marked(fingerprint));
        is_there
    }

    fn len(&self) -> usize {
        self.set.len()
    }

    fn heap_bytes(&self) -> usize {
        self.order.capacity() * size_of::<u32>() + self.set.capacity() * (size_of::<u32>() + 1) * 8 / 7
    }
}

/// What a policy remembers a block of a segment by after it went.
pub fn fingerprint(segment: SegmentId, block: u32) -> u32 {
    let id = (segment.0 as u64) ^ ((segment.0 >> 64) as u64).rotate_left(17);
    (id.wrapping_add(u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 16) as u32
}

/// The same with a mark, or without: blocks of two kinds in one tier are counted apart by it when they come back.
pub fn marked(fingerprint: u32, is_marked: bool) -> u32 {
    (fingerprint & !1) | u32::from(is_marked)
}

fn is_marked(fingerprint: u32) -> bool {
    fingerprint & 1 == 1
}

/// Spreads fingerprints, which are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct HashedAlready(u64);

impl Hasher for HashedAlready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u32(&mut self, fingerprint: u32) {
        self.0 = u64::from(fingerprint).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_passed_over_and_what_is_used_moves_on() {
        let mut policy = S3Fifo::default();
        (0..10).for_each(|number| policy.admit(number, number));
        // 0 is held, 1 was used twice, 2 is gone, 3 may go.
        let mut uses = 2;
        let mut asked = Vec::new();
        let mut judge = |asked_of: u32| {
            asked.push(asked_of);
            match asked_of {
                0 => Verdict::Held,
                1 if uses > 0 => {
                    uses -= 1;
                    Verdict::Used
                }
                2 => Verdict::Gone,
                number => Verdict::Taken(number),
            }
        };
        assert!(policy.evict(&mut judge));
        (0..7).for_each(|_| assert!(policy.evict(&mut judge)));
        assert_eq!(policy.len(), 1, "all but the held one are gone, the used one last");
        assert!(!policy.evict(&mut judge), "what is held stays");
        assert_eq!(asked[..4], [0, 1, 2, 3]);
        assert_eq!(asked.iter().filter(|number| **number == 1).count(), 3);
    }

    #[test]
    fn a_block_that_comes_back_soon_after_it_went_is_counted() {
        let mut policy = S3Fifo::default();
        (0..3).for_each(|number| policy.admit(number, number));
        assert!(policy.evict(&mut |block| Verdict::Taken(block)));
        assert_eq!((policy.returned, policy.remembered()), (0, 1));
        policy.admit(7u32, 7);
        policy.admit(0, 0);
        assert_eq!((policy.returned, policy.remembered()), (1, 0), "the first that came was the first that went");
        let mut policy = S3Fifo::default();
        policy.admit(1u32, 1);
        let mut asked = 0;
        assert!(policy.evict(&mut |_| {
            asked += 1;
            if asked == 1 { Verdict::Used } else { Verdict::Taken(1) }
        }));
        assert_eq!((policy.returned, policy.remembered()), (0, 1));
        policy.admit(1u32, 1);
        assert_eq!((policy.returned, policy.remembered()), (1, 0), "one that was used before counts too");
    }

    #[test]
    fn marked_blocks_are_counted_apart_when_they_come_back() {
        let mut policy = S3Fifo::default();
        let marks = [marked(10, true), marked(20, false), marked(31, false)];
        marks.iter().for_each(|mark| policy.admit(*mark, *mark));
        (0..3).for_each(|_| assert!(policy.evict(&mut |block| Verdict::Taken(block))));
        assert_eq!((policy.remembered(), policy.remembered_marked()), (3, 1));
        policy.admit(marks[1], marks[1]);
        assert_eq!((policy.returned(), policy.returned_marked(), policy.remembered_marked()), (1, 0, 1));
        policy.admit(marks[0], marks[0]);
        assert_eq!((policy.returned(), policy.returned_marked(), policy.remembered_marked()), (2, 1, 0));
        let many = (0..1000).map(|number| marked(number << 1, true));
        many.for_each(|mark| policy.ghost.push(mark, 100));
        assert_eq!(policy.remembered_marked(), 100, "what is forgotten is not counted");
    }

    #[test]
    fn only_held_blocks_end_the_search() {
        let mut policy = S3Fifo::default();
        (0..20).for_each(|number| policy.admit(number, number));
        let mut asked = 0;
        let mut judge = |_| {
            asked += 1;
            Verdict::Held
        };
        assert!(!policy.evict(&mut judge));
        assert_eq!(asked, 20);
    }
}
