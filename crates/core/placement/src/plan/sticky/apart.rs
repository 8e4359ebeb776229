//! Segments that want several replicas: in equal parts, apart from each other.

use std::cmp::Reverse;

use super::Sticky;
use crate::WorkerRoom;
use crate::plan::packing::{Packing, Piece};

impl Sticky<'_> {
    /// Places segments that want several replicas: equal parts, in different failure domains.
    pub(crate) fn place_copies(&mut self, packing: &mut Packing, segments: &[u32]) {
        let widest = packing.widest().max(1);
        let mut order = segments.to_vec();
        order.sort_by_key(|segment| (Reverse(self.snapshot.segments[*segment as usize].count), *segment));
        for segment in order {
            let demand = &self.snapshot.segments[segment as usize];
            let whole = demand.count.div_ceil(widest);
            let parts = whole.max(u64::from(demand.minimum)).min(packing.room.len() as u64);
            for part in 0..parts {
                let count = demand.count / parts + u64::from(part < demand.count % parts);
                match self.apart(packing, Piece { segment, count }) {
                    Some(worker) => _ = self.put(packing, worker, Piece { segment, count }),
                    None => self.pour(packing, Piece { segment, count }),
                }
            }
        }
    }

    /// A worker with room for the whole piece, in a failure domain that the segment isn't in yet if there is one, else on such a host.
    fn apart(&mut self, packing: &Packing, piece: Piece) -> Option<u32> {
        let (snapshot, segment) = (self.snapshot, piece.segment);
        let mine = self.homes[segment as usize].clone();
        let fits = |worker: u32| {
            !mine.contains(&worker)
                && packing.room[worker as usize] >= piece.count
                && packing.bytes[worker as usize] >= snapshot.segments[segment as usize].bytes
        };
        for apart_by in WorkerRoom::APART_BY {
            let part = |worker: u32| apart_by(&snapshot.workers[worker as usize]);
            let fits = |worker: u32| fits(worker) && mine.iter().all(|other| part(*other) != part(worker));
            let held = snapshot.holders(segment).iter().copied().filter(|worker| fits(*worker));
            let held = held.max_by_key(|worker| (packing.room[*worker as usize], Reverse(*worker)));
            if let Some(worker) = held.or_else(|| self.spread(segment, piece.count, fits)) {
                return Some(worker);
            }
        }
        self.spread(segment, piece.count, fits)
    }

    /// Places a piece that fits nowhere whole: on workers that were given some of its segment, then on the emptiest.
    fn pour(&mut self, packing: &mut Packing, mut piece: Piece) {
        let bytes = self.snapshot.segments[piece.segment as usize].bytes;
        while piece.count > 0 {
            let mine = self.homes[piece.segment as usize].iter().copied();
            let more = mine.filter(|worker| packing.room[*worker as usize] > 0);
            if let Some(worker) = more.max_by_key(|worker| (packing.room[*worker as usize], Reverse(*worker))) {
                let part = piece.count.min(packing.room[worker as usize]);
                self.leave(packing, worker);
                packing.add(worker, Piece { count: part, ..piece });
                self.enter(packing, worker);
                piece.count -= part;
                continue;
            }
            let emptiest = self.open.iter().rev().map(|(_, flipped)| !flipped);
            let Some(worker) = emptiest.into_iter().find(|worker| packing.bytes[*worker as usize] >= bytes) else {
                packing.left.push(piece);
                return;
            };
            piece.count = self.put(packing, worker, piece);
        }
    }
}
