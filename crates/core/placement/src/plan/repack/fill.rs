//! Fills a few workers anew, and splits as few segments as it can.

use crate::Holdings;
use crate::plan::dice::Dice;
use crate::plan::packing::Piece;

/// How many sets are tried for a worker before a segment is split.
const TRIES: usize = 12;

/// Fills workers from a common heap. Keeps its buffers from one use to the next.
#[derive(Default)]
pub(super) struct Filler {
    /// What [`Self::fill`] made: one bag a worker.
    pub(super) bags: Vec<Vec<Piece>>,
    /// What isn't in a bag yet, by descending count.
    heap: Vec<Piece>,
    /// A random order of the heap's places.
    order: Vec<u32>,
    /// Those of them that the worker doesn't hold.
    foreign: Vec<u32>,
    taken: Vec<bool>,
    chosen: Vec<u32>,
    best: Vec<u32>,
}

impl Filler {
    /// Fills workers of these capacities, in their order, with all of `items`, which together find room. With `held`,
    /// what a worker holds comes first. Gives up, with false, when it takes more than `pieces` pieces and nothing is held.
    pub(super) fn fill(
        &mut self,
        items: &[Piece],
        capacities: &[u64],
        held: Option<(&Holdings, &[u32])>,
        pieces: usize,
        dice: &mut Dice,
    ) -> bool {
        self.heap.clear();
        self.heap.extend_from_slice(items);
        self.heap.sort_unstable_by_key(|piece| (std::cmp::Reverse(piece.count), piece.segment));
        self.bags.resize_with(capacities.len(), Vec::new);
        self.bags.iter_mut().for_each(Vec::clear);
        let mut spare = capacities.iter().sum::<u64>() - items.iter().map(|piece| piece.count).sum::<u64>();
        let mut used = 0;
        for (place, capacity) in capacities.iter().enumerate() {
            if self.heap.is_empty() {
                break;
            }
            let holder = held.map(|(held, set)| (held, set[place]));
            let waste = self.fill_one(place, *capacity, spare, holder, dice);
            spare -= waste;
            used += self.bags[place].len();
            if held.is_none() && used + self.heap.len() > pieces {
                return false;
            }
        }
        true
    }

    /// Fills one worker from the heap; gives what it leaves empty, at most `spare`.
    fn fill_one(&mut self, place: usize, capacity: u64, spare: u64, holder: Option<(&Holdings, u32)>, dice: &mut Dice) -> u64 {
        if capacity == 0 {
            return 0;
        }
        if self.heap[0].count >= capacity {
            let first = self.heap[0];
            self.bags[place].push(Piece { count: capacity, ..first });
            self.shrink(0, capacity);
            return 0;
        }
        let mut least = u64::MAX;
        for _ in 0..TRIES {
            let waste = self.attempt(capacity, holder, dice);
            if waste < least {
                least = waste;
                self.best.clone_from(&self.chosen);
                if waste == 0 {
                    break;
                }
            }
        }
        self.take_best(place);
        if least <= spare || self.heap.is_empty() {
            return least;
        }
        // Nothing closes it: one more segment is split over this worker and a later one. Every one that is left is larger
        // than the gap, or it would have been taken.
        let at = if dice.below(2) == 0 { 0 } else { dice.below(self.heap.len()) };
        self.bags[place].push(Piece { count: least, ..self.heap[at] });
        self.shrink(at, least);
        0
    }

    /// A random set that leaves little of `capacity`: items in random order, and at last the best one or two for the gap.
    fn attempt(&mut self, capacity: u64, holder: Option<(&Holdings, u32)>, dice: &mut Dice) -> u64 {
        let len = self.heap.len();
        self.order.clear();
        self.order.extend(0..len as u32);
        dice.shuffle(&mut self.order);
        if let Some((held, worker)) = holder {
            // What it holds comes first, each in the order that it has.
            let (heap, foreign) = (&self.heap, &mut self.foreign);
            self.order.retain(|at| {
                let holds = held.holds(heap[*at as usize].segment, worker);
                if !holds {
                    foreign.push(*at);
                }
                holds
            });
            self.order.append(foreign);
        }
        self.taken.clear();
        self.taken.resize(len, false);
        self.chosen.clear();
        let mut gap = capacity;
        for at in &self.order {
            let count = self.heap[*at as usize].count;
            if count > gap {
                break;
            }
            gap -= count;
            self.chosen.push(*at);
            self.taken[*at as usize] = true;
        }
        // Two at the end are better than what came by chance.
        let back = dice.below(2).min(self.chosen.len());
        for _ in 0..back {
            if let Some(at) = self.chosen.pop() {
                gap += self.heap[at as usize].count;
                self.taken[at as usize] = false;
            }
        }
        while let Some((one, other, sum)) = self.best_two(gap) {
            for at in [Some(one), other].into_iter().flatten() {
                self.taken[at] = true;
                self.chosen.push(at as u32);
            }
            gap -= sum;
        }
        gap
    }

    /// The one or two items that aren't taken and come closest to `gap` without passing it.
    fn best_two(&self, gap: u64) -> Option<(usize, Option<usize>, u64)> {
        if gap == 0 {
            return None;
        }
        let free = |at: &usize| !self.taken[*at];
        // Descending counts: the first that fits is the largest.
        let start = self.heap.partition_point(|piece| piece.count > gap);
        let first = (start..self.heap.len()).find(free)?;
        let mut best = (first, None, self.heap[first].count);
        let (mut high, mut low) = (first, self.heap.len() - 1);
        while high < low && best.2 < gap {
            if self.taken[high] {
                high += 1;
            } else if self.taken[low] {
                low -= 1;
            } else {
                let sum = self.heap[high].count + self.heap[low].count;
                if sum > gap {
                    high += 1;
                } else {
                    if sum > best.2 {
                        best = (high, Some(low), sum);
                    }
                    low -= 1;
                }
            }
        }
        Some(best)
    }

    /// Moves the best set from the heap to a bag.
    fn take_best(&mut self, place: usize) {
        self.best.sort_unstable();
        for at in self.best.iter().rev() {
            self.bags[place].push(self.heap.remove(*at as usize));
        }
    }

    /// Takes `part` of an item, and keeps the heap in order.
    fn shrink(&mut self, at: usize, part: u64) {
        let mut piece = self.heap.remove(at);
        piece.count -= part;
        if piece.count > 0 {
            let to = self.heap.partition_point(|other| {
                (std::cmp::Reverse(other.count), other.segment) < (std::cmp::Reverse(piece.count), piece.segment)
            });
            self.heap.insert(to, piece);
        }
    }
}
