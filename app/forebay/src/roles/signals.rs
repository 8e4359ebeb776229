//! Signals that ask a process to end, so that roles stop in order and statements can be given up.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use forebay_types::{Error, ResultExt};

/// What comes within this is the same once more: who sends it to a process and to its group at once, as `timeout` does, sends it twice.
const SAME_WITHIN: Duration = Duration::from_millis(250);

/// Ctrl-C, SIGTERM, and SIGHUP, as of a terminal that goes.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored, as `nohup` wants it.
    hangup: Option<Signal>,
}

impl Signals {
    /// From now on these signals no longer end the process by themselves.
    pub(crate) fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).context(|| "can't listen for signals");
        let is_ignored = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status));
        let hangup = (!is_ignored).then(|| listen(SignalKind::hangup())).transpose()?;
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())?, hangup })
    }

    /// Waits for the next one and gives its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => {
                    hangup.recv().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            () = hung_up => "SIGHUP",
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

/// Whether a process ignores SIGHUP, by its `/proc/PID/status`.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ignores_the_end_of_a_terminal_is_known() {
        let status =
            |mask: &str| format!("Name:\tforebay\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t0000000000000001\n");
        assert!(ignores_hangup(&status("0000000000001001")));
        assert!(!ignores_hangup(&status("0000000000001000")) && !ignores_hangup(""));
    }
}
