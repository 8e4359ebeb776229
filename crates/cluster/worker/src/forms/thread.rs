//! The threads that decode and select.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;

use forebay_types::{Error, Result, ResultExt};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Steps down from the priority of those who answer readers.
const NICE: i32 = 10;

/// Threads at low priority for what takes long. They end with this.
pub(super) struct Threads {
    line: mpsc::SyncSender<Work>,
}

type Work = Box<dyn FnOnce() + Send>;

impl Threads {
    /// Starts so many, called `name`, before which so much may wait.
    pub(super) fn start(name: &str, threads: usize, waiting: usize) -> Result<Self> {
        assert!(threads > 0, "somebody does it");
        let (line, work) = mpsc::sync_channel(waiting);
        let work = Arc::new(Mutex::new(work));
        for _ in 0..threads {
            let work = Arc::clone(&work);
            let builder = thread::Builder::new().name(name.to_string());
            builder.spawn(move || run(&work)).context(|| format!("a thread of {name}"))?;
        }
        Ok(Self { line })
    }

    /// Has a thread do it; `Retry` where too much waits already. Nobody does what is not waited for any more when its turn comes.
    pub(super) async fn have<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let (done, made) = oneshot::channel();
        let work = move || {
            if done.is_closed() {
                return;
            }
            // A damaged file must not end the thread, whatever the library thinks of it.
            let made = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::corrupt("it can't be decoded")));
            // Who asked may have gone.
            let _ = done.send(made);
        };
        self.line.try_send(Box::new(work)).map_err(|_| Error::retry("too much is being decoded: try again"))?;
        made.await.map_err(|_| Error::internal("a thread that decodes has ended"))?
    }
}

fn run(line: &Mutex<mpsc::Receiver<Work>>) {
    // On Linux this is the thread's own. Without it decoding is only less polite.
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "decoding at normal priority");
    }
    loop {
        // Whoever waits for work holds the line; it is let go before the work is done.
        let next = line.lock().recv();
        let Ok(work) = next else { return };
        work();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_done() {
        let threads = Threads::start("one", 1, 4).unwrap();
        let (go, wait) = mpsc::channel::<()>();
        let mut first = Box::pin(threads.have(move || Ok(wait.recv().is_ok())));
        assert!(first.as_mut().now_or_never().is_none());
        let is_done = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_done);
        let given_up = threads.have(move || {
            told.store(true, SeqCst);
            Ok(())
        });
        assert!(given_up.now_or_never().is_none());
        go.send(()).unwrap();
        assert!(first.await.unwrap());
        threads.have(|| Ok(())).await.unwrap();
        assert!(!is_done.load(SeqCst));
    }
}
