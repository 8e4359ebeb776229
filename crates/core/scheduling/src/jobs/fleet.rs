//! Workers, by what they run and hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use forebay_types::WorkerId;

use super::LOOK_MAX;
use super::entries::{Near, RangeIx, Rank};
use super::model::{JobId, TaskId, ahead_bytes_max};

#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    pub slots: u32,
    pub free: u32,
    pub room_bytes: u64,
    /// Pending tasks that have input here or arriving here, a job at a time, in the order in which they are taken.
    pub near: BTreeMap<JobId, BTreeSet<(Rank, TaskId)>>,
    /// Bytes here or arriving here that pending tasks will read.
    pub waiting_bytes: u64,
    /// Bytes that were brought here ahead, or are on their way, and that no task has started to read.
    pub ahead_bytes: u64,
    pub running_bytes: u64,
    pub running: BTreeSet<(JobId, TaskId)>,
    pub holds: BTreeSet<RangeIx>,
    pub expects: BTreeSet<RangeIx>,
}

impl Worker {
    pub(super) fn load(&self) -> u64 {
        (self.waiting_bytes + self.running_bytes) / u64::from(self.slots.max(1))
    }

    /// The longest range that may be brought here ahead: one that the room has space for, and that is held until it is read beside what is
    /// ahead already. Where nothing is, it need not be held as a whole, so that a small tier has the next task's input coming, too.
    pub(super) fn longest_ahead(&self) -> u64 {
        if self.slots == 0 {
            return 0;
        }
        let room = self.room_bytes.saturating_sub(self.waiting_bytes);
        match self.ahead_bytes {
            0 => room,
            ahead => room.min(ahead_bytes_max(self.room_bytes).saturating_sub(ahead)),
        }
    }

    /// Whether a range of so many bytes may be brought here ahead.
    pub(super) fn takes_ahead(&self, bytes: u64) -> bool {
        self.slots > 0 && bytes <= self.longest_ahead()
    }

    fn filed_under(&self) -> Filed {
        let is_free = self.free > 0;
        let longest_ahead = self.longest_ahead().min(LONGEST_FILED);
        Filed { load: self.load(), longest_ahead, is_free, is_free_beside: is_free && !self.near.is_empty() }
    }
}

/// What a worker is found by.
#[derive(Clone, Copy, Debug)]
struct Filed {
    load: u64,
    /// Up to [`LONGEST_FILED`].
    longest_ahead: u64,
    is_free: bool,
    /// And that slot is beside input of a task that waits.
    is_free_beside: bool,
}

/// Workers with room for more than any range has are not told apart by it, so that they are not filed anew with each byte.
pub(super) const LONGEST_FILED: u64 = 1 << 30;

/// The workers, and the orders in which they are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Fleet {
    workers: ById<WorkerId, Worker>,
    /// By what waits and runs there, in bytes a slot.
    pub by_load: BTreeSet<(u64, WorkerId)>,
    /// By the longest range that may be brought there ahead.
    pub by_longest_ahead: BTreeSet<(u64, WorkerId)>,
    /// Those with a free slot.
    pub free: BTreeSet<WorkerId>,
    /// Of these, those beside input of a task that waits.
    pub free_beside: BTreeSet<WorkerId>,
    pub slots: u64,
}

