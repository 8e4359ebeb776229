//! A worker that is lost: its requests are asked again elsewhere, and `forebay_navigation::repair` says what is copied.

use std::collections::BTreeMap;

use forebay_navigation::{Copy, Damage, Damaged, RepairRoom, ShardId, Survivor, repair};
use forebay_types::WorkerId;

use super::{Engine, Event};
use crate::shards::replica::Queue;
use crate::shards::setup::{Loss, Place};
use crate::workload::Micros;

/// What is known of a loss while it is mended.
#[derive(Default)]
pub(super) struct Mending {
    lost: Option<usize>,
    /// Replicas of each shard, and the levels that the lost ones started with.
    wanted: BTreeMap<usize, (u32, u32)>,
    on_their_way: Vec<Copy>,
    link_free: Micros,
}

impl Mending {
    pub(super) fn is_lost(&self, worker: usize) -> bool {
        self.lost == Some(worker)
    }

    /// Bytes that copies on their way to `worker` will take.
    pub(super) fn reserved(&self, worker: usize) -> u64 {
        self.on_their_way.iter().filter(|copy| copy.to.0 == worker as u64).map(|copy| copy.bytes).sum()
    }
}

impl Engine<'_> {
    pub(super) fn loses(&mut self, loss: &Loss) {
        self.mending.lost = Some(loss.worker);
        let lost: Vec<usize> = self.own(loss.worker);
        for at in &lost {
            let queue = &mut self.queues[*at];
            (queue.is_alive, queue.generation) = (false, queue.generation + 1);
            let Place { shard, start, .. } = queue.place;
            self.mending.wanted.insert(shard, (self.of_shard[shard].len() as u32, start));
            self.of_shard[shard].retain(|other| other != at);
        }
        for at in lost {
            let (shard, waiting) = (self.queues[at].place.shard, std::mem::take(&mut self.queues[at].waiting));
            waiting.into_iter().for_each(|client| self.send(client, shard));
        }
        self.mend(loss);
    }

    /// Starts the copies that may start now.
    fn mend(&mut self, loss: &Loss) {
        let damage = self.damage(loss);
        let repair = repair(&damage).expect("the model's damage can be");
        for copy in repair.copies {
            let time = (copy.bytes as f64 / loss.bytes_per_sec * 1e6) as Micros;
            self.mending.link_free = self.mending.link_free.max(self.now) + time;
            self.mending.on_their_way.push(copy);
            self.events.push(self.mending.link_free, Event::Copied);
        }
    }

    /// The link sends in order: what began first is there.
    pub(super) fn copied(&mut self, loss: &Loss) {
        let copy = self.mending.on_their_way.remove(0);
        let (shard, worker) = (copy.shard.0 as usize, copy.to.0 as usize);
        let start = self.mending.wanted.get(&shard).map_or(0, |(_, start)| *start);
        let at = self.queues.len();
        self.queues.push(Queue::copied(Place { shard, worker, start }));
        self.of_shard[shard].push(at);
        self.clients.iter_mut().for_each(|client| client.hears_of_another());
        self.mend(loss);
        if self.mending.on_their_way.is_empty() {
            self.record.repaired_secs = Some(self.now as f64 / 1e6);
        }
    }

    fn damage(&self, loss: &Loss) -> Damage {
        let workers = (0..self.setup.room_bytes.len()).filter(|worker| !self.mending.is_lost(*worker));
        let taken = |worker| self.own(worker).iter().map(|at| self.setup.curve.bytes(self.queues[*at].ordered)).sum::<u64>();
        let room = |worker: usize| RepairRoom {
            worker: WorkerId(worker as u64),
            free_bytes: self.setup.room_bytes[worker] - taken(worker) - self.mending.reserved(worker),
            domain: worker as u32,
        };
        Damage {
            workers: workers.map(room).collect(),
            shards: self.mending.wanted.iter().map(|(shard, (wanted, _))| self.damaged(*shard, *wanted)).collect(),
            in_flight_bytes_max: loss.in_flight_bytes_max,
            in_flight_bytes: self.mending.on_their_way.iter().map(|copy| copy.bytes).sum(),
        }
    }

    fn damaged(&self, shard: usize, wanted: u32) -> Damaged {
        let whole = self.of_shard[shard].iter().map(|at| {
            let queue = &self.queues[*at];
            Survivor { worker: WorkerId(queue.place.worker as u64), bytes: self.setup.curve.bytes(queue.level), is_whole: true }
        });
        let on_their_way = self.mending.on_their_way.iter().filter(|copy| copy.shard.0 == shard as u64);
        let arriving = on_their_way.map(|copy| Survivor { worker: copy.to, bytes: copy.bytes, is_whole: false });
        Damaged {
            shard: ShardId(shard as u64),
            base_bytes: self.setup.curve.bytes(0),
            wanted,
            waiting: self.of_shard[shard].iter().map(|at| self.queues[*at].waiting.len() as u64).sum(),
            survivors: whole.chain(arriving).collect(),
        }
    }
}
