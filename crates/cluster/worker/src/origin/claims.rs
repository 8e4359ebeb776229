//! What was brought ahead for an operation and is held until it is read.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_block_store::{BlockStore, Pinned};
use forebay_types::{OperationId, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, PageSet, SegmentId};
use parking_lot::Mutex;

use super::obtain::parts;

/// Share of the DRAM tier that may be claimed, one in so many: what is brought beyond that is held by nothing until others were read.
const SHARE: u64 = 4;
/// Blocks that wait for room for claims at most.
const WAITING_MAX: usize = 4096;
/// The longest that anything is held for a reader that does not come.
const HELD_MAX: Duration = Duration::from_secs(300);

/// Pages that are held against eviction for an operation, which will read them soon: a full tier evicts first what came last
/// and was not read, which is exactly what is brought ahead. A claim ends when its operation has read the pages, or has ended; when
/// who had them brought is gone, and can't say that any more; when its time is over; and when readers find no room.
pub(crate) struct Claims {
    store: BlockStore,
    most_bytes: u64,
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

#[derive(Default)]
struct Held {
    claims: HashMap<(OperationId, SegmentId), Vec<Claim>>,
    /// What came when there was no room for claims, in its order.
    waiting: VecDeque<Waiting>,
}

/// Pages of one block that are to be held.
struct Waiting {
    operation: OperationId,
    by: Bringer,
    segment: SegmentId,
    run: PageRun,
    until: Instant,
}

/// Pages of one block.
struct Claim {
    /// Not read yet.
    left: PageSet,
    by: Bringer,
    bytes: u64,
    until: Instant,
    _pinned: Pinned,
}

impl Claims {
    pub(crate) fn new(store: BlockStore, dram_bytes: u64) -> Self {
        let (bytes, bringers) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { store, most_bytes: dram_bytes / SHARE, bytes, bringers, held: Mutex::default() }
    }

    /// Somebody else than all before.
    pub(crate) fn bringer(&self) -> Bringer {
        Bringer(self.bringers.fetch_add(1, Relaxed))
    }

    /// Bytes that are held now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Holds those of some pages that are in DRAM for an operation: as soon as there is room for claims, if they are there then.
    pub(crate) fn claim(&self, held_for: HeldFor, segment: SegmentId, run: PageRun) {
        let HeldFor { operation, by, within } = held_for;
        let until = forebay_runtime::now() + within.min(HELD_MAX);
        let mut held = self.held.lock();
        for run in by_block(run) {
            if held.waiting.len() < WAITING_MAX && u64::from(run.len) * PAGE_BYTES <= self.most_bytes {
                held.waiting.push_back(Waiting { operation, by, segment, run, until });
            }
        }
        self.hold_waiting(&mut held);
        self.check(&held);
    }

    /// What is counted are the bytes of claims, which change under the lock only. O(claims).
    fn check(&self, held: &Held) {
        let bytes = || held.claims.values().flatten().map(|claim| claim.bytes).sum::<u64>();
        debug_assert_eq!(self.bytes(), bytes(), "the bytes that are held are those of claims");
        debug_assert!(held.claims.values().all(|claims| !claims.is_empty()), "who has nothing held is forgotten");
    }

    fn hold_waiting(&self, held: &mut Held) {
        while let Some(next) = held.waiting.front() {
            let bytes = u64::from(next.run.len) * PAGE_BYTES;
            if self.bytes() + bytes > self.most_bytes {
                return;
            }
            let Waiting { operation, by, segment, run, until } = held.waiting.pop_front().expect("there is a first one");
            if let Some(pinned) = self.store.hold(segment, run) {
                self.bytes.fetch_add(bytes, Relaxed);
                let claim = Claim { left: std::iter::once(run).collect(), by, bytes, until, _pinned: pinned };
                held.claims.entry((operation, segment)).or_default().push(claim);
                assert!(self.bytes() <= self.most_bytes, "claims stay within their share of the tier");
            }
        }
    }

