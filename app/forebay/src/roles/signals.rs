//! Signals that ask a process to end, so that roles stop in order and statements can be given up.

use tokio::signal::unix::{Signal, SignalKind, signal};

use forebay_types::{Error, ResultExt};

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
}
