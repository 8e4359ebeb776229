//! The tiers of one worker, as counts: what is taken out next, and what is held, is decided as in the block store and the worker.

use std::collections::BTreeMap;
use std::rc::Rc;

use forebay_eviction::{Claims, HELD_MAX, HeldFor, S3Fifo, Uses, Verdict, fingerprint};
use forebay_types::{OperationId, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, SegmentId, mix64};

use crate::workload::Micros;

/// A segment and one of its blocks.
type Block = (u64, u32);

/// A pin of a block: it lives as long as a claim.
type Pin = Rc<()>;

/// Memory and disk of a worker; each segment is as long as a task's input.
pub(super) struct Tiers {
    dram: Tier,
    disk: Tier,
    segments: BTreeMap<u64, Held>,
    claims: Claims<Pin, (), Micros>,
    /// Of a segment.
    pages: u32,
    /// What has left both tiers and was not asked for yet by [`Self::gone`].
    gone: Vec<Block>,
    pub counts: Counts,
}

/// Blocks that came and went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Brought ahead of the tasks that read them.
    pub ahead: u64,
    /// Of these, gone before one of them did.
    pub unread: u64,
    /// Gone from both tiers.
    pub evicted: u64,
    /// Came without finding any room: whoever waits for them reads them all the same.
    pub passed: u64,
}

impl Counts {
    /// Both together.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            ahead: self.ahead + other.ahead,
            unread: self.unread + other.unread,
            evicted: self.evicted + other.evicted,
            passed: self.passed + other.passed,
        }
    }

    /// What was counted since an earlier time.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            ahead: self.ahead - before.ahead,
            unread: self.unread - before.unread,
            evicted: self.evicted - before.evicted,
            passed: self.passed - before.passed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Dram,
    Disk,
}

/// One tier's books, in pages.
#[derive(Default)]
struct Tier {
    capacity: u64,
    used: u64,
    policy: S3Fifo<Block>,
}

/// What is there of a segment: a bit a block.
#[derive(Default)]
struct Held {
    dram: TierCopy,
    disk: TierCopy,
    /// Read since it came into memory.
    read: u64,
    /// Brought ahead and not read yet.
    ahead: u64,
    /// Transfers that are on their way: nothing of it is taken out meanwhile.
    coming: u32,
    pins: BTreeMap<u32, Pin>,
}

#[derive(Default)]
struct TierCopy {
    present: u64,
    uses: Uses,
}

impl Held {
    fn copy(&mut self, kind: Kind) -> &mut TierCopy {
        match kind {
            Kind::Dram => &mut self.dram,
            Kind::Disk => &mut self.disk,
        }
    }

    fn present(&self) -> u64 {
        self.dram.present | self.disk.present
    }

    fn is_pinned(&self, block: u32) -> bool {
        self.coming > 0 || self.pins.get(&block).is_some_and(|pin| Rc::strong_count(pin) > 1)
    }
}

