//! Which transfers to start.

use std::collections::BTreeSet;

use forebay_types::{MountId, WorkerId};

use super::LOOK_MAX;
use super::books::Schedule;
use super::entries::{Ahead, Change, Job, RangeIx};
use super::fleet::Worker;
use super::model::{JobId, Source, Transfer, ahead_bytes_max};
use super::order::turn;
use super::turn::Turn;

impl Schedule {
    /// The transfers from shared storage to start now, in order (MixApart, section 3.2); they count as on their way.
    ///
    /// The first job in line whose input is missing goes first, and its most wanted range (over all jobs), as long as
    /// less is in flight from its storage than may be: what waits for a storage is passed over by what another one has.
    /// What is brought for a job and those before it, and is not being read, stays within the look-ahead, so that a job is
    /// never kept waiting by what was brought for a later one. A job that has no slot yet is not kept waiting either by what
    /// tasks of jobs behind it are reading: its transfers are urgent, and only such count. No worker is brought more ahead of tasks than it
    /// holds until they read it, but for one range.
    pub fn transfers(&mut self) -> Vec<Transfer> {
        self.step();
        let mut started = Vec::new();
        let last_running = self.last_running();
        let mut full = BTreeSet::new();
        while let Some((job, ix)) = self.next_missing(&full) {
            let urgent = self.is_urgent(job, last_running);
            let storage = self.ranges[ix as usize].storage;
            if !self.has_room(storage, urgent) {
                full.insert(storage);
                if full.len() >= self.storages.len() {
                    break;
                }
                continue;
            }
            // No shorter one overtakes what nobody has room for: that would wait for ever.
            let Some(to) = self.destination(job, ix) else { break };
            let runs_tasks = |worker: &Worker| worker.slots > 0;
            assert!(self.fleet.get(to).is_some_and(runs_tasks), "what is brought for tasks goes to a worker that runs some");
            self.expect(ix, to);
            let range = &mut self.ranges[ix as usize];
            range.ahead_of = Some(Ahead { job, arrival: self.jobs[&job].arrival, at: to });
            range.urgent = urgent;
            let bytes = range.bytes;
            started.push(Transfer { range: range.key, from: Source::Storage, to, urgent });
            self.in_flight(storage).urgent_bytes += if urgent { bytes } else { 0 };
            self.with_job(job, |job| job.ahead_bytes += bytes);
            self.fleet.with(to, |worker| {
                worker.ahead_bytes += bytes;
                let held = ahead_bytes_max(worker.room_bytes).max(bytes);
                assert!(worker.ahead_bytes <= held, "{} bytes are ahead at a worker that holds {held}", worker.ahead_bytes);
            });
        }
        started
    }

    /// Whether a job without a slot comes before one that has some.
    fn is_urgent(&self, job: JobId, last_running: Option<Turn>) -> bool {
        let job = &self.jobs[&job];
        let turn = job.places.transfers;
        job.running == 0 && turn.zip(last_running).is_some_and(|(turn, last)| turn < last)
    }

    /// The turn for transfers of the last in line of the jobs that have slots.
    fn last_running(&self) -> Option<Turn> {
        let running = self.jobs.iter().filter(|(_, job)| job.running > 0 && !job.is_closed);
        running.map(|(id, job)| turn(*id, job, job.ready, self.settings.policy)).max()
    }

    /// A range is on its way from shared storage to a worker.
    pub(super) fn expect(&mut self, ix: RangeIx, to: WorkerId) {
        let range = &mut self.ranges[ix as usize];
        assert!(range.is_missing(), "what somebody has, or will have, is not brought again");
        range.arriving = Some(to);
        let (bytes, storage) = (range.bytes, range.storage);
        self.in_flight(storage).bytes += bytes;
        if let Some(worker) = self.fleet.get_mut(to) {
            worker.expects.insert(ix);
        }
        self.count_range(ix, to, Change::Expected);
        self.count_ready(ix, true);
    }

    /// What to bring next, and for whom, of storages that are not `full`.
    fn next_missing(&self, full: &BTreeSet<MountId>) -> Option<(JobId, RangeIx)> {
        let mut ahead_bytes = 0;
        let looked_at = if full.is_empty() { usize::MAX } else { LOOK_MAX };
        for (.., id) in self.orders.transfers.iter().take(looked_at) {
            let job = &self.jobs[id];
            ahead_bytes += job.ahead_bytes;
            if ahead_bytes >= self.settings.look_ahead_bytes {
                return None;
            }
            if job.ahead_bytes < self.job_ahead_bytes_max(job)
                && let Some(ix) = self.most_wanted(job, full)
            {
                return Some((*id, ix));
            }
        }
        None
    }

    fn most_wanted(&self, job: &Job, full: &BTreeSet<MountId>) -> Option<RangeIx> {
        let mut missing = job.pending.missing.iter().map(|(_, ix)| *ix).take(LOOK_MAX);
        missing.find(|ix| !full.contains(&self.ranges[*ix as usize].storage))
    }

    /// How far ahead of one job to bring its input: what it could read in the look-ahead time with all slots. A job that
    /// computes more than it reads leaves the bandwidth to those behind it.
    fn job_ahead_bytes_max(&self, job: &Job) -> u64 {
        let rate = job.io_rate.saturating_mul(self.fleet.slots.max(1)) as f64;
        ((rate * self.settings.look_ahead_secs) as u64).max(1)
    }

    /// To whom a range goes: the worker that has most of its first reader's other input, else, of those with the least to
    /// do for their slots, the one beside the fewest tasks of the job, so that a job's tasks don't wait for one worker while
    /// others have slots for it; none when nobody has room. Of equal ones it goes where others read it, so that they find it there: to a
    /// worker that has no more to do than the one with the least and this range.
    fn destination(&self, job: JobId, ix: RangeIx) -> Option<WorkerId> {
        let range = &self.ranges[ix as usize];
        let near = range.reader(job).map(|task| &self.jobs[&job].tasks[&task].near);
        let is_routed = |id: WorkerId| range.routed.contains(&id);
        let has_room = |id: WorkerId| self.fleet.get(id).is_some_and(|worker| worker.takes_ahead(range.bytes));
        let nearest = near.into_iter().flatten().filter(|(id, _)| has_room(*id));
        let nearest = nearest.max_by_key(|(id, near)| (near.bytes, is_routed(*id), *id));
        match nearest {
            Some((id, _)) => Some(*id),
            None => {
                let open = self.fleet.open_to(range.bytes);
                let (least, _) = open.first()?;
                let load_max = least + range.bytes;
                // So many of the job's tasks a slot.
                let crowd = |worker: &Worker| worker.near.get(&job).map_or(0, BTreeSet::len) / worker.slots as usize;
                let is_elsewhere = |load: u64, id: WorkerId| load > load_max || !is_routed(id);
                let first = open.iter().min_by_key(|(load, id)| (self.fleet.get(*id).map(crowd), is_elsewhere(*load, *id)));
                first.map(|(_, id)| *id)
            }
        }
    }
}
