use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, Semaphore};

use super::read::Load;
use crate::core::Core;
use crate::table::BlockRef;

/// Blocks that wait to be written at most.
const WRITES_MAX: usize = 4096;
/// After so long without anything to do, blocks that were left out are looked for.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// Loads that wait or run at most, for each request in flight.
const LOADS_PER_THREAD: usize = 8;

/// Any other work on the disk.
pub(crate) type Task = Box<dyn FnOnce(&Arc<Core>) + Send>;

/// The work of the store's own threads. Loads go first, for someone waits for them; at most half of the threads write.
pub(crate) struct Pool {
    queues: Mutex<Queues>,
    work: Condvar,
    /// The last write or task is done.
    idle: Notify,
    /// Limits loads that wait or run.
    pub load_permits: Arc<Semaphore>,
    writers_max: usize,
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
    pub fn new(threads: usize) -> Self {
        Self {
            queues: Mutex::default(),
            work: Condvar::new(),
            idle: Notify::new(),
            load_permits: Arc::new(Semaphore::new(threads * LOADS_PER_THREAD)),
            writers_max: (threads / 2).max(1),
        }
    }

    /// Sees to it that a thread writes the index soon.
    pub fn nudge(&self) {
        self.task(|_| {});
    }

    pub fn load(&self, load: Load) {
        self.push(|queues| queues.loads.push_back(load));
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
            match job {
                Job::Load(load) => caught(|| load.run()),
                Job::Task(task) => {
                    caught(|| task(core));
                    self.done_with(|queues| queues.taskers -= 1);
                }
                Job::Sweep => caught(|| core.sweep()),
                Job::Write(block) => {
                    caught(|| core.write_block(block));
                    self.done_with(|queues| queues.writers -= 1);
                    // A thread may have found writes waiting and all writers at work.
                    self.work.notify_one();
                }
            }
            caught(|| core.write_index());
        }
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
            self.work.notify_one();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queues = self.queues.lock();
        loop {
            if queues.stopped {
                return None;
            }
            if let Some(load) = queues.loads.pop_front() {
                return Some(Job::Load(load));
            }
            if let Some(task) = queues.tasks.pop_front() {
                queues.taskers += 1;
                return Some(Job::Task(task));
            }
            if queues.writers < self.writers_max
                && let Some(block) = queues.writes.pop_front()
            {
                queues.writers += 1;
                return Some(Job::Write(block));
            }
            if !queues.skipped {
                self.work.wait(&mut queues);
            } else if self.work.wait_for(&mut queues, SWEEP_AFTER).timed_out()
                && queues.writes.is_empty()
                && std::mem::take(&mut queues.skipped)
            {
                return Some(Job::Sweep);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::StoreSettings;

    #[test]
    fn work_that_fails_by_a_defect_takes_no_thread_and_no_count_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path()).expect("made");
        let settings = StoreSettings::new(folder.path().to_path_buf(), 16 << 20).with_disk(16 << 20);
        let core = Arc::new(Core::new(settings, Duration::from_secs(1)).expect("a store"));
        let pool = Arc::new(Pool::new(2));
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
