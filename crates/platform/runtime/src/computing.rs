//! Threads for what computes for long between two waits, apart from those that answer.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::simulated::is_simulated;

thread_local! {
    /// Where a thread that computes has its other work done; none on all other threads.
    static HOME: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// How often a thread that computes looks for timers and sockets of its own, in turns of its tasks: these take longer than
/// those that the library's usual number is for.
const LOOKS_EVERY: u32 = 7;

/// Stack of a thread that statements of SQL are planned or run by: trees of plans are gone through call by call, and one that is too
/// deep for the stack ends the process. Only what is used of it takes memory. Without optimisation a call takes many times as much.
pub const STACK_BYTES: usize = if cfg!(debug_assertions) { 128 << 20 } else { 16 << 20 };

/// Threads of their own for work that computes. A task of many milliseconds keeps the next one of its thread waiting, and
/// everything that answers must not be that one; the system's scheduler shares the cores between these threads and the others.
///
/// What such work begins by [`crate::spawn`], as connections and fetches that others share, is done by the runtime that these were
/// started in. They end when the last clone is gone.
#[derive(Clone, Debug)]
pub struct Computing(Arc<Threads>);

#[derive(Debug)]
struct Threads {
    runtime: Option<Runtime>,
    /// How many there are, with those that do what blocks.
    count: Arc<AtomicUsize>,
    /// Of those that may do what takes long without a pause.
    turns: Semaphore,
}

impl Computing {
    /// Starts one thread a core, called `name`, beside the runtime that this is called in.
    pub fn start(name: &str) -> io::Result<Self> {
        let home = Handle::current();
        let count = Arc::new(AtomicUsize::new(0));
        let (more, less) = (Arc::clone(&count), Arc::clone(&count));
        let at_home = move || {
            more.fetch_add(1, SeqCst);
            HOME.set(Some(home.clone()));
        };
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name(name)
            .thread_stack_size(STACK_BYTES)
            .event_interval(LOOKS_EVERY)
            .on_thread_start(at_home)
            .on_thread_stop(move || _ = less.fetch_sub(1, SeqCst))
            .build()?;
        let turns = Semaphore::new((runtime.metrics().num_workers() / 2).max(1));
        Ok(Self(Arc::new(Threads { runtime: Some(runtime), count, turns })))
    }

    /// Does what takes a thread for seconds between two waits, in turns: half of the threads do such a thing at most, so that others are left
    /// for the rest. While it waits for something, others have its turn, and it waits for one more before it goes on. Nothing within may wait
    /// for a turn of its own: what is given one and is not asked to go on keeps it from all others.
    pub async fn in_turns<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            // None where there are no more turns, which is never.
            let mut turn = self.0.turns.acquire().await.ok();
            let mut is_woken = false;
            let done = poll_fn(|context| {
                if std::mem::replace(&mut is_woken, true) {
                    return Poll::Ready(None);
                }
                let done = work.as_mut().poll(context).map(Some);
                drop(turn.take());
                done
            });
            if let Some(done) = done.await {
                return done;
            }
        }
    }

    /// The runtime of the threads, and how many there are, with those that do what blocks: for who halts all of them.
    pub fn threads(&self) -> Option<(&Handle, usize)> {
        self.0.runtime.as_ref().map(|runtime| (runtime.handle(), self.0.count.load(SeqCst)))
    }

    /// Has one of the threads do it.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.0.runtime {
            Some(runtime) if !is_simulated() => runtime.spawn(work),
            _ => spawn(work),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Not waited for: this may be one of them, or a thread that answers.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs something beside its caller.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if let Some(home) = HOME.with_borrow(Option::clone) { home.spawn(work) } else { tokio::spawn(work) }
}