    /// An operation has pages that it wants: they need not be held for it any more.
    pub(crate) fn read(&self, operation: OperationId, segment: SegmentId, run: PageRun) {
        if self.bytes() == 0 {
            return;
        }
        let mut held = self.held.lock();
        let overlaps = |it: &Waiting| it.run.start < run.end() && it.run.end() > run.start;
        held.waiting.retain(|it| it.operation != operation || it.segment != segment || !overlaps(it));
        if let Some(claims) = held.claims.get_mut(&(operation, segment)) {
            for claim in claims.iter_mut() {
                claim.left.remove(run);
            }
            self.drop_where(claims, |claim| claim.left.is_empty());
            if claims.is_empty() {
                held.claims.remove(&(operation, segment));
            }
        }
        self.hold_waiting(&mut held);
        self.check(&held);
    }

    /// An operation reads nothing any more.
    pub(crate) fn ended(&self, operation: OperationId) {
        if self.bytes() > 0 {
            let mut held = self.held.lock();
            held.waiting.retain(|it| it.operation != operation);
            self.drop_all_where(&mut held, |of, _| of == operation);
        }
    }

    /// Who had something brought says nothing any more: neither will it say that an operation has ended.
    pub(crate) fn gone(&self, bringer: Bringer) {
        if self.bytes() > 0 {
            let mut held = self.held.lock();
            held.waiting.retain(|it| it.by != bringer);
            self.drop_all_where(&mut held, |_, claim| claim.by == bringer);
            debug_assert!(held.claims.values().flatten().all(|claim| claim.by != bringer), "who is gone has nothing held");
        }
    }

    /// Ends claims whose time is over.
    pub(crate) fn tidy(&self) {
        if self.bytes() > 0 {
            let (mut held, now) = (self.held.lock(), forebay_runtime::now());
            held.waiting.retain(|it| it.until > now);
            self.drop_all_where(&mut held, |_, claim| claim.until <= now);
        }
    }

    /// Readers need the room: whether anything was held.
    pub(crate) fn give_way(&self) -> bool {
        let any = self.bytes() > 0;
        let mut held = self.held.lock();
        held.waiting.clear();
        self.drop_all_where(&mut held, |_, _| true);
        any
    }

    fn drop_all_where(&self, held: &mut Held, goes: impl Fn(OperationId, &Claim) -> bool) {
        held.claims.retain(|(operation, _), claims| {
            self.drop_where(claims, |claim| goes(*operation, claim));
            !claims.is_empty()
        });
        self.hold_waiting(held);
        self.check(held);
    }

    fn drop_where(&self, claims: &mut Vec<Claim>, goes: impl Fn(&Claim) -> bool) {
        let bytes: u64 = claims.extract_if(.., |claim| goes(claim)).map(|claim| claim.bytes).sum();
        let before = self.bytes.fetch_sub(bytes, Relaxed);
        assert!(before >= bytes, "a claim ends once");
    }
}

/// A run cut at the borders of blocks, which are what is evicted.
fn by_block(run: PageRun) -> impl Iterator<Item = PageRun> {
    let border = (run.start / PAGES_PER_BLOCK + 1) * PAGES_PER_BLOCK;
    let first = PageRun::new(run.start, run.end().min(border));
    let rest = (border < run.end()).then(|| parts(PageRun::new(border, run.end()), PAGES_PER_BLOCK));
    std::iter::once(first).chain(rest.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_block_store::{SegmentSpec, StoreSettings};
    use forebay_types::Owner;

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
        assert_eq!(claims.bytes(), DRAM / SHARE);
        claims.ended(OperationId(8));
        assert_eq!(claims.bytes(), DRAM / SHARE);
        claims.read(OperationId(7), SEGMENT, PageRun::new(0, 512));
        assert_eq!(claims.bytes(), DRAM / SHARE, "what waited has the room");
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
        assert_eq!(claims.bytes(), DRAM / SHARE);
        claims.gone(first);
        assert_eq!(claims.bytes(), 5 << 20, "of one operation, had brought by another one");
        claims.claim(by(first), SEGMENT, blocks(20, 21));
        claims.gone(second);
        assert_eq!(claims.bytes(), 1 << 20);
        claims.gone(first);
        assert_eq!((claims.bytes(), store.pinned_bytes()), (0, 0));
    }
}
