use std::collections::VecDeque;

use super::eviction::{Eviction, Verdict};
use super::ghost::Ghost;
use crate::table::BlockRef;

/// Share of the entries that the small queue is cut back to: one in this many.
const SMALL_SHARE: usize = 10;
/// Entries remembered after they went, however few there are.
const GHOSTS_MIN: usize = 64;

/// S3-FIFO (Yang et al., SOSP'23) over blocks. New blocks enter a small queue; those used again while they pass through it
/// move to the main queue, the others go and are remembered for a while: coming back, they enter the main queue at once.
/// So a scan, however long, only ever takes the small queue, a tenth of the tier.
///
/// Where the paper asks for two uses to leave the small queue, one is enough here, since reads of one pass over a
/// block count as none (`Segment::read`).
#[derive(Default)]
pub(crate) struct S3Fifo {
    small: VecDeque<BlockRef>,
    main: VecDeque<BlockRef>,
    ghost: Ghost,
}

impl S3Fifo {
    fn evict_from_small(&mut self, judge: &mut dyn FnMut(BlockRef) -> Verdict) -> Option<bool> {
        let block = self.small.pop_front()?;
        match judge(block) {
            Verdict::Gone => {}
            // Held blocks are no newcomers any more when they come up next.
            Verdict::Held | Verdict::Used => self.main.push_back(block),
            Verdict::Taken(fingerprint) => {
                let limit = (self.small.len() + self.main.len()).max(GHOSTS_MIN);
                self.ghost.push(fingerprint, limit);
                return Some(true);
            }
        }
        Some(false)
    }

    fn evict_from_main(&mut self, judge: &mut dyn FnMut(BlockRef) -> Verdict) -> Option<bool> {
        let block = self.main.pop_front()?;
        match judge(block) {
            Verdict::Gone => {}
            Verdict::Held | Verdict::Used => self.main.push_back(block),
            Verdict::Taken(_) => return Some(true),
        }
        Some(false)
    }
}

impl Eviction for S3Fifo {
    fn admit(&mut self, block: BlockRef, fingerprint: u32) {
        if self.ghost.take(fingerprint) {
            self.main.push_back(block);
        } else {
            self.small.push_back(block);
        }
    }

    fn evict(&mut self, judge: &mut dyn FnMut(BlockRef) -> Verdict) -> bool {
        // Every entry of the main queue is gone round at most four times: three uses, then its turn.
        let tries = self.small.len() * 5 + self.main.len() * 4;
        for _ in 0..tries {
            let from_small = self.small.len() * SMALL_SHARE >= self.small.len() + self.main.len();
            let taken = if from_small { self.evict_from_small(judge) } else { self.evict_from_main(judge) };
            match taken {
                Some(true) => return true,
                Some(false) => {}
                None => break,
            }
        }
        // The main queue may hold nothing but what is held, while the small one is below its share.
        while let Some(taken) = self.evict_from_small(judge) {
            if taken {
                return true;
            }
        }
        false
    }

    fn retain(&mut self, live: &mut dyn FnMut(BlockRef) -> bool) {
        self.small.retain(|block| live(*block));
        self.main.retain(|block| live(*block));
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    fn heap_bytes(&self) -> usize {
        (self.small.capacity() + self.main.capacity()) * size_of::<BlockRef>() + self.ghost.heap_bytes()
    }
}
