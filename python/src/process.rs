use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use forebay_types::{Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of this process.
static CURRENT: ArcSwapOption<InProcess<Threads>> = ArcSwapOption::const_empty();
/// Where its threads are while the process forks.
static FORKING: Mutex<Option<Arc<Halt>>> = Mutex::new(None);
/// Longer than this a fork does not wait for threads that compute.
const HALTED: Duration = Duration::from_secs(1);

/// A runtime, and how many threads it has.
struct Threads {
    runtime: Runtime,
    count: Arc<AtomicUsize>,
}

/// The runtime of this process; made at first use. A child of a fork has none of its parent's threads, so it gets one of
/// its own. No lock here: one that is held while the process forks would be held in the child for ever.
pub(crate) fn runtime() -> Result<Handle> {
    loop {
        let current = CURRENT.load_full();
        if let Some(runtime) = current.as_ref().and_then(|current| current.get().ok()) {
            return Ok(runtime.runtime.handle().clone());
        }
        let count = Arc::new(AtomicUsize::new(0));
        let (more, less) = (Arc::clone(&count), Arc::clone(&count));
        let made = Builder::new_multi_thread()
            .thread_name("forebay")
            .enable_all()
            .on_thread_start(move || _ = more.fetch_add(1, SeqCst))
            .on_thread_stop(move || _ = less.fetch_sub(1, SeqCst))
            .build();
        let runtime = made.map_err(|error| Error::from(error).context("can't start threads"))?;
        // Of two threads that come first together, one's stays.
        CURRENT.compare_and_swap(&current, Some(Arc::new(InProcess::new(Threads { runtime, count }))));
    }
}

/// Before the process forks: halts the threads of its runtime, outside of all locks and queues.
///
/// Threads that wait for work do so in a table of the whole process (`parking_lot`'s), with memory of their stacks. A child has the table
/// but not the threads, gives the stacks to its own, and crashes or goes round for ever in what is left of the queues.
pub(crate) fn before_fork() {
    let current = CURRENT.load_full();
    let Some(Ok(threads)) = current.as_ref().map(|current| current.get()) else { return };
    let handle = threads.runtime.handle();
    let workers = handle.metrics().num_workers();
    // A thread for each job that blocks: so many take all that wait for one, if others are busy.
    let others = threads.count.load(SeqCst).saturating_sub(workers);
    let halt = Arc::<Halt>::default();
    if let Some(earlier) = locked(&FORKING).replace(Arc::clone(&halt)) {
        earlier.go_on();
    }
    for _ in 0..workers {
        let halt = Arc::clone(&halt);
        handle.spawn(async move { halt.stay() });
    }
    for _ in 0..others {
        let halt = Arc::clone(&halt);
        handle.spawn_blocking(move || halt.stay());
    }
    halt.wait_for(workers + others, HALTED);
}

/// After a fork, in the process that was there before: its threads go on.
pub(crate) fn after_fork() {
    if let Some(halt) = locked(&FORKING).take() {
        halt.go_on();
    }
}

/// Where threads stand still. Its locks are the standard library's, which keep nothing outside of themselves.
#[derive(Default)]
struct Halt {
    state: Mutex<Halted>,
    changed: Condvar,
}

#[derive(Default)]
struct Halted {
    threads: usize,
    is_over: bool,
}

impl Halt {
    fn stay(&self) {
        let mut state = locked(&self.state);
        state.threads += 1;
        self.changed.notify_all();
        while !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_for(&self, threads: usize, most: Duration) {
        let until = Instant::now() + most;
        let mut state = locked(&self.state);
        while state.threads < threads
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn go_on(&self) {
        locked(&self.state).is_over = true;
        self.changed.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thing of this process: a runtime, connections, rows, pinned bytes. In a child of a fork it can't be used, and is not
/// dropped: its locks may be held by threads that are not there any more.
pub(crate) struct InProcess<T> {
    process: u32,
    thing: Option<T>,
}

impl<T> InProcess<T> {
    pub(crate) fn new(thing: T) -> Self {
        Self { process: std::process::id(), thing: Some(thing) }
    }

    /// The thing; `Closed` in another process than the one that made it.
    pub(crate) fn get(&self) -> Result<&T> {
        match &self.thing {
            Some(thing) if self.process == std::process::id() => Ok(thing),
            _ => Err(Error::closed(
                "this was opened before the process forked, and its connection is the parent's: open it again here (a client \
                 connects again by itself), or start processes with spawn",
            )),
        }
    }
}

impl<T> Drop for InProcess<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.thing.take());
        }
    }
}
