//! The runtime of this process, and what keeps parent and child whole when Python forks with its threads running.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use forebay_runtime::Computing;
use forebay_types::{Error, Result, ResultExt};
use pyo3::Python;
use tokio::runtime::{Builder, Handle, Runtime};

/// The runtime of this process.
static CURRENT: ArcSwapOption<InProcess<Threads>> = ArcSwapOption::const_empty();
/// The forks under way. Locked by who has the interpreter only, as who forks does: no child finds it locked.
static FORKING: Mutex<Option<Forking>> = Mutex::new(None);
/// Longer than this a fork does not wait for threads that compute.
const HALTING_MOST: Duration = Duration::from_secs(1);
/// Longer than this threads do not stand still: a hook of another package may wait for what they do.
const HALTED_MOST: Duration = Duration::from_secs(5);

/// A runtime, and how many threads it has; and those beside it that statements are planned and run by, once there is one.
struct Threads {
    runtime: Runtime,
    count: Arc<AtomicUsize>,
    computing: ArcSwapOption<Computing>,
}

/// The runtime of this process; made at first use.
pub(crate) fn runtime() -> Result<Handle> {
    Ok(threads()?.get()?.runtime.handle().clone())
}

/// The threads of this process that statements are planned and run by, for all connections; made at first use.
pub(crate) fn computing() -> Result<Computing> {
    let current = threads()?;
    let threads = current.get()?;
    if let Some(computing) = threads.computing.load_full() {
        return Ok(Computing::clone(&computing));
    }
    let _beside = threads.runtime.enter();
    let made = Computing::start("query").context(|| "threads for queries can't be started")?;
    // As below.
    let first = threads.computing.compare_and_swap(&None::<Arc<Computing>>, Some(Arc::new(made.clone())));
    Ok(if let Some(first) = &*first { Computing::clone(first) } else { made })
}

/// A child of a fork has none of its parent's threads, so it gets some of its own. No lock here: one that is held while the process
/// forks would be held in the child for ever.
fn threads() -> Result<Arc<InProcess<Threads>>> {
    loop {
        let current = CURRENT.load_full();
        if let Some(current) = current.as_ref().filter(|current| current.get().is_ok()) {
            return Ok(Arc::clone(current));
        }
        let count = Arc::new(AtomicUsize::new(0));
        let (more, less) = (Arc::clone(&count), Arc::clone(&count));
        let made = Builder::new_multi_thread()
            .thread_name("forebay")
            .thread_stack_size(forebay_runtime::STACK_BYTES)
            .enable_all()
            .on_thread_start(move || _ = more.fetch_add(1, SeqCst))
            .on_thread_stop(move || _ = less.fetch_sub(1, SeqCst))
            .build();
        let runtime = made.map_err(|error| Error::from(error).context("can't start threads"))?;
        let threads = Threads { runtime, count, computing: ArcSwapOption::empty() };
        // Of two threads that come first together, one's stays.
        CURRENT.compare_and_swap(&current, Some(Arc::new(InProcess::new(threads))));
    }
}

/// Before the process forks: halts the threads of its runtime and those that compute, outside of all locks and queues.
///
/// Threads that wait for work do so in a table of the whole process (`parking_lot`'s), with memory of their stacks. A child has
/// the table but not the threads, gives the stacks to its own, and crashes or goes round for ever in what is left of the queues.
pub(crate) fn before_fork(py: Python<'_>) {
    let halt = {
        let mut forking = locked(&FORKING);
        match &mut *forking {
            Some(forking) => {
                forking.forks += 1;
                Arc::clone(&forking.halt)
            }
            None => {
                let Some(halt) = Halt::of_runtime() else { return };
                *forking = Some(Forking { halt: Arc::clone(&halt), forks: 1 });
                halt
            }
        }
    };
    // What the threads do before they stand still may need the interpreter.
    py.detach(|| halt.wait_for_all(HALTING_MOST));
}

/// After a fork, in the process that was there before: its threads go on, unless another fork is under way.
pub(crate) fn after_fork_in_parent(_: Python<'_>) {
    let mut forking = locked(&FORKING);
    let Some(under_way) = &mut *forking else { return };
    under_way.forks -= 1;
    if under_way.forks == 0 {
        under_way.halt.go_on();
        *forking = None;
    }
}

/// After a fork, in the child: no thread of it stands still, and by what it draws nobody takes it for another child.
pub(crate) fn after_fork_in_child(_: Python<'_>) {
    // Not dropped, nor locked: a thread that the child does not have may just have been about to stand still.
    std::mem::forget(locked(&FORKING).take());
    forebay_runtime::draw_anew();
}

/// Forks under way, and where the threads are meanwhile.
struct Forking {
    halt: Arc<Halt>,
    forks: usize,
}

/// Where threads stand still. Its locks are the standard library's, which keep nothing outside of themselves.
struct Halt {
    threads: usize,
    state: Mutex<Halted>,
    changed: Condvar,
}

#[derive(Default)]
struct Halted {
    threads: usize,
    is_over: bool,
}

impl Halt {
    /// Asks all threads of this process's runtime, and those beside it, to stand still; none where it has no runtime.
    fn of_runtime() -> Option<Arc<Self>> {
        let current = CURRENT.load_full()?;
        let threads = current.get().ok()?;
        let computing = threads.computing.load_full();
        let beside = computing.as_ref().and_then(|computing| computing.threads());
        let own = (threads.runtime.handle(), threads.count.load(SeqCst));
        let all = [Some(own), beside].into_iter().flatten().map(|(handle, count)| {
            let workers = handle.metrics().num_workers();
            // So many jobs that block take all threads that wait for such a one; for those that are busy new ones come.
            (handle, workers, count.saturating_sub(workers))
        });
        let all: Vec<(&Handle, usize, usize)> = all.collect();
        let count = all.iter().map(|(_, workers, others)| workers + others).sum();
        let halt = Arc::new(Self { threads: count, state: Mutex::default(), changed: Condvar::new() });
        for (handle, workers, others) in all {
            for _ in 0..workers {
                let halt = Arc::clone(&halt);
                handle.spawn(async move { halt.stay() });
            }
            for _ in 0..others {
                let halt = Arc::clone(&halt);
                handle.spawn_blocking(move || halt.stay());
            }
        }
        Some(halt)
    }

    fn stay(&self) {
        let mut state = locked(&self.state);
        state.threads += 1;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(state, HALTED_MOST, |state| !state.is_over));
    }

    fn wait_for_all(&self, most: Duration) {
        drop(self.changed.wait_timeout_while(locked(&self.state), most, |state| state.threads < self.threads));
    }

    fn go_on(&self) {
        locked(&self.state).is_over = true;
        self.changed.notify_all();
    }
}

/// Nothing panics with these locks.
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
