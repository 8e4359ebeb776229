//! The plan in the making.

use crate::Snapshot;

/// A part of a segment's accesses at one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The segment.
    pub segment: u32,
    /// Accesses a window.
    pub count: u64,
}

/// A plan in the making: what each worker was given, and what room it has left.
#[derive(Clone, Debug)]
pub(crate) struct Packing {
    pub(crate) bags: Vec<Vec<Piece>>,
    capacity: Vec<u64>,
    pub(crate) room: Vec<u64>,
    pub(crate) bytes: Vec<u64>,
    /// Counts that found no room.
    pub(crate) left: Vec<Piece>,
}

impl Packing {
    /// Nothing placed yet.
    pub(crate) fn empty(snapshot: &Snapshot<'_>, capacities: &[u64]) -> Self {
        Self {
            bags: vec![Vec::new(); capacities.len()],
            capacity: capacities.to_vec(),
            room: capacities.to_vec(),
            bytes: snapshot.workers.iter().map(|worker| worker.bytes).collect(),
            left: Vec::new(),
        }
    }

    /// Gives `count` of a segment of `bytes` to a worker that doesn't have it yet.
    pub(crate) fn put(&mut self, worker: u32, piece: Piece, bytes: u64) {
        let at = worker as usize;
        self.room[at] -= piece.count;
        self.bytes[at] -= bytes;
        self.bags[at].push(piece);
    }

    /// Gives a worker more of a segment that it has.
    pub(crate) fn add(&mut self, worker: u32, more: Piece) {
        let at = worker as usize;
        self.room[at] -= more.count;
        let piece = self.bags[at].iter_mut().find(|piece| piece.segment == more.segment).expect("the worker has the segment");
        piece.count += more.count;
    }

    /// Accesses a window that a worker may be given.
    pub(crate) fn capacity(&self, worker: u32) -> u64 {
        self.capacity[worker as usize]
    }

    /// The largest capacity.
    pub(crate) fn widest(&self) -> u64 {
        self.capacity.iter().copied().max().unwrap_or(0)
    }

    /// Takes out what was given so far; its room stays taken.
    pub(crate) fn set_aside(&mut self) -> Vec<Vec<Piece>> {
        self.capacity.clone_from(&self.room);
        let empty = vec![Vec::new(); self.bags.len()];
        std::mem::replace(&mut self.bags, empty)
    }

    /// Puts back what was set aside: segments that aren't among those given since.
    pub(crate) fn take_back(&mut self, aside: Vec<Vec<Piece>>) {
        for ((bag, aside), capacity) in self.bags.iter_mut().zip(aside).zip(&mut self.capacity) {
            *capacity += aside.iter().map(|piece| piece.count).sum::<u64>();
            bag.extend(aside);
        }
    }

    /// Gives what `workers[i]` has to `workers[to[i]]`, all at once.
    pub(crate) fn exchange(&mut self, workers: &[u32], to: &[u32]) {
        let parts: Vec<_> = workers
            .iter()
            .map(|worker| {
                (std::mem::take(&mut self.bags[*worker as usize]), self.room[*worker as usize], self.bytes[*worker as usize])
            })
            .collect();
        for ((bag, room, bytes), to) in parts.into_iter().zip(to) {
            let worker = workers[*to as usize] as usize;
            (self.bags[worker], self.room[worker], self.bytes[worker]) = (bag, room, bytes);
        }
    }

    pub(crate) fn replicas(&self) -> u64 {
        self.bags.iter().map(|bag| bag.len() as u64).sum()
    }
}
