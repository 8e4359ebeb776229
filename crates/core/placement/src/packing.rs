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

    /// Replicas in all.
    pub(crate) fn replicas(&self) -> u64 {
        self.bags.iter().map(|bag| bag.len() as u64).sum()
    }
}
