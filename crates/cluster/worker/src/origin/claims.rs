//! What was brought ahead for an operation and is held until it is read: the claims of `forebay-eviction` on pages of the store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::{BlockStore, Pinned};
use forebay_eviction::HELD_MAX;
use forebay_types::{OperationId, PageRun, SegmentId};
use parking_lot::Mutex;

/// Makes a pin of pages that are there.
type Hold<'a> = dyn FnMut(SegmentId, PageRun) -> Option<Pinned> + 'a;
type Held = forebay_eviction::Claims<Pinned, Bringer, Instant>;

/// The claims on a worker's DRAM tier.
pub(crate) struct Claims {
    store: BlockStore,
    /// As the claims have it, for who has no need of their lock.
    bytes: AtomicU64,
    bringers: AtomicU64,
    held: Mutex<Held>,
}

/// Who has something brought: a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bringer(u64);

/// For whom something is held that was brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldFor {
    /// Who will read it.
    pub(crate) operation: OperationId,
    /// Who had it brought.
    pub(crate) by: Bringer,
    /// How long it is held at most.
    pub(crate) within: Duration,
}

impl Claims {
    pub(crate) fn new(store: BlockStore, dram_bytes: u64) -> Self {
        let (bytes, bringers) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { store, bytes, bringers, held: Mutex::new(Held::new(dram_bytes)) }
    }

    /// Somebody else than all before.
    pub(crate) fn bringer(&self) -> Bringer {
        let number = self.bringers.fetch_add(1, Relaxed);
        assert!(number < u64::MAX, "the last number is nobody's");
        Bringer(number)
    }

    /// Bytes that are held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Holds those of some pages that are in DRAM for an operation: as soon as there is room for claims, if they are there then.
    pub(crate) fn claim(&self, held_for: HeldFor, segment: SegmentId, run: PageRun) {
        let HeldFor { operation, by, within } = held_for;
        let until = forebay_runtime::now() + within.min(HELD_MAX);
        let held_for = forebay_eviction::HeldFor { operation, by, until };
        self.change(|held, hold| held.claim(held_for, segment, run, hold));
    }

    /// An operation has pages that it wants: they need not be held for it any more.
    pub(crate) fn read(&self, operation: OperationId, segment: SegmentId, run: PageRun) {
        if self.bytes() > 0 {
            self.change(|held, hold| held.read(operation, segment, run, hold));
        }
    }

    /// An operation reads nothing any more.
    pub(crate) fn ended(&self, operation: OperationId) {
        if self.bytes() > 0 {
            self.change(|held, hold| held.ended(operation, hold));
        }
    }

    /// Who had something brought says nothing any more: neither will it say that an operation has ended.
    pub(crate) fn gone(&self, bringer: Bringer) {
        assert!(bringer.0 < self.bringers.load(Relaxed), "who is gone was there");
        if self.bytes() > 0 {
            self.change(|held, hold| held.gone(bringer, hold));
        }
    }

    /// Ends claims whose time is over.
    pub(crate) fn tidy(&self) {
        if self.bytes() > 0 {
            let now = forebay_runtime::now();
            self.change(|held, hold| held.tidy(now, hold));
        }
    }

    /// Readers need the room: whether anything was held.
    pub(crate) fn give_way(&self) -> bool {
        self.change(|held, _| {
            let any = held.give_way();
            assert_eq!(held.bytes(), 0, "who gives way holds nothing");
            any
        })
    }