impl Tiers {
    /// Empty tiers of so many bytes, for segments of so many pages.
    pub(super) fn new(dram_bytes: u64, disk_bytes: u64, pages: u32) -> Self {
        let tier = |bytes: u64| Tier { capacity: bytes / PAGE_BYTES, ..Tier::default() };
        Self {
            dram: tier(dram_bytes),
            disk: tier(disk_bytes),
            segments: BTreeMap::new(),
            claims: Claims::new(dram_bytes),
            pages,
            gone: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Whether all of a segment is in one tier or the other.
    pub(super) fn has(&self, segment: u64) -> bool {
        self.segments.get(&segment).is_some_and(|held| held.present() == self.all())
    }

    /// Bytes of a segment that are on disk only.
    pub(super) fn on_disk_bytes(&self, segment: u64) -> u64 {
        self.segments.get(&segment).map_or(0, |held| self.bytes(held.disk.present & !held.dram.present))
    }

    /// A transfer of a segment begins: what is missing of it, in bytes. Until it [`arrives`](Self::arrive) what is there stays.
    pub(super) fn begin(&mut self, segment: u64) -> u64 {
        let held = self.segments.entry(segment).or_default();
        held.coming += 1;
        let missing = !held.present();
        self.bytes(missing & self.all())
    }

    /// A transfer has ended: its blocks come into memory as far as there is room, for a task that waits or ahead of one of an operation, for
    /// which they are held then.
    pub(super) fn arrive(&mut self, segment: u64, ahead_for: Option<OperationId>, now: Micros) {
        for block in 0..self.blocks() {
            let was_there = self.segments.get(&segment).is_some_and(|held| held.present() >> block & 1 == 1);
            let came = self.put(segment, block) || (ahead_for.is_none() && self.claims.give_way() && self.put(segment, block));
            self.counts.passed += u64::from(!came);
            let Some(operation) = ahead_for.filter(|_| came) else { continue };
            if !was_there {
                self.counts.ahead += 1;
                self.segments.entry(segment).or_default().ahead |= 1 << block;
            }
            let until = now.saturating_add(HELD_MAX.as_micros() as Micros);
            let held_for = HeldFor { operation, by: (), until };
            let run = self.run(block);
            let Self { claims, segments, .. } = self;
            claims.claim(held_for, SegmentId(segment.into()), run, &mut |segment, run| pin(segments, segment, run));
        }
        let held = self.segments.entry(segment).or_default();
        assert!(held.coming > 0, "what has arrived was on its way");
        held.coming -= 1;
    }

    /// An operation reads all of a segment, what is on disk only by way of memory.
    pub(super) fn read(&mut self, segment: u64, operation: OperationId) {
        for block in 0..self.blocks() {
            let is_on_disk = self.segments.get(&segment).is_some_and(|held| held.disk.present >> block & 1 == 1);
            if is_on_disk && !self.put(segment, block) && self.claims.give_way() {
                self.put(segment, block);
            }
        }
        let all = PageRun::new(0, self.pages);
        let Some(held) = self.segments.get_mut(&segment) else { return };
        let again = held.read & held.dram.present;
        held.dram.uses.add(again);
        held.disk.uses.add(again);
        held.read |= held.dram.present;
        held.ahead = 0;
        let Self { claims, segments, .. } = self;
        claims.read(operation, SegmentId(segment.into()), all, &mut |segment, run| pin(segments, segment, run));
    }

    /// An operation reads nothing any more, and the time of claims passes.
    pub(super) fn ended(&mut self, operation: OperationId, now: Micros) {
        if self.claims.bytes() > 0 {
            let Self { claims, segments, .. } = self;
            claims.tidy(now, &mut |segment, run| pin(segments, segment, run));
            claims.ended(operation, &mut |segment, run| pin(segments, segment, run));
        }
    }

    /// What has left both tiers since this was last asked.
    pub(super) fn gone(&mut self) -> Vec<(SegmentId, PageRun)> {
        let gone = std::mem::take(&mut self.gone);
        gone.into_iter().map(|(segment, block)| (SegmentId(segment.into()), self.run(block))).collect()
    }

    /// What is counted is there, and fits.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let bytes = |present: fn(&Held) -> u64| self.segments.values().map(|held| self.bytes(present(held))).sum::<u64>();
        let (dram, disk) = (bytes(|held| held.dram.present), bytes(|held| held.disk.present));
        assert_eq!((self.dram.used * PAGE_BYTES, self.disk.used * PAGE_BYTES), (dram, disk));
        assert!(self.dram.used <= self.dram.capacity && self.disk.used <= self.disk.capacity);
    }

    /// A block comes into memory, and from there to the disk that is behind it; false where memory has no room.
    fn put(&mut self, segment: u64, block: u32) -> bool {
        if self.is_in(Kind::Dram, segment, block) {
            return true;
        }
        if !self.admit(Kind::Dram, segment, block) {
            return false;
        }
        if !self.is_in(Kind::Disk, segment, block) {
            // Where the disk has no room it stays in memory only.
            self.admit(Kind::Disk, segment, block);
        }
        true
    }

    fn is_in(&self, kind: Kind, segment: u64, block: u32) -> bool {
        let present = |held: &Held| match kind {
            Kind::Dram => held.dram.present,
            Kind::Disk => held.disk.present,
        };
        self.segments.get(&segment).is_some_and(|held| present(held) >> block & 1 == 1)
    }

    /// Makes room and takes a block in; false where all else is held.
    fn admit(&mut self, kind: Kind, segment: u64, block: u32) -> bool {
        let pages = u64::from(self.run(block).len);
        while !self.tier(kind).has_room(pages) {
            if !self.evict(kind) {
                return false;
            }
        }
        let tier = self.tier(kind);
        tier.used += pages;
        tier.policy.admit((segment, block), remembered_by((segment, block)));
        let held = self.segments.entry(segment).or_default();
        let copy = held.copy(kind);
        assert!(copy.present >> block & 1 == 0, "a block comes into a tier that it is not in");
        copy.present |= 1 << block;
        true
    }

    /// Takes out the block that the policy names; false where none may go.
    fn evict(&mut self, kind: Kind) -> bool {
        let Self { dram, disk, segments, gone, counts, .. } = self;
        let tier = match kind {
            Kind::Dram => dram,
            Kind::Disk => disk,
        };
        let mut taken = None;
        let found = tier.policy.evict(&mut |block| {
            let verdict = judge(kind, segments, block);
            if matches!(verdict, Verdict::Taken(_)) {
                taken = Some(block);
            }
            verdict
        });
        let Some((segment, block)) = taken else { return false };
        assert!(found, "what is taken is told");
        let held = segments.get_mut(&segment).expect("a block that was there is of a segment that is known");
        if held.present() >> block & 1 == 0 {
            counts.evicted += 1;
            counts.unread += held.ahead >> block & 1;
            held.ahead &= !(1 << block);
            gone.push((segment, block));
        }
        if held.present() == 0 && held.coming == 0 {
            segments.remove(&segment);
        }
        let pages = u64::from(self.run(block).len);
        let tier = self.tier(kind);
        assert!(tier.used >= pages, "{pages} pages given back of {}", tier.used);
        tier.used -= pages;
        true
    }

    fn tier(&mut self, kind: Kind) -> &mut Tier {
        match kind {
            Kind::Dram => &mut self.dram,
            Kind::Disk => &mut self.disk,
        }
    }

    fn blocks(&self) -> u32 {
        self.pages.div_ceil(PAGES_PER_BLOCK)
    }

    /// A bit for each block that a segment has.
    fn all(&self) -> u64 {
        u64::MAX >> (64 - self.blocks())
    }

    fn run(&self, block: u32) -> PageRun {
        PageRun::new(block * PAGES_PER_BLOCK, ((block + 1) * PAGES_PER_BLOCK).min(self.pages))
    }

    fn bytes(&self, blocks: u64) -> u64 {
        (0..self.blocks()).filter(|block| blocks >> block & 1 == 1).map(|block| u64::from(self.run(block).len) * PAGE_BYTES).sum()
    }
}

impl Tier {
    fn has_room(&self, pages: u64) -> bool {
        self.used + pages <= self.capacity
    }
}

/// What there is to say of a block that the policy considers; one that may go is out of the tier.
fn judge(kind: Kind, segments: &mut BTreeMap<u64, Held>, (segment, block): Block) -> Verdict {
    let Some(held) = segments.get_mut(&segment) else { return Verdict::Gone };
    let is_pinned = held.is_pinned(block);
    let copy = held.copy(kind);
    if copy.present >> block & 1 == 0 {
        return Verdict::Gone;
    }
    if is_pinned {
        return Verdict::Held;
    }
    if copy.uses.take(block) {
        return Verdict::Used;
    }
    copy.present &= !(1 << block);
    copy.uses.clear(block);
    if kind == Kind::Dram {
        held.read &= !(1 << block);
    }
    Verdict::Taken(remembered_by((segment, block)))
}

/// What the policy remembers a block by: ids of segments are hashes where they are live, and small numbers, which share what a fingerprint
/// takes of them, here.
pub(super) fn remembered_by((segment, block): Block) -> u32 {
    fingerprint(SegmentId(mix64(segment).into()), block)
}

/// A pin of a block that is in memory.
fn pin(segments: &mut BTreeMap<u64, Held>, segment: SegmentId, run: PageRun) -> Option<Pin> {
    let held = segments.get_mut(&(segment.0 as u64))?;
    let block = run.start / PAGES_PER_BLOCK;
    (held.dram.present >> block & 1 == 1).then(|| Rc::clone(held.pins.entry(block).or_default()))
}
