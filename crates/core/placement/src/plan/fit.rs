//! Algorithm 1 of Getafix with its three fits.

use std::collections::{BTreeSet, BinaryHeap};

use crate::Snapshot;
use crate::plan::packing::{Packing, Piece};

/// How Algorithm 1 chooses a worker (Getafix, section 3.2). The formulas that the paper prints select workers that don't
/// fit; its prose is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The lowest worker that isn't full.
    First,
    /// The worker with the most room.
    Largest,
    /// The worker with the least room that takes the whole count; when none does, the one with the most room.
    Best,
}

/// Algorithm 1: the segment with the highest count goes to the worker that `fit` chooses; what that one has no room for
/// returns to the queue. Ties go to the lower segment and the lower worker. At most m + n - 1 pieces, since a worker is
/// filled by at most one piece that isn't its segment's last: O((m + n) log(m + n)) while bytes aren't the limit.
pub(crate) fn fit(snapshot: &Snapshot<'_>, packing: &mut Packing, segments: impl Iterator<Item = u32>, fit: Fit) {
    let mut queue: BinaryHeap<(u64, std::cmp::Reverse<u32>)> = segments
        .map(|segment| (snapshot.segments[segment as usize].count, std::cmp::Reverse(segment)))
        .filter(|(count, _)| *count > 0)
        .collect();
    let mut open = Open::new(fit, packing);
    while let Some((count, std::cmp::Reverse(segment))) = queue.pop() {
        let bytes = snapshot.segments[segment as usize].bytes;
        let takes = |worker: u32| packing.bytes[worker as usize] >= bytes;
        let Some(worker) = open.choose(count, takes) else {
            packing.left.push(Piece { segment, count });
            continue;
        };
        let part = count.min(packing.room[worker as usize]);
        open.remove(worker, packing);
        packing.put(worker, Piece { segment, count: part }, bytes);
        open.add(worker, packing);
        if part < count {
            queue.push((count - part, std::cmp::Reverse(segment)));
        }
    }
}

/// The workers that have room, in the order that a fit asks for.
struct Open {
    fit: Fit,
    /// (room, !worker), so that of equal room the lowest worker comes last; room left out for First Fit.
    set: BTreeSet<(u64, u32)>,
}

impl Open {
    fn new(fit: Fit, packing: &Packing) -> Self {
        let mut open = Self { fit, set: BTreeSet::new() };
        for worker in 0..packing.room.len() as u32 {
            open.add(worker, packing);
        }
        open
    }

    /// The worker for `count` among those that take the segment.
    ///
    /// A segment's piece fills its worker unless it is the last one, and a full worker isn't open, so no worker is chosen
    /// twice for a segment.
    fn choose(&self, count: u64, takes: impl Fn(u32) -> bool) -> Option<u32> {
        let last = |to: u64| self.set.range(..=(to, u32::MAX)).rev().map(|(_, flipped)| !flipped).find(|worker| takes(*worker));
        let best = || {
            let fits = self.set.range((count, 0)..).find(|(_, flipped)| takes(!flipped));
            fits.and_then(|(room, _)| last(*room))
        };
        match self.fit {
            Fit::First | Fit::Largest => last(u64::MAX),
            Fit::Best => best().or_else(|| last(u64::MAX)),
        }
    }

    fn key(&self, worker: u32, packing: &Packing) -> (u64, u32) {
        let room = if self.fit == Fit::First { 0 } else { packing.room[worker as usize] };
        (room, !worker)
    }

    fn remove(&mut self, worker: u32, packing: &Packing) {
        self.set.remove(&self.key(worker, packing));
    }

    fn add(&mut self, worker: u32, packing: &Packing) {
        if packing.room[worker as usize] > 0 {
            self.set.insert(self.key(worker, packing));
        }
    }
}
