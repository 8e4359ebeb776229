use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;

use forebay_types::{Error, Result, ResultExt};
use tokio::sync::oneshot;

use super::decode::{Column, Made, decode};

/// Steps down from the priority of those who answer readers.
const NICE: i32 = 10;

/// The thread that decodes: one, and at low priority. It ends with this.
pub(super) struct Decoder {
    line: mpsc::SyncSender<Work>,
}

type Work = (Column, oneshot::Sender<Result<Made>>);

impl Decoder {
    pub(super) fn start() -> Result<Self> {
        let (line, work) = mpsc::sync_channel(1);
        let builder = thread::Builder::new().name("forebay-decode".to_string());
        builder.spawn(move || run(&work)).context(|| "the decoding thread")?;
        Ok(Self { line })
    }

    pub(super) async fn decode(&self, column: Column) -> Result<Made> {
        let gone = || Error::internal("the decoding thread has ended");
        let (done, made) = oneshot::channel();
        self.line.try_send((column, done)).map_err(|_| gone())?;
        made.await.map_err(|_| gone())?
    }
}

fn run(line: &mpsc::Receiver<Work>) {
    // On Linux this is the thread's own. Without it decoding is only less polite.
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "decoding at normal priority");
    }
    while let Ok((column, done)) = line.recv() {
        let path = (column.row_group, column.column);
        // A damaged file must not end the thread, whatever the library thinks of it.
        let made = catch_unwind(AssertUnwindSafe(|| decode(&column)))
            .unwrap_or_else(|_| Err(Error::corrupt(format!("column {} of row group {} can't be decoded", path.1, path.0))));
        // Who asked may have gone.
        let _ = done.send(made);
    }
}
