//! Where containers and blocks of a worker that gives up go.

use crate::terms::{BlockRef, DirId, ROOT};

/// A worker that can take over what a draining worker has, and its room in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Haven {
    /// The worker.
    pub worker: u64,
    /// For names and small values.
    pub names_left: u64,
    /// For blocks.
    pub blocks_left: u64,
    /// It keeps blocks of the class `disk`.
    pub has_disk: bool,
    /// In the location of the worker that gives up: what lies there by affinity stays there if it can.
    pub is_near: bool,
}

/// What moves where, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves<T> {
    /// Each with the worker that takes it.
    pub moves: Vec<(T, u64)>,
    /// Bytes for which nobody has room.
    pub stuck_bytes: u64,
}

/// Where containers go, given with the memory that their nodes take: the largest first, as long as there is the most room, and
/// the root last, because every walk begins there. Each goes to the near worker with the most room, else to the one with the
/// most; one that fits nowhere stays.
pub fn plan_containers(containers: &[(DirId, u64)], havens: &[Haven]) -> Moves<DirId> {
    let mut order = containers.to_vec();
    order.sort_by_key(|(id, bytes)| (*id == ROOT, std::cmp::Reverse(*bytes), *id));
    let mut left: Vec<(Haven, u64)> = havens.iter().map(|haven| (*haven, haven.names_left)).collect();
    let mut plan = Moves { moves: Vec::new(), stuck_bytes: 0 };
    for (id, bytes) in order {
        plan.put(id, bytes, &mut left, |_| true, |_| false);
    }
    plan
}

/// Where blocks go, in the order in which they are given, up to `in_flight_max` bytes (one block in any case): the rest waits
/// until these are there. `is_disk` says whether a block is of the class `disk`, `asks_for` whether its node asks for a worker's
/// location: such workers come before all others.
pub fn plan_blocks(
    blocks: &[BlockRef],
    havens: &[Haven],
    in_flight_max: u64,
    is_disk: impl Fn(BlockRef) -> bool,
    asks_for: impl Fn(BlockRef, u64) -> bool,
) -> Moves<BlockRef> {
    let mut left: Vec<(Haven, u64)> = havens.iter().map(|haven| (*haven, haven.blocks_left)).collect();
    let mut plan = Moves { moves: Vec::new(), stuck_bytes: 0 };
    let mut in_flight = 0;
    for block in blocks {
        let bytes = u64::from(block.len);
        if !plan.moves.is_empty() && in_flight + bytes > in_flight_max {
            break;
        }
        let on_disk = is_disk(*block);
        let can = |haven: &Haven| haven.has_disk || !on_disk;
        if plan.put(*block, bytes, &mut left, can, |worker| asks_for(*block, worker)) {
            in_flight += bytes;
        }
    }
    assert!(in_flight <= in_flight_max || plan.moves.len() == 1, "{in_flight} bytes of blocks are moved at once");
    assert!(plan.moves.len() <= blocks.len(), "each block is moved once");
    plan
}

impl<T> Moves<T> {
    fn put(
        &mut self,
        what: T,
        bytes: u64,
        left: &mut [(Haven, u64)],
        can: impl Fn(&Haven) -> bool,
        wants: impl Fn(u64) -> bool,
    ) -> bool {
        let fits = left.iter_mut().filter(|(haven, room)| *room >= bytes && can(haven));
        // By the worker in the end, so that the order of the havens is of no meaning.
        let best = |(haven, room): &&mut (Haven, u64)| (wants(haven.worker), haven.is_near, *room, haven.worker);
        let Some((haven, room)) = fits.max_by_key(best) else {
            self.stuck_bytes += bytes;
            return false;
        };
        *room -= bytes;
        self.moves.push((what, haven.worker));
        true
    }
}