impl Fleet {
    pub(super) fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.workers.get(&id)
    }

    /// To change what a worker holds and expects; its load, room and free slots, by which workers are sorted, stay as they are.
    pub(super) fn get_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.workers.get_mut(&id)
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        let sorted: BTreeMap<_, _> = self.workers.iter().map(|(id, worker)| (*id, worker)).collect();
        sorted.into_iter()
    }

    pub(super) fn add(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        let worker = Worker { slots, free: slots, room_bytes, ..Worker::default() };
        let Filed { load, longest_ahead, .. } = worker.filed_under();
        let known = self.workers.insert(id, worker);
        assert!(known.is_none(), "a worker that joins is not there yet");
        self.by_load.insert((load, id));
        self.by_longest_ahead.insert((longest_ahead, id));
        if slots > 0 {
            self.free.insert(id);
        }
        self.slots += u64::from(slots);
    }

    /// A worker has at least as many slots as before, and other room. What it runs and has stays.
    pub(super) fn grow(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        let more = slots - self.get(id).map_or(slots, |worker| worker.slots);
        self.with(id, |worker| {
            worker.slots += more;
            worker.free += more;
            worker.room_bytes = room_bytes;
        });
        self.slots += u64::from(more);
    }

    pub(super) fn remove(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.remove(&id) else { return };
        assert!(worker.running.is_empty(), "{} tasks run at a worker that goes", worker.running.len());
        assert_eq!(worker.ahead_bytes, 0, "nothing is ahead at a worker that has nothing");
        let Filed { load, longest_ahead, .. } = worker.filed_under();
        self.by_load.remove(&(load, id));
        self.by_longest_ahead.remove(&(longest_ahead, id));
        self.free.remove(&id);
        self.free_beside.remove(&id);
        self.slots -= u64::from(worker.slots);
        assert_eq!(self.by_load.len(), self.workers.len(), "each worker is filed once by its load");
        assert_eq!(self.by_longest_ahead.len(), self.workers.len(), "each worker is filed once by its room");
    }

    /// Changes a worker and files it under its new load, room and free slots.
    pub(super) fn with(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let old = worker.filed_under();
        change(worker);
        let new = worker.filed_under();
        for (order, was, is) in
            [(&mut self.by_load, old.load, new.load), (&mut self.by_longest_ahead, old.longest_ahead, new.longest_ahead)]
        {
            if was != is {
                order.remove(&(was, id));
                order.insert((is, id));
            }
        }
        for (set, was, is) in
            [(&mut self.free, old.is_free, new.is_free), (&mut self.free_beside, old.is_free_beside, new.is_free_beside)]
        {
            match is {
                _ if was == is => false,
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
        assert_eq!(self.by_load.len(), self.workers.len(), "each worker is filed once by its load");
        assert_eq!(self.by_longest_ahead.len(), self.workers.len(), "each worker is filed once by its room");
    }

    /// Workers to which a range of so many bytes may be brought ahead, with their load, the least first. Only those that have the least to do are
    /// looked at and, where none of them may, those that may take the longest range: so one is found if there is any.
    pub(super) fn open_to(&self, bytes: u64) -> Vec<(u64, WorkerId)> {
        let open = |id: WorkerId| self.get(id).filter(|worker| worker.takes_ahead(bytes)).map(|worker| (worker.load(), id));
        let mut found: Vec<_> = self.by_load.iter().take(LOOK_MAX).filter_map(|(_, id)| open(*id)).collect();
        if found.is_empty() {
            found.extend(self.by_longest_ahead.iter().rev().take(LOOK_MAX).filter_map(|(_, id)| open(*id)));
            found.sort_unstable();
        }
        assert!(found.is_sorted(), "workers are found by their load");
        found
    }

    /// A pending task that reads `bytes` has `after` at a worker where it had `before`.
    pub(super) fn near(&mut self, id: WorkerId, (job, task): (JobId, TaskId), bytes: u64, before: Near, after: Near) {
        self.with(id, |worker| {
            assert!(
                worker.waiting_bytes + after.bytes >= before.bytes,
                "no more is waited for than {} bytes",
                worker.waiting_bytes
            );
            worker.waiting_bytes = worker.waiting_bytes + after.bytes - before.bytes;
            let tasks = worker.near.entry(job).or_default();
            if before.bytes > 0 {
                tasks.remove(&(before.rank(bytes), task));
            }
            if after.bytes > 0 {
                tasks.insert((after.rank(bytes), task));
            }
            if tasks.is_empty() {
                worker.near.remove(&job);
            }
        });
    }
}

/// A map by ids that are random numbers, or numbers of our own, so that a multiplication is enough to spread them; and
/// without a seed a schedule does the same in every process.
type ById<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

#[derive(Clone, Copy, Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
