//! Workers, by what they run and hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use forebay_types::WorkerId;

use super::entries::{Near, RangeIx, Rank};
use super::model::{JobId, TaskId};

#[derive(Clone, Debug, Default)]
pub(super) struct Worker {
    pub slots: u32,
    pub free: u32,
    pub room_bytes: u64,
    /// Pending tasks that have input here or arriving here, a job at a time, in the order in which they are taken.
    pub near: BTreeMap<JobId, BTreeSet<(Rank, TaskId)>>,
    /// Bytes here or arriving here that pending tasks will read.
    pub waiting_bytes: u64,
    pub running_bytes: u64,
    pub running: BTreeSet<(JobId, TaskId)>,
    pub holds: BTreeSet<RangeIx>,
    pub expects: BTreeSet<RangeIx>,
}

impl Worker {
    pub(super) fn load(&self) -> u64 {
        (self.waiting_bytes + self.running_bytes) / u64::from(self.slots.max(1))
    }

    /// Its load, whether it has a free slot, and whether that one is beside input of a task that waits.
    fn filed_under(&self) -> (u64, bool, bool) {
        let is_free = self.free > 0;
        (self.load(), is_free, is_free && !self.near.is_empty())
    }
}

/// The workers, and the orders in which they are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Fleet {
    workers: ById<WorkerId, Worker>,
    /// By what waits and runs there, in bytes a slot.
    pub by_load: BTreeSet<(u64, WorkerId)>,
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

    /// To change what a worker holds and expects; its load and free slots, by which workers are sorted, stay as they are.
    pub(super) fn get_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.workers.get_mut(&id)
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        let sorted: BTreeMap<_, _> = self.workers.iter().map(|(id, worker)| (*id, worker)).collect();
        sorted.into_iter()
    }

    pub(super) fn add(&mut self, id: WorkerId, slots: u32, room_bytes: u64) {
        let known = self.workers.insert(id, Worker { slots, free: slots, room_bytes, ..Worker::default() });
        assert!(known.is_none(), "a worker that joins is not there yet");
        self.by_load.insert((0, id));
        if slots > 0 {
            self.free.insert(id);
        }
        self.slots += u64::from(slots);
    }

    pub(super) fn remove(&mut self, id: WorkerId) {
        let Some(worker) = self.workers.remove(&id) else { return };
        assert!(worker.running.is_empty(), "{} tasks run at a worker that goes", worker.running.len());
        self.by_load.remove(&(worker.load(), id));
        self.free.remove(&id);
        self.free_beside.remove(&id);
        self.slots -= u64::from(worker.slots);
        assert_eq!(self.by_load.len(), self.workers.len(), "each worker is filed once by its load");
    }

    /// Changes a worker and files it under its new load and its free slots.
    pub(super) fn with(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let (load, free, beside) = worker.filed_under();
        change(worker);
        let (new_load, is_free, is_beside) = worker.filed_under();
        if load != new_load {
            self.by_load.remove(&(load, id));
            self.by_load.insert((new_load, id));
        }
        for (set, was, is) in [(&mut self.free, free, is_free), (&mut self.free_beside, beside, is_beside)] {
            match is {
                _ if was == is => false,
                true => set.insert(id),
                false => set.remove(&id),
            };
        }
        assert_eq!(self.by_load.len(), self.workers.len(), "each worker is filed once by its load");
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
