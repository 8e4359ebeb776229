//! What was brought ahead for an operation and is held until it is read.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use forebay_types::{OperationId, PAGE_BYTES, PAGES_PER_BLOCK, PageRun, PageSet, SegmentId};

/// Share of the DRAM tier that may be claimed, one in so many: what is brought beyond that is held by nothing until others were read.
const SHARE: u64 = 4;
/// Blocks that wait for room for claims at most.
const WAITING_MAX: usize = 4096;
/// The longest that anything is held for a reader that does not come.
pub const HELD_MAX: Duration = Duration::from_secs(300);

/// Pages that are held against eviction for an operation, which will read them soon: a full tier evicts first what came last
/// and was not read, which is exactly what is brought ahead. A claim ends when its operation has read the pages, or has ended; when
/// who had them brought is gone, and can't say that any more; when its time is over; and when readers find no room.
///
/// Pages are held by a `Pin`, which lets them go when it is dropped; who had them brought is a `Who`, and times are of a `Time`. Calls
/// after which there may be room take `hold`, which makes a pin, or none of pages that are not there.
#[derive(Debug)]
pub struct Claims<Pin, Who, Time> {
    most_bytes: u64,
    bytes: u64,
    claims: Held<Pin, Who, Time>,
    /// What came when there was no room for claims, in its order.
    waiting: VecDeque<Waiting<Who, Time>>,
}

/// What is held of a segment for an operation.
type Held<Pin, Who, Time> = HashMap<(OperationId, SegmentId), Vec<Claim<Pin, Who, Time>>>;

/// For whom something is held that was brought.
#[derive(Clone, Copy, Debug)]
pub struct HeldFor<Who, Time> {
    /// Who will read it.
    pub operation: OperationId,
    /// Who had it brought.
    pub by: Who,
    /// Until when it is held at most.
    pub until: Time,
}

/// Pages of one block that are to be held.
#[derive(Debug)]
struct Waiting<Who, Time> {
    held_for: HeldFor<Who, Time>,
    segment: SegmentId,
    run: PageRun,
}

/// Pages of one block.
#[derive(Debug)]
struct Claim<Pin, Who, Time> {
    /// Not read yet.
    left: PageSet,
    by: Who,
    bytes: u64,
    until: Time,
    _pin: Pin,
}

impl<Pin, Who: Copy + Eq, Time: Copy + Ord> Claims<Pin, Who, Time> {
    /// No claims on a tier of so many bytes.
    pub fn new(tier_bytes: u64) -> Self {
        Self { most_bytes: tier_bytes / SHARE, bytes: 0, claims: HashMap::new(), waiting: VecDeque::new() }
    }

    /// Bytes that are held now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that may be held at once.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Holds those of some pages that are there for an operation: as soon as there is room for claims, if they are there then.
    pub fn claim(
        &mut self,
        held_for: HeldFor<Who, Time>,
        segment: SegmentId,
        run: PageRun,
        hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>,
    ) {
        for run in by_block(run) {
            if self.waiting.len() < WAITING_MAX && bytes_of(run) <= self.most_bytes {
                self.waiting.push_back(Waiting { held_for, segment, run });
            }
        }
        debug_assert!(self.waiting.len() <= WAITING_MAX, "{} pages stand in line", self.waiting.len());
        self.hold_waiting(hold);
    }

    /// An operation has pages that it wants: they need not be held for it any more.
    pub fn read(
        &mut self,
        operation: OperationId,
        segment: SegmentId,
        run: PageRun,
        hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>,
    ) {
        let overlaps = |it: &Waiting<Who, Time>| it.run.start < run.end() && it.run.end() > run.start;
        self.waiting.retain(|it| it.held_for.operation != operation || it.segment != segment || !overlaps(it));
        if let Some(claims) = self.claims.get_mut(&(operation, segment)) {
            claims.iter_mut().for_each(|claim| claim.left.remove(run));
            let ended = claims.extract_if(.., |claim| claim.left.is_empty()).map(|claim| claim.bytes).sum();
            if claims.is_empty() {
                self.claims.remove(&(operation, segment));
            }
            self.give_back(ended);
        }
        self.hold_waiting(hold);
    }

    /// An operation reads nothing any more.
    pub fn ended(&mut self, operation: OperationId, hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>) {
        self.waiting.retain(|it| it.held_for.operation != operation);
        self.end_where(|of, _| of == operation);
        self.hold_waiting(hold);
    }

    /// Who had something brought says nothing any more: neither will it say that an operation has ended.
    pub fn gone(&mut self, by: Who, hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>) {
        self.waiting.retain(|it| it.held_for.by != by);
        self.end_where(|_, claim| claim.by == by);
        debug_assert!(self.claims.values().flatten().all(|claim| claim.by != by), "who is gone has nothing held");
        self.hold_waiting(hold);
    }

    /// Ends claims whose time is over.
    pub fn tidy(&mut self, now: Time, hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>) {
        self.waiting.retain(|it| it.held_for.until > now);
        self.end_where(|_, claim| claim.until <= now);
        self.hold_waiting(hold);
    }

