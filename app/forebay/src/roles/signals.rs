//! Signals that ask a process to end, so that roles stop in order and statements can be given up.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use forebay_types::{Error, ResultExt};

/// What comes within this is the same once more: who sends it to a process and to its group at once, as `timeout` does, sends it twice.
const SAME_WITHIN: Duration = Duration::from_millis(250);

/// Ctrl-C and SIGTERM.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on these signals no longer end the process by themselves.
    pub(crate) fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).context(|| "can't listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for the next one and gives its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }

    /// Waits for one that somebody sent after the one that has just come.
    pub(crate) async fn another(&mut self) {
        let began = forebay_runtime::time::instant();
        loop {
            self.next().await;
            if began.elapsed() >= SAME_WITHIN {
                return;
            }
        }
    }
}