/// Runs what an owner that is dropped leaves to be done; nothing where there is no runtime any more.
pub fn spawn_left(work: impl Future<Output = ()> + Send + 'static) {
    if Handle::try_current().is_ok() {
        drop(spawn(work));
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::time::timeout;

    #[tokio::test]
    async fn what_calls_itself_often_has_the_stack_for_it() {
        fn deep(calls: usize) -> usize {
            let room = black_box([1_u8; 4 << 10]);
            match calls {
                0 => 0,
                calls => deep(calls - 1) + usize::from(room[calls % room.len()]),
            }
        }
        let computing = Computing::start("computing").unwrap();
        assert_eq!(computing.spawn(async { deep(800) }).await.unwrap(), 800);
    }

    fn name() -> Option<String> {
        thread::current().name().map(str::to_string)
    }

    #[tokio::test]
    async fn what_computes_keeps_nobody_waiting_and_what_it_begins_is_done_at_home() {
        let computing = Computing::start("computing").unwrap();
        let cores = thread::available_parallelism().unwrap().get();
        let (done, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        // All of its threads are taken for as long as this test likes.
        let busy: Vec<_> = (0..cores)
            .map(|_| {
                let wait = Arc::clone(&wait);
                computing.spawn(async move {
                    let begun = spawn(async { name() });
                    let _ = wait.lock().unwrap().recv();
                    (name(), begun.await.unwrap())
                })
            })
            .collect();
        // The test's own thread, which is the home of all, still does what is asked of it.
        assert_eq!(spawn(async { 7 }).await.unwrap(), 7);
        drop(done);
        let mine = name();
        for task in busy {
            let (computed, begun) = task.await.unwrap();
            assert_eq!(computed.as_deref(), Some("computing"));
            assert_eq!(begun, mine);
        }
    }

    #[tokio::test]
    async fn what_takes_long_leaves_threads_to_others_and_its_turn_while_it_waits() {
        const MOMENT: Duration = Duration::from_millis(20);
        let computing = Computing::start("computing").unwrap();
        let free = || computing.0.turns.available_permits();
        let most = (thread::available_parallelism().unwrap().get() / 2).max(1);
        assert_eq!(free(), most);
        let gate = Semaphore::new(0);
        let mut work = pin!(computing.in_turns(async {
            assert_eq!(free(), most - 1, "it computes");
            gate.acquire().await.unwrap().forget();
            assert_eq!(free(), most - 1, "it computes again");
            7
        }));
        assert!(timeout(MOMENT, &mut work).await.is_err(), "it waits");
        assert_eq!(free(), most, "and others compute meanwhile");
        let all = computing.0.turns.acquire_many(most as u32).await.unwrap();
        gate.add_permits(1);
        assert!(timeout(MOMENT, &mut work).await.is_err(), "{most} have their turn");
        drop(all);
        assert_eq!(work.await, 7);
        assert_eq!(free(), most);
    }

    #[tokio::test]
    async fn threads_are_counted_with_those_that_block() {
        let computing = Computing::start("computing").unwrap();
        let (told, tells) = mpsc::channel();
        let blocked = computing.spawn(async {
            tokio::task::spawn_blocking(move || {
                HOME.with_borrow(|home| assert!(home.is_some(), "what it begins is done where it was started"));
                told.send(()).unwrap();
            })
            .await
        });
        blocked.await.unwrap().unwrap();
        tells.recv().unwrap();
        let (handle, count) = computing.threads().unwrap();
        assert!((2..=handle.metrics().num_workers() + 1).contains(&count), "{count}");
    }

    #[tokio::test]
    async fn a_panic_ends_its_work_alone() {
        let computing = Computing::start("computing").unwrap();
        assert!(computing.spawn(async { panic!("a defect") }).await.map(|(): ()| ()).unwrap_err().is_panic());
        assert_eq!(computing.spawn(async { 7 }).await.unwrap(), 7);
        // By a task of its own it ends as well.
        let last = computing.clone();
        drop(computing);
        let ends = last.clone().spawn(async move { drop(last) });
        let _ = ends.await;
    }
}