    /// Readers need the room: whether anything was held.
    pub fn give_way(&mut self) -> bool {
        let any = self.bytes > 0;
        self.waiting.clear();
        self.end_where(|_, _| true);
        self.check();
        any
    }

    fn hold_waiting(&mut self, hold: &mut dyn FnMut(SegmentId, PageRun) -> Option<Pin>) {
        while let Some(next) = self.waiting.front() {
            let bytes = bytes_of(next.run);
            if self.bytes + bytes > self.most_bytes {
                break;
            }
            let Waiting { held_for, segment, run } = self.waiting.pop_front().expect("there is a first one");
            if let Some(pin) = hold(segment, run) {
                self.bytes += bytes;
                let HeldFor { operation, by, until } = held_for;
                let claim = Claim { left: std::iter::once(run).collect(), by, bytes, until, _pin: pin };
                self.claims.entry((operation, segment)).or_default().push(claim);
            }
        }
        self.check();
    }

    fn end_where(&mut self, goes: impl Fn(OperationId, &Claim<Pin, Who, Time>) -> bool) {
        let mut ended = 0;
        self.claims.retain(|(operation, _), claims| {
            ended += claims.extract_if(.., |claim| goes(*operation, claim)).map(|claim| claim.bytes).sum::<u64>();
            !claims.is_empty()
        });
        self.give_back(ended);
    }

    fn give_back(&mut self, bytes: u64) {
        assert!(self.bytes >= bytes, "a claim ends once");
        self.bytes -= bytes;
    }

    /// What is counted are the bytes of claims. O(claims) where debug assertions are on.
    fn check(&self) {
        assert!(self.bytes <= self.most_bytes, "claims stay within their share of the tier");
        let bytes = || self.claims.values().flatten().map(|claim| claim.bytes).sum::<u64>();
        debug_assert_eq!(self.bytes, bytes(), "the bytes that are held are those of claims");
        debug_assert!(self.claims.values().all(|claims| !claims.is_empty()), "who has nothing held is forgotten");
    }
}

fn bytes_of(run: PageRun) -> u64 {
    u64::from(run.len) * PAGE_BYTES
}

/// A run cut at the borders of blocks, which are what is evicted.
fn by_block(run: PageRun) -> impl Iterator<Item = PageRun> {
    let blocks = run.start / PAGES_PER_BLOCK..run.end().div_ceil(PAGES_PER_BLOCK);
    blocks.map(move |block| {
        let (start, end) = (block * PAGES_PER_BLOCK, (block + 1) * PAGES_PER_BLOCK);
        PageRun::new(run.start.max(start), run.end().min(end))
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    const SEGMENT: SegmentId = SegmentId(1);

    fn held_for(operation: u64, until: u64) -> HeldFor<u8, u64> {
        HeldFor { operation: OperationId(operation), by: 0, until }
    }

    #[test]
    fn runs_are_cut_at_the_borders_of_blocks() {
        let cut = |start, end| by_block(PageRun::new(start, end)).collect::<Vec<_>>();
        assert_eq!(cut(10, 20), [PageRun::new(10, 20)]);
        assert_eq!(cut(0, 256), [PageRun::new(0, 256)]);
        assert_eq!(cut(200, 600), [PageRun::new(200, 256), PageRun::new(256, 512), PageRun::new(512, 600)]);
    }

    #[test]
    fn a_claim_holds_its_pin_until_it_is_read_and_the_next_one_has_the_room() {
        // Room for claims on two blocks of eight.
        let mut claims: Claims<Rc<()>, u8, u64> = Claims::new(8 << 20);
        let pins = Rc::new(());
        let mut hold = |_, _| Some(Rc::clone(&pins));
        claims.claim(held_for(7, 100), SEGMENT, PageRun::new(0, 768), &mut hold);
        assert_eq!((claims.bytes(), Rc::strong_count(&pins)), (2 << 20, 3), "the third block waits");
        claims.read(OperationId(7), SEGMENT, PageRun::new(0, 255), &mut hold);
        assert_eq!(claims.bytes(), 2 << 20, "a page of the first block is left");
        claims.read(OperationId(7), SEGMENT, PageRun::new(255, 256), &mut hold);
        assert_eq!((claims.bytes(), Rc::strong_count(&pins)), (2 << 20, 3), "the third has the room of the first");
        claims.tidy(99, &mut hold);
        assert_eq!(claims.bytes(), 2 << 20);
        claims.tidy(100, &mut hold);
        assert_eq!((claims.bytes(), Rc::strong_count(&pins)), (0, 1), "their time is over");
    }

    #[test]
    fn what_is_not_there_is_not_held() {
        let mut claims: Claims<(), u8, u64> = Claims::new(8 << 20);
        claims.claim(held_for(7, 100), SEGMENT, PageRun::new(0, 256), &mut |_, _| None);
        assert_eq!(claims.bytes(), 0);
        assert!(!claims.give_way());
    }
}
