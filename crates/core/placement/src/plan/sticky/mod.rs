//! Places segments where they are held, as far as that is possible.

mod apart;
mod settle;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::Snapshot;
use crate::plan::neighbours::Neighbours;
use crate::plan::packing::{Packing, Piece};

/// Emptiest workers that are looked at for a segment that nobody holds.
const CHOICE_MAX: usize = 16;

/// Algorithm 1's queue with another choice of worker: one that holds the segment where that is possible, else, among the
/// emptier ones, the one that has the least of what is read together with it.
///
/// A plan that ignores who holds what moves most segments every window: planned replicas were 1.12 a segment in a
/// simulation, and stored ones 1.67. With a few percent of slack nearly everything can stay where it is.
pub(crate) struct Sticky<'a> {
    snapshot: &'a Snapshot<'a>,
    neighbours: Neighbours,
    /// By segment: the workers that it was given.
    homes: Vec<Vec<u32>>,
    /// Workers with room, as (room, !worker).
    open: BTreeSet<(u64, u32)>,
}

impl<'a> Sticky<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot<'a>, packing: &Packing) -> Self {
        let open =
            (0..).zip(&packing.room).filter(|(_, room)| **room > 0).map(|(worker, room): (u32, _)| (*room, !worker)).collect();
        Self { snapshot, neighbours: Neighbours::of(snapshot), homes: vec![Vec::new(); snapshot.segments.len()], open }
    }

    /// Places segments that want one replica, or as many as their count needs.
    pub(crate) fn place(&mut self, packing: &mut Packing, segments: &[u32]) {
        let rest = self.settle(packing, segments);
        let counts = rest.into_iter().map(|piece| (piece.count, Reverse(piece.segment)));
        let mut queue: BinaryHeap<(u64, Reverse<u32>)> = counts.collect();
        while let Some((count, Reverse(segment))) = queue.pop() {
            let left = self.place_one(packing, Piece { segment, count });
            if left == count {
                packing.left.push(Piece { segment, count });
            } else if left > 0 {
                queue.push((left, Reverse(segment)));
            }
        }
    }

    /// Places the piece or a part of it; gives what is left.
    fn place_one(&mut self, packing: &mut Packing, piece: Piece) -> u64 {
        let Piece { segment, count } = piece;
        let bytes = self.snapshot.segments[segment as usize].bytes;
        let room = |packing: &Packing, worker: u32| packing.room[worker as usize];
        let most = self.open.last().map_or(0, |(room, _)| *room);
        if count > most {
            // It must be split, and a holder is nearly as good as the emptiest.
            let fits = |worker: &u32| packing.bytes[*worker as usize] >= bytes && room(packing, *worker) >= (most / 2).max(1);
            let holders = self.snapshot.holders(segment).iter().copied().filter(fits);
            if let Some(holder) = holders.max_by_key(|worker| (room(packing, *worker), Reverse(*worker))) {
                return self.put(packing, holder, piece);
            }
        }
        let fits = |worker: u32| packing.bytes[worker as usize] >= bytes;
        let whole = self.spread(segment, count, fits);
        let part = || self.open.iter().rev().map(|(_, flipped)| !flipped).find(|worker| fits(*worker));
        if let Some(worker) = whole.or_else(part) { self.put(packing, worker, piece) } else { count }
    }

    /// Among the emptier workers with room for `count`, the one with the least of what is read together with `segment`.
    fn spread(&mut self, segment: u32, count: u64, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let (homes, held) = (&self.homes, self.snapshot);
        let scores = self.neighbours.scores(segment, |other| match homes[other as usize].as_slice() {
            // Not placed yet: it will most likely stay where it is.
            [] => held.holders(other),
            workers => workers,
        });
        let choice = (self.snapshot.workers.len() / 2).clamp(2, CHOICE_MAX);
        let emptier = self.open.range((count, 0)..).rev().filter(|(_, flipped)| fits(!flipped)).take(choice);
        // Emptiest first, and of equal scores the first.
        emptier.map(|(_, flipped)| !flipped).min_by_key(|worker| scores[*worker as usize])
    }

    /// Gives as much of the piece to a worker as it has room for; what is left.
    fn put(&mut self, packing: &mut Packing, worker: u32, piece: Piece) -> u64 {
        let count = piece.count.min(packing.room[worker as usize]);
        self.leave(packing, worker);
        packing.put(worker, Piece { count, ..piece }, self.snapshot.segments[piece.segment as usize].bytes);
        self.enter(packing, worker);
        self.homes[piece.segment as usize].push(worker);
        piece.count - count
    }

    /// Takes a worker out of the open ones before its room changes.
    fn leave(&mut self, packing: &Packing, worker: u32) {
        self.open.remove(&(packing.room[worker as usize], !worker));
    }

    /// Puts it back with what room it has left.
    fn enter(&mut self, packing: &Packing, worker: u32) {
        if packing.room[worker as usize] > 0 {
            self.open.insert((packing.room[worker as usize], !worker));
        }
    }
}
