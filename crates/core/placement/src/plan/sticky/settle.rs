//! Segments that can stay with those who hold them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Sticky;
use crate::plan::packing::{Packing, Piece};

impl Sticky<'_> {
    /// Gives segments to the workers that hold them, as far as all of a segment finds room there; gives the others.
    ///
    /// Those with one holder first: they have no choice. Of those with several, one of which at most is wanted by another
    /// such segment, goes first, and takes what it can where no other wants to be: while holdings form a forest, as plans
    /// do, that settles everything if it can be settled at all.
    pub(super) fn settle(&mut self, packing: &mut Packing, segments: &[u32]) -> Vec<Piece> {
        let mut rest = Vec::new();
        let (mut single, mut several) = (Vec::new(), Vec::new());
        for segment in segments {
            let piece = Piece { segment: *segment, count: self.snapshot.segments[*segment as usize].count };
            match self.snapshot.holders(*segment) {
                _ if piece.count == 0 => {}
                [] => rest.push(piece),
                [holder] => single.push((piece, *holder)),
                _ => several.push(piece),
            }
        }
        single.sort_by_key(|(piece, _)| (Reverse(piece.count), piece.segment));
        for (piece, holder) in single {
            if self.room(packing, piece.segment, holder) >= piece.count {
                self.put(packing, holder, piece);
            } else {
                rest.push(piece);
            }
        }
        let mut wanted = Wanted::of(self, packing, several);
        while let Some(piece) = wanted.next() {
            if !self.settle_one(packing, piece, &wanted) {
                rest.push(piece);
            }
        }
        rest
    }

    /// Gives a segment to its holders: to one of them if it can be, else to as many as it takes.
    fn settle_one(&mut self, packing: &mut Packing, piece: Piece, wanted: &Wanted) -> bool {
        let Piece { segment, count } = piece;
        let mut holders: Vec<(u32, u64)> =
            self.snapshot.holders(segment).iter().map(|worker| (*worker, self.room(packing, segment, *worker))).collect();
        holders.retain(|(_, room)| *room > 0);
        // Where nobody else wants to be, then where there is the most room.
        holders.sort_by_key(|(worker, room)| (!wanted.at(*worker).is_empty(), Reverse(*room), *worker));
        let spared = |worker: u32| -> u64 { wanted.at(worker).iter().map(|other| self.needs(packing, *other, worker)).sum() };
        let whole = holders.iter().find(|(worker, room)| count <= *room && count <= room.saturating_sub(spared(*worker)));
        if let Some((worker, _)) = whole {
            self.put(packing, *worker, piece);
            return true;
        }
        if holders.iter().map(|(_, room)| room).sum::<u64>() < count {
            return false;
        }
        let mut left = count;
        for (worker, _) in holders {
            if left > 0 {
                left = self.put(packing, worker, Piece { segment, count: left });
            }
        }
        true
    }

    /// What `other` must have of `worker`, since its other holders have no room for it.
    fn needs(&self, packing: &Packing, other: u32, worker: u32) -> u64 {
        let elsewhere = self.snapshot.holders(other).iter().filter(|holder| **holder != worker);
        let elsewhere: u64 = elsewhere.map(|holder| self.room(packing, other, *holder)).sum();
        self.snapshot.segments[other as usize].count.saturating_sub(elsewhere)
    }

    /// Accesses that `worker` has room for, none when the segment's bytes find none.
    fn room(&self, packing: &Packing, segment: u32, worker: u32) -> u64 {
        let fits = packing.bytes[worker as usize] >= self.snapshot.segments[segment as usize].bytes;
        if fits { packing.room[worker as usize] } else { 0 }
    }
}

/// Segments with several holders that wait to be settled.
struct Wanted {
    /// By worker: the segments that wait and that it holds.
    by_worker: Vec<Vec<u32>>,
    /// (holders that others want too, decreasing count, segment)
    order: BTreeSet<(usize, Reverse<u64>, u32)>,
    /// By segment: its count, and the holders that have room.
    waiting: Vec<(u32, u64, Vec<u32>)>,
}

impl Wanted {
    fn of(sticky: &Sticky<'_>, packing: &Packing, pieces: Vec<Piece>) -> Self {
        let mut by_worker = vec![Vec::new(); packing.room.len()];
        let mut waiting: Vec<(u32, u64, Vec<u32>)> = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let with_room = sticky.snapshot.holders(piece.segment).iter().copied();
            let with_room: Vec<u32> = with_room.filter(|worker| sticky.room(packing, piece.segment, *worker) > 0).collect();
            with_room.iter().for_each(|worker| by_worker[*worker as usize].push(piece.segment));
            waiting.push((piece.segment, piece.count, with_room));
        }
        let mut wanted = Self { by_worker, order: BTreeSet::new(), waiting };
        for piece in pieces {
            wanted.order.insert((wanted.shared(piece.segment), Reverse(piece.count), piece.segment));
        }
        wanted
    }

    /// How many of a segment's holders others want too.
    fn shared(&self, segment: u32) -> usize {
        self.waiting(segment).2.iter().filter(|worker| self.at(**worker).len() > 1).count()
    }

    fn waiting(&self, segment: u32) -> &(u32, u64, Vec<u32>) {
        let at = self.waiting.binary_search_by_key(&segment, |(segment, ..)| *segment);
        &self.waiting[at.expect("only segments that wait are asked for")]
    }

    /// Segments that wait and that `worker` holds.
    fn at(&self, worker: u32) -> &[u32] {
        &self.by_worker[worker as usize]
    }

    /// The next to settle; it waits no more.
    fn next(&mut self) -> Option<Piece> {
        let (_, Reverse(count), segment) = self.order.pop_first()?;
        for worker in self.waiting(segment).2.clone() {
            // Where one other is left, that one has this holder for itself now.
            let alone = match self.at(worker) {
                [one, other] => Some(if *one == segment { *other } else { *one }),
                _ => None,
            };
            let alone = alone.map(|alone| (self.shared(alone), Reverse(self.waiting(alone).1), alone));
            self.by_worker[worker as usize].retain(|other| *other != segment);
            if let Some(entry) = alone
                && self.order.remove(&entry)
            {
                self.order.insert((self.shared(entry.2), entry.1, entry.2));
            }
        }
        Some(Piece { segment, count })
    }
}
