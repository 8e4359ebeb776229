//! What the store's own threads do next, and in which order: loads, then other work, then writing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, Semaphore};

use super::Core;
use crate::table::{BlockRef, DiskNo};

/// Blocks that wait to be written at most.
const WRITES_MAX: usize = 4096;
/// After so long without anything to do, blocks that were left out are looked for.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// Loads that wait or run at most, for each request in flight.
const LOADS_PER_THREAD: usize = 8;

/// A load of pages that somebody waits for.
pub(crate) type Load = Box<dyn FnOnce() + Send>;

/// Any other work on the disk.
pub(crate) type Task = Box<dyn FnOnce(&Arc<Core>) + Send>;

/// The work of a disk's own threads. Loads go first, for someone waits for them; at most half of the threads write.
pub(crate) struct Pool {
    disk: DiskNo,
    queues: Mutex<Queues>,
    work: Condvar,
    /// The last write or task is done.
    idle: Notify,
    /// Limits loads that wait or run.
    pub load_permits: Arc<Semaphore>,
    writers_max: usize,
    /// Set where each job is a task instead.
    in_tasks: OnceLock<Weak<Core>>,
}

#[derive(Default)]
struct Queues {
    loads: VecDeque<Load>,
    tasks: VecDeque<Task>,
    writes: VecDeque<BlockRef>,
    /// Threads that write.
    writers: usize,
    /// Threads with a task.
    taskers: usize,
    /// Blocks were left out because the queue was full or writing paused: all are looked through when it is empty.
    skipped: bool,
    stopped: bool,
}

impl Queues {
    fn is_idle(&self) -> bool {
        self.writes.is_empty() && self.tasks.is_empty() && self.writers == 0 && self.taskers == 0
    }

    fn waiting(&self) -> usize {
        self.loads.len() + self.tasks.len() + self.writes.len() + self.writers + self.taskers
    }

    fn pop(&mut self, writers_max: usize) -> Option<Job> {
        if let Some(load) = self.loads.pop_front() {
            return Some(Job::Load(load));
        }
        if let Some(task) = self.tasks.pop_front() {
            self.taskers += 1;
            return Some(Job::Task(task));
        }
        if self.writers >= writers_max {
            return None;
        }
        self.writers += usize::from(!self.writes.is_empty());
        self.writes.pop_front().map(Job::Write)
    }

    /// Nothing was to do for a while.
    fn sweep(&mut self) -> Option<Job> {
        (self.writes.is_empty() && std::mem::take(&mut self.skipped)).then_some(Job::Sweep)
    }
}

/// Runs a job, which takes no thread with it when it fails by a defect: who waits for it finds its pages missing.
fn caught(job: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("work on the disk tier failed by a defect, which was reported where it happened");
    }
}

enum Job {
    Load(Load),
    Task(Task),
    Write(BlockRef),
    /// Look for blocks that were left out.
    Sweep,
}

impl Pool {
    pub fn new(disk: DiskNo, threads: usize) -> Self {
        Self {
            disk,
            queues: Mutex::default(),
            work: Condvar::new(),
            idle: Notify::new(),
            load_permits: Arc::new(Semaphore::new(threads * LOADS_PER_THREAD)),
            writers_max: (threads / 2).max(1),
            in_tasks: OnceLock::new(),
        }
    }

    /// Sees to it that a thread writes the index soon.
    pub fn nudge(&self) {
        self.task(|_| {});
    }

    pub fn load(&self, load: impl FnOnce() + Send + 'static) {
        self.push(|queues| queues.loads.push_back(Box::new(load)));
    }

    pub fn task(&self, task: impl FnOnce(&Arc<Core>) + Send + 'static) {
        self.push(|queues| queues.tasks.push_back(Box::new(task)));
    }

    /// Takes a block to be written; false when the queue is full.
    pub fn write(&self, block: BlockRef) -> bool {
        let mut taken = false;
        self.push(|queues| {
            taken = queues.writes.len() < WRITES_MAX;
            if taken {
                queues.writes.push_back(block);
            } else {
                queues.skipped = true;
            }
        });
        taken
    }

    /// Requests that wait or are worked on, but for loads under way.
    pub fn waiting(&self) -> u64 {
        self.queues.lock().waiting() as u64
    }

    /// Takes all blocks that wait to be written out of the queue.
    pub fn take_writes(&self) -> Vec<BlockRef> {
        let mut queues = self.queues.lock();
        let taken = queues.writes.drain(..).collect();
        // No thread ends one of them, which would say so.
        if queues.is_idle() {
            self.idle.notify_waiters();
        }
        taken
    }

    /// Notes that blocks were left out.
    pub fn skip(&self) {
        self.push(|queues| queues.skipped = true);
    }

