//! Where the pieces of split segments lie while a packing is repacked.

use crate::Snapshot;
use crate::plan::dice::Dice;
use crate::plan::packing::Piece;

/// Marks a segment that isn't split.
const WHOLE: u32 = u32::MAX;

/// Where the pieces of split segments lie, and which of these have more than they need.
pub(super) struct Homes {
    /// By segment: where its workers stand in `workers`, or [`WHOLE`].
    slots: Vec<u32>,
    workers: Vec<Vec<u32>>,
    free: Vec<u32>,
    /// By segment: pieces that it needs.
    needed: Vec<u32>,
    /// Split into more pieces than needed, in no order.
    pub(super) loose: Vec<u32>,
    /// By segment: its place in `loose`, or [`WHOLE`].
    places: Vec<u32>,
}

impl Homes {
    pub(super) fn of(snapshot: &Snapshot<'_>, bags: &[Vec<Piece>], widest: u64) -> Self {
        let segments = snapshot.segments.len();
        let mut pieces = vec![0u32; segments];
        let mut placed = vec![0u64; segments];
        for piece in bags.iter().flatten() {
            pieces[piece.segment as usize] += 1;
            placed[piece.segment as usize] += piece.count;
        }
        let needed = placed.iter().map(|count| count.div_ceil(widest.max(1)) as u32).collect();
        let mut homes = Self {
            slots: vec![WHOLE; segments],
            workers: Vec::new(),
            free: Vec::new(),
            needed,
            loose: Vec::new(),
            places: vec![WHOLE; segments],
        };
        let mut split: Vec<(u32, u32)> = Vec::new();
        for (worker, bag) in (0..).zip(bags) {
            split.extend(bag.iter().filter(|piece| pieces[piece.segment as usize] > 1).map(|piece| (piece.segment, worker)));
        }
        split.sort_unstable();
        for part in split.chunk_by(|one, other| one.0 == other.0) {
            homes.set(part[0].0, part.iter().map(|(_, worker)| *worker).collect());
        }
        homes
    }

    /// The workers of a split segment.
    pub(super) fn of_split(&self, segment: u32) -> &[u32] {
        match self.slots[segment as usize] {
            WHOLE => &[],
            slot => &self.workers[slot as usize],
        }
    }

    /// One of the segments that have more pieces than they need.
    pub(super) fn loose(&self, dice: &mut Dice) -> Option<u32> {
        (!self.loose.is_empty()).then(|| self.loose[dice.below(self.loose.len())])
    }

    /// The workers of `set` were packed anew: `items` lie elsewhere among them.
    pub(super) fn moved(&mut self, items: &[Piece], set: &[u32], bags: &[Vec<Piece>]) {
        let mut inside: Vec<(u32, u32)> = Vec::with_capacity(items.len() + set.len());
        for worker in set {
            inside.extend(bags[*worker as usize].iter().map(|piece| (piece.segment, *worker)));
        }
        inside.sort_unstable();
        for part in inside.chunk_by(|one, other| one.0 == other.0) {
            let segment = part[0].0;
            if part.len() == 1 && self.slots[segment as usize] == WHOLE {
                continue;
            }
            let outside = self.of_split(segment).iter().copied().filter(|worker| !set.contains(worker));
            let workers = outside.chain(part.iter().map(|(_, worker)| *worker)).collect();
            self.set(segment, workers);
        }
    }

    fn set(&mut self, segment: u32, workers: Vec<u32>) {
        let at = segment as usize;
        let loose = workers.len() > self.needed[at] as usize;
        match (workers.len() > 1, self.slots[at]) {
            (true, WHOLE) => {
                let slot = self.free.pop().unwrap_or(self.workers.len() as u32);
                if slot as usize == self.workers.len() {
                    self.workers.push(workers);
                } else {
                    self.workers[slot as usize] = workers;
                }
                self.slots[at] = slot;
            }
            (true, slot) => self.workers[slot as usize] = workers,
            (false, WHOLE) => {}
            (false, slot) => {
                self.slots[at] = WHOLE;
                self.free.push(slot);
            }
        }
        match (loose, self.places[at]) {
            (true, WHOLE) => {
                self.places[at] = self.loose.len() as u32;
                self.loose.push(segment);
            }
            (false, place) if place != WHOLE => {
                self.loose.swap_remove(place as usize);
                if let Some(moved) = self.loose.get(place as usize) {
                    self.places[*moved as usize] = place;
                }
                self.places[at] = WHOLE;
            }
            _ => {}
        }
    }
}
