//! What the clients of a world share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use forebay_client::NodeType;
use forebay_oracle::load::nodes::Group;
use forebay_oracle::load::{Keys, Shared};
use forebay_oracle::{RecordCall, Rule, Views, Violation};
use parking_lot::Mutex;

use super::gateway::Asked;
use super::tally::Tally;

/// Keys of records that are changed at a time, behind those that nobody changes, and calls on one.
pub(super) const FIRST_KEY: u64 = 1_000;
pub(super) const KEYS: usize = 6;
const CALLS_ON_KEY: u32 = 40;

/// Who takes part, and how much they do.
#[derive(Clone, Copy, Default)]
pub(super) struct Crowd {
    pub(super) workers: usize,
    pub(super) clients: usize,
    pub(super) seed: u64,
    /// Pauses are so many times as long as they are said to be.
    pub(super) pace: f64,
    pub(super) has_standby: bool,
    pub(super) has_shards: bool,
    pub(super) has_queries: bool,
    /// Changes of the dataset of records are acknowledged by two workers' disks.
    pub(super) has_two_disks: bool,
    /// Some of what clients do goes through an S3 gateway.
    pub(super) has_gateway: bool,
}

/// What the clients share with each other and with the world.
#[derive(Default)]
pub(super) struct Course {
    pub(super) calls: Shared,
    pub(super) crowd: Crowd,
    /// Of the gateway.
    pub(super) asked: Asked,
    /// Where what a program builds is, before it is stored.
    pub(super) folder: PathBuf,
    wrong: Mutex<Vec<Violation>>,
    pub(super) records: Records,
    /// What clients were shown of the cluster.
    views: Mutex<Views>,
    pub(super) queries: Tally,
    pub(super) counts: Counts,
    pub(super) groups: Vec<Arc<Group>>,
    pub(super) progress: Progress,
}

/// What is done with records of a dataset.
#[derive(Default)]
pub(super) struct Records {
    pub(super) calls: Mutex<Vec<RecordCall>>,
    /// Those that are changed.
    pub(super) keys: Mutex<Keys>,
    /// Objects of the dataset's log that were on two disks before they were in the store.
    on_two_disks: AtomicU64,
}

/// How often something has happened.
#[derive(Default)]
pub(super) struct Counts {
    /// Datasets that were begun.
    sets: AtomicU64,
    /// Calls of who may not that were refused.
    refused: AtomicU64,
    /// Blocks of a page that no node may have, since who wrote them was not told more.
    pub(super) unclaimed: AtomicUsize,
    /// Times that a worker may have been lost.
    losses: AtomicUsize,
}

/// How far clients are.
#[derive(Default)]
pub(super) struct Progress {
    /// Clients that have written the first versions of their objects.
    pub(super) began: AtomicUsize,
    /// Clients that have ended what they were at.
    pub(super) ended: AtomicUsize,
    /// Clients that have read everything once more.
    pub(super) done: AtomicUsize,
    /// Programs of workers' hosts that are at something.
    beside: Arc<AtomicUsize>,
}

impl Course {
    pub(super) fn new(crowd: Crowd, folder: PathBuf) -> Self {
        let groups = vec![Arc::new(Group::new("values", NodeType::KeyValue)), Arc::new(Group::new("files", NodeType::File))];
        let keys = Mutex::new(Keys::new(FIRST_KEY, KEYS, CALLS_ON_KEY));
        let records = Records { keys, ..Records::default() };
        Self { groups, crowd, folder, records, ..Self::default() }
    }

    /// A pause as long as the world's pace makes it.
    pub(super) fn paced(&self, pause: Duration) -> Duration {
        pause.mul_f64(self.crowd.pace)
    }

    /// Something must not have happened.
    pub(super) fn wrong(&self, rule: Rule, what: String) {
        self.wrong.lock().push(Violation::new(rule, what));
    }

    /// A client is shown a version of an epoch, which says this.
    pub(super) fn shown(&self, who: &str, of: (u64, u64), says: u64) {
        self.wrong.lock().extend(self.views.lock().note(who, of, says));
    }

    /// Versions that clients were shown.
    pub(super) fn views(&self) -> u64 {
        self.views.lock().count() as u64
    }

    /// What must not have happened, beside what the history says.
    pub(super) fn take_wrong(&self) -> Vec<Violation> {
        std::mem::take(&mut self.wrong.lock())
    }

    /// A worker may be lost from now on.
    pub(super) fn may_lose(&self) {
        self.counts.losses.fetch_add(1, SeqCst);
    }

    pub(super) fn losses(&self) -> usize {
        self.counts.losses.load(SeqCst)
    }

    /// The number of a dataset that begins.
    pub(super) fn begin_set(&self) -> u64 {
        self.counts.sets.fetch_add(1, SeqCst)
    }

    pub(super) fn sets(&self) -> u64 {
        self.counts.sets.load(SeqCst)
    }

    /// So many objects of the dataset's log were on two disks before they were in the store.
    pub(super) fn set_on_two_disks(&self, objects: u64) {
        self.records.on_two_disks.store(objects, SeqCst);
    }

    pub(super) fn on_two_disks(&self) -> u64 {
        self.records.on_two_disks.load(SeqCst)
    }

    pub(super) fn note_refused(&self) {
        self.counts.refused.fetch_add(1, SeqCst);
    }

    pub(super) fn refused(&self) -> u64 {
        self.counts.refused.load(SeqCst)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.progress.began.load(SeqCst) == self.crowd.clients
    }

    pub(super) fn has_ended(&self) -> bool {
        self.progress.ended.load(SeqCst) == self.crowd.clients && self.progress.beside.load(SeqCst) == 0
    }

    /// A program of a worker's host is at something until this is dropped, as it is when its process ends. None before the load has begun
    /// and once it ends: clients clear away what there is when nobody is at anything, and would not know of what begins then.
    pub(super) fn works_beside(&self) -> Option<WorksBeside> {
        (self.has_begun() && self.calls.goes_on()).then(|| {
            self.progress.beside.fetch_add(1, SeqCst);
            WorksBeside(Arc::clone(&self.progress.beside))
        })
    }

    pub(super) fn is_done(&self) -> bool {
        self.progress.done.load(SeqCst) == self.crowd.clients
    }
}

/// See [`Course::works_beside`].
pub(super) struct WorksBeside(Arc<AtomicUsize>);

impl Drop for WorksBeside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_beside_a_worker_begin_nothing_once_the_load_ends() {
        let course = Course { crowd: Crowd { clients: 1, ..Crowd::default() }, ..Course::default() };
        assert!(course.works_beside().is_none(), "clients have not written what is read");
        course.progress.began.fetch_add(1, SeqCst);
        let works = course.works_beside();
        assert!(works.is_some());
        course.calls.end();
        course.progress.ended.fetch_add(1, SeqCst);
        assert!(course.works_beside().is_none() && !course.has_ended(), "what it is at it ends");
        drop(works);
        assert!(course.works_beside().is_none() && course.has_ended());
    }
}