    /// Waits until no block and no task waits or is worked on.
    pub async fn done(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            {
                let queues = self.queues.lock();
                if queues.stopped || queues.is_idle() {
                    return;
                }
            }
            idle.await;
        }
    }

    /// Ends the threads after what they do now; what waits is dropped.
    pub fn stop(&self) {
        let dropped = {
            let mut queues = self.queues.lock();
            queues.stopped = true;
            (std::mem::take(&mut queues.loads), std::mem::take(&mut queues.tasks), std::mem::take(&mut queues.writes))
        };
        // Loads hold the core; they are dropped outside the lock, since that ends claims.
        drop(dropped);
        self.work.notify_all();
        self.idle.notify_waiters();
    }

    /// A thread's life.
    pub fn run(&self, core: &Arc<Core>) {
        while let Some(job) = self.next() {
            self.do_job(job, core);
        }
    }

    /// From now on there are no threads: each job is a task of the runtime.
    pub fn work_in_tasks(&self, core: &Arc<Core>) {
        let set = self.in_tasks.set(Arc::downgrade(core));
        assert!(set.is_ok(), "a pool is set to work once");
    }

    fn do_job(&self, job: Job, core: &Arc<Core>) {
        match job {
            Job::Load(load) => caught(load),
            Job::Task(task) => {
                caught(|| task(core));
                self.done_with(|queues| queues.taskers -= 1);
            }
            Job::Sweep => caught(|| core.sweep(self.disk)),
            Job::Write(block) => {
                caught(|| core.write_block(block));
                self.done_with(|queues| queues.writers -= 1);
                // A thread may have found writes waiting and all writers at work.
                self.work.notify_one();
            }
        }
        caught(|| core.write_index(core.disk(self.disk)));
    }

    fn done_with(&self, count: impl FnOnce(&mut Queues)) {
        let mut queues = self.queues.lock();
        count(&mut queues);
        if queues.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn push(&self, put: impl FnOnce(&mut Queues)) {
        let mut queues = self.queues.lock();
        if !queues.stopped {
            put(&mut queues);
            drop(queues);
            if let Some(core) = self.in_tasks.get() {
                forebay_runtime::spawn(do_next(core.clone(), self.disk));
            } else {
                self.work.notify_one();
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queues = self.queues.lock();
        loop {
            if queues.stopped {
                return None;
            }
            if let Some(job) = queues.pop(self.writers_max) {
                return Some(job);
            }
            if !queues.skipped {
                self.work.wait(&mut queues);
            } else if self.work.wait_for(&mut queues, SWEEP_AFTER).timed_out()
                && let Some(job) = queues.sweep()
            {
                return Some(job);
            }
        }
    }
}

/// A job's task: one for each that is put in. It holds the store no longer than the job takes.
async fn do_next(core: Weak<Core>, disk: DiskNo) {
    let late = forebay_runtime::simulated::disk_late();
    if !late.is_zero() {
        forebay_runtime::time::sleep(late).await;
    }
    let take = |pop: fn(&mut Queues, usize) -> Option<Job>| {
        let core = core.upgrade()?;
        let pool = &core.disk(disk).pool;
        let job = pop(&mut pool.queues.lock(), pool.writers_max)?;
        pool.do_job(job, &core);
        Some(())
    };
    if take(Queues::pop).is_none() {
        // Put in for what was left out.
        forebay_runtime::time::sleep(SWEEP_AFTER).await;
        take(|queues, _| queues.sweep());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::StoreSettings;
    use crate::table::SegmentRef;

    #[tokio::test]
    async fn who_waits_for_blocks_hears_that_they_were_taken_out() {
        let pool = Pool::new(DiskNo(0), 1);
        assert!(pool.write(SegmentRef::first().block(0)));
        let waits = forebay_runtime::time::timeout(Duration::from_secs(10), pool.done());
        let (done, taken) = tokio::join!(waits, async { pool.take_writes() });
        assert!(done.is_ok() && taken.len() == 1);
    }

    #[test]
    fn work_that_fails_by_a_defect_takes_no_thread_and_no_count_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path()).expect("made");
        let settings = StoreSettings::new(folder.path().to_path_buf(), 16 << 20).with_disk(16 << 20);
        let core = Arc::new(Core::new(settings, Duration::from_secs(1)).expect("a store"));
        let pool = Arc::new(Pool::new(DiskNo(0), 2));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (pool, core) = (pool.clone(), core.clone());
                std::thread::spawn(move || pool.run(&core))
            })
            .collect();
        for _ in 0..16 {
            pool.task(|_| panic!("as the test wants it"));
        }
        let (done, heard) = std::sync::mpsc::channel();
        pool.task(move |_| done.send(()).expect("it is heard"));
        heard.recv_timeout(Duration::from_secs(10)).expect("the threads go on");
        while !pool.queues.lock().is_idle() {
            std::thread::yield_now();
        }
        pool.stop();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread ended by a panic"));
    }
}
