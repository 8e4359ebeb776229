//! Saves replicas by packing small sets of workers anew.
//!
//! A plan whose pieces form a forest has segments + workers used - trees replicas, so fewer replicas means more groups of
//! workers that share no segment with others. Counting them at the best is bin packing, whatever Getafix says of Best Fit
//! (section 3.3, theorem 3.4): with counts 3,3,2,2,2,2 on two workers it needs 7 replicas where 6 do.
//!
//! Each step takes the workers of a split segment and a few others, puts the pieces that lie on them together, and fills
//! the workers one after the other, looking for a set of segments that fills each without splitting one (`fill`). What
//! isn't worse is kept, so the search also moves along plateaus, and the result is never worse than the start.

mod fill;
mod homes;

use fill::Filler;
use homes::Homes;

use crate::plan::dice::Dice;
use crate::plan::packing::{Packing, Piece};
use crate::{Holdings, PlanSettings, Snapshot};

/// Workers that are packed anew at once.
const SET_MAX: usize = 8;
/// Tries for each split that may be saved, in large clusters.
const TRIES_PER_SPLIT: usize = 32;
/// Tries that large clusters come to at most.
const TRIES_MAX: usize = 20_000;

/// What a piece costs.
#[derive(Clone, Copy)]
pub(crate) enum Price<'a> {
    /// Every piece the same: fewest replicas.
    Replicas,
    /// Bytes that are kept, and once more when they have to be brought to a worker that doesn't hold them.
    Bytes(&'a Holdings),
}

/// Packs small sets of workers anew until no segment has more pieces than it needs, or the settings' iterations are over;
/// where many segments are split there are more.
pub(crate) fn repack(snapshot: &Snapshot<'_>, packing: &mut Packing, price: Price<'_>, settings: &PlanSettings) {
    if settings.iterations > 0 {
        let mut repack = Repack::new(snapshot, packing, price, settings.seed);
        let many = (TRIES_PER_SPLIT * repack.homes.loose.len()).min(TRIES_MAX);
        repack.run(many.max(settings.iterations as usize));
    }
}

struct Repack<'a> {
    snapshot: &'a Snapshot<'a>,
    packing: &'a mut Packing,
    price: Price<'a>,
    homes: Homes,
    dice: Dice,
    filler: Filler,
    /// The workers that are packed anew.
    set: Vec<u32>,
    /// What lies on them, by segment, whole.
    items: Vec<Piece>,
}

impl<'a> Repack<'a> {
    fn new(snapshot: &'a Snapshot<'a>, packing: &'a mut Packing, price: Price<'a>, seed: u64) -> Self {
        let homes = Homes::of(snapshot, &packing.bags, packing.widest());
        Self {
            snapshot,
            packing,
            price,
            homes,
            dice: Dice::new(seed),
            filler: Filler::default(),
            set: Vec::new(),
            items: Vec::new(),
        }
    }

    fn run(&mut self, iterations: usize) {
        for _ in 0..iterations {
            let Some(segment) = self.homes.loose(&mut self.dice) else { break };
            self.choose(segment);
            if self.set.len() > 1 {
                self.gather();
                self.rebuild();
            }
        }
    }

    /// The workers of `segment` that it doesn't fill alone, and a few others.
    fn choose(&mut self, segment: u32) {
        self.set.clear();
        let bags = &self.packing.bags;
        let solid = |worker: u32| bags[worker as usize].len() == 1 && self.packing.room[worker as usize] == 0;
        self.set.extend(self.homes.of_split(segment).iter().copied().filter(|worker| !solid(*worker)).take(SET_MAX - 2));
        let others = 1 + self.dice.below(6);
        let goal = (self.set.len() + others).min(SET_MAX);
        for _ in 0..4 * others {
            let worker = self.dice.below(bags.len()) as u32;
            if self.set.len() < goal && !self.set.contains(&worker) && !solid(worker) {
                self.set.push(worker);
            }
        }
        self.dice.shuffle(&mut self.set);
    }

    /// Puts together what lies on the chosen workers.
    fn gather(&mut self) {
        self.items.clear();
        for worker in &self.set {
            self.items.extend_from_slice(&self.packing.bags[*worker as usize]);
        }
        self.items.sort_unstable_by_key(|piece| piece.segment);
        self.items.dedup_by(|next, kept| {
            let same = next.segment == kept.segment;
            kept.count += if same { next.count } else { 0 };
            same
        });
    }

    /// Fills the chosen workers anew and keeps that if it isn't worse.
    fn rebuild(&mut self) {
        let capacities: Vec<u64> = self.set.iter().map(|worker| self.packing.capacity(*worker)).collect();
        let before: u64 = self.set.iter().map(|worker| self.cost(*worker, &self.packing.bags[*worker as usize])).sum();
        let pieces = self.set.iter().map(|worker| self.packing.bags[*worker as usize].len()).sum();
        let held = match self.price {
            Price::Replicas => None,
            Price::Bytes(held) => Some((held, self.set.as_slice())),
        };
        if !self.filler.fill(&self.items, &capacities, held, pieces, &mut self.dice) {
            return;
        }
        let after: u64 = self.set.iter().zip(&self.filler.bags).map(|(worker, bag)| self.cost(*worker, bag)).sum();
        if after <= before && self.bytes_fit() {
            self.keep();
        }
    }

    fn cost(&self, worker: u32, bag: &[Piece]) -> u64 {
        match self.price {
            Price::Replicas => bag.len() as u64,
            Price::Bytes(held) => {
                let of = |piece: &Piece| {
                    let bytes = self.snapshot.segments[piece.segment as usize].bytes.max(1);
                    if held.holds(piece.segment, worker) { bytes } else { 2 * bytes }
                };
                bag.iter().map(of).sum()
            }
        }
    }

    fn bytes_fit(&self) -> bool {
        self.set.iter().zip(&self.filler.bags).all(|(worker, bag)| {
            let old = self.bytes(&self.packing.bags[*worker as usize]);
            self.bytes(bag) <= self.packing.bytes[*worker as usize].saturating_add(old)
        })
    }

    fn bytes(&self, bag: &[Piece]) -> u64 {
        bag.iter().map(|piece| self.snapshot.segments[piece.segment as usize].bytes).sum()
    }

    fn keep(&mut self) {
        for (place, worker) in self.set.iter().enumerate() {
            let at = *worker as usize;
            let old = self.bytes(&self.packing.bags[at]);
            let capacity = self.packing.capacity(*worker);
            let bag = &mut self.filler.bags[place];
            self.packing.room[at] = capacity - bag.iter().map(|piece| piece.count).sum::<u64>();
            std::mem::swap(&mut self.packing.bags[at], bag);
            self.packing.bytes[at] = self.packing.bytes[at].saturating_add(old) - self.bytes(&self.packing.bags[at]);
        }
        self.homes.moved(&self.items, &self.set, &self.packing.bags);
    }
}