    /// Changes the claims, and tells how many bytes they are on then.
    fn change<T>(&self, change: impl FnOnce(&mut Held, &mut Hold<'_>) -> T) -> T {
        let mut held = self.held.lock();
        debug_assert_eq!(self.bytes(), held.bytes(), "what is told is what was held");
        let changed = change(&mut held, &mut |segment, run| self.store.hold(segment, run));
        self.bytes.store(held.bytes(), Relaxed);
        assert!(self.bytes() <= held.most_bytes(), "claims stay within their share of the tier");
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_block_store::{SegmentSpec, StoreSettings};
    use forebay_types::{Owner, PAGE_BYTES, PAGES_PER_BLOCK};

    const DRAM: u64 = 64 << 20;
    const LATER: Duration = Duration::from_secs(60);
    const SEGMENT: SegmentId = SegmentId(1);

    fn bring(store: &BlockStore, id: SegmentId, blocks: u32) {
        let spec = SegmentSpec { id, bytes: blocks << 20, owner: Owner::Cache, keep: false };
        let run = PageRun::new(0, blocks * PAGES_PER_BLOCK);
        let mut fill = store.begin_fill(spec, run).unwrap();
        fill.write(0, &vec![1; (blocks as usize) << 20]).unwrap();
        fill.finish().unwrap();
    }

    fn claimed(blocks: u32) -> (tempfile::TempDir, BlockStore, Claims) {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), DRAM)).unwrap();
        bring(&store, SEGMENT, blocks);
        let claims = Claims::new(store.clone(), DRAM);
        claims.claim(held_for(7, LATER), SEGMENT, PageRun::new(0, blocks * PAGES_PER_BLOCK));
        (folder, store, claims)
    }

    fn held_for(operation: u64, within: Duration) -> HeldFor {
        HeldFor { operation: OperationId(operation), by: Bringer(u64::MAX), within }
    }

    /// What others read meanwhile, three times what the tier takes.
    fn others_read(store: &BlockStore) {
        (0..24).for_each(|other| bring(store, SegmentId(100 + other), 8));
    }

    #[test]
    fn what_was_brought_ahead_was_evicted_before_it_was_read() {
        let (_folder, store, claims) = claimed(12);
        others_read(&store);
        let run = PageRun::new(0, 12 * PAGES_PER_BLOCK);
        assert!(store.pin(SEGMENT, run).is_some(), "all of it is there");
        assert_eq!(claims.bytes(), 12 << 20);
        // Block by block it is let go of.
        claims.read(OperationId(7), SEGMENT, PageRun::new(0, 300));
        assert_eq!(claims.bytes(), 11 << 20);
        claims.read(OperationId(8), SEGMENT, run);
        assert_eq!(claims.bytes(), 11 << 20, "another one has its own");
        claims.read(OperationId(7), SEGMENT, run);
        assert_eq!(claims.bytes(), 0);
        others_read(&store);
        assert!(store.pin(SEGMENT, run).is_none(), "as all else from then on");
    }

    #[test]
    fn no_more_than_a_share_is_claimed_and_all_of_it_ends() {
        let (_folder, store, claims) = claimed(40);
        assert_eq!(claims.bytes(), DRAM / 4);
        claims.ended(OperationId(8));
        assert_eq!(claims.bytes(), DRAM / 4);
        claims.read(OperationId(7), SEGMENT, PageRun::new(0, 512));
        assert_eq!(claims.bytes(), DRAM / 4, "what waited has the room");
        claims.ended(OperationId(7));
        assert_eq!((claims.bytes(), store.pinned_bytes()), (0, 0));
        claims.claim(held_for(1, Duration::ZERO), SEGMENT, PageRun::new(0, 256));
        claims.claim(held_for(2, LATER), SEGMENT, PageRun::new(100, 600));
        assert_eq!(claims.bytes(), 756 * PAGE_BYTES);
        claims.tidy();
        assert_eq!(claims.bytes(), 500 * PAGE_BYTES, "its time was over");
        assert!(claims.give_way() && !claims.give_way());
        assert_eq!((claims.bytes(), store.pinned_bytes()), (0, 0));
        claims.claim(held_for(2, LATER), SegmentId(99), PageRun::new(0, 1));
        assert_eq!(claims.bytes(), 0, "it is not there");
    }

    #[test]
    fn what_somebody_had_brought_who_is_gone_stayed_till_its_time_was_over() {
        let (_folder, store, claims) = claimed(40);
        let [first, second] = [claims.bringer(), claims.bringer()];
        assert_ne!(first, second);
        claims.gone(first);
        claims.ended(OperationId(7));
        assert_eq!(claims.bytes(), 0);
        let blocks = |first: u32, end: u32| PageRun::new(first * PAGES_PER_BLOCK, end * PAGES_PER_BLOCK);
        let by = |bringer| HeldFor { by: bringer, ..held_for(7, LATER) };
        // The second one's waits for room in part.
        claims.claim(by(first), SEGMENT, blocks(0, 15));
        claims.claim(by(second), SEGMENT, blocks(15, 20));
        assert_eq!(claims.bytes(), DRAM / 4);
        claims.gone(first);
        assert_eq!(claims.bytes(), 5 << 20, "of one operation, had brought by another one");
        claims.claim(by(first), SEGMENT, blocks(20, 21));
        claims.gone(second);
        assert_eq!(claims.bytes(), 1 << 20);
        claims.gone(first);
        assert_eq!((claims.bytes(), store.pinned_bytes()), (0, 0));
    }
}
