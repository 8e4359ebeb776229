//! The thread that decodes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use forebay_types::{Error, Result, ResultExt};
use tokio::sync::oneshot;

use super::cell::Made;

/// Steps down from the priority of those who answer readers.
const NICE: i32 = 10;

/// The thread that decodes: one, and at low priority. It ends with this.
pub(super) struct Decoder {
    line: mpsc::SyncSender<Work>,
}

type Work = (Box<dyn FnOnce() -> Result<Made> + Send>, oneshot::Sender<Result<Made>>);

impl Decoder {
    pub(super) fn start() -> Result<Self> {
        let (line, work) = mpsc::sync_channel(1);
        let builder = thread::Builder::new().name("forebay-decode".to_string());
        builder.spawn(move || run(&work)).context(|| "the decoding thread")?;
        Ok(Self { line })
    }

    /// Has the thread decode something.
    pub(super) async fn decode(&self, work: impl FnOnce() -> Result<Made> + Send + 'static) -> Result<Made> {
        let gone = || Error::internal("the decoding thread has ended");
        let (done, made) = oneshot::channel();
        self.line.try_send((Box::new(work), done)).map_err(|_| gone())?;
        made.await.map_err(|_| gone())?
    }
}

fn run(line: &mpsc::Receiver<Work>) {
    // On Linux this is the thread's own. Without it decoding is only less polite.
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "decoding at normal priority");
    }
    while let Ok((work, done)) = line.recv() {
        // A damaged file must not end the thread, whatever the library thinks of it.
        let made = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::corrupt("it can't be decoded")));
        // Who asked may have gone.
        let _ = done.send(made);
    }
}
