//! What Getafix is compared with. Neither knows capacities: only the workers' bytes limit what they place.

mod scarlett;
mod uniform;

pub(crate) use scarlett::scarlett;
pub(crate) use uniform::uniform;

use std::collections::BTreeSet;

use crate::plan::packing::Packing;
use crate::{Piece, Snapshot};

/// Workers by a load that grows.
struct Ladder {
    loads: Vec<u64>,
    /// (load, tie, worker)
    order: BTreeSet<(u64, u64, u32)>,
    ties: Vec<u64>,
}

impl Ladder {
    /// No load yet; of equal loads the lower tie goes first.
    fn new(ties: Vec<u64>) -> Self {
        let order = ties.iter().zip(0..).map(|(tie, worker)| (0, *tie, worker)).collect();
        Self { loads: vec![0; ties.len()], order, ties }
    }

    fn add(&mut self, worker: u32, load: u64) {
        let at = worker as usize;
        self.order.remove(&(self.loads[at], self.ties[at], worker));
        self.loads[at] = self.loads[at].saturating_add(load);
        self.order.insert((self.loads[at], self.ties[at], worker));
    }

    fn load(&self, worker: u32) -> u64 {
        self.loads[worker as usize]
    }

    /// The least loaded worker that is `fit`.
    fn least(&self, fit: impl Fn(u32) -> bool) -> Option<u32> {
        self.order.iter().map(|(_, _, worker)| *worker).find(|worker| fit(*worker))
    }
}

/// Gives each segment's workers equal parts of its count.
fn share_equally(snapshot: &Snapshot<'_>, packing: &mut Packing, holders: &[Vec<u32>]) {
    for (segment, workers) in (0..).zip(holders) {
        let count = snapshot.segments[segment as usize].count;
        let parts = workers.len() as u64;
        for (worker, part) in workers.iter().zip(0..parts) {
            let count = count / parts + u64::from(part < count % parts);
            packing.bags[*worker as usize].push(Piece { segment, count });
        }
    }
}
