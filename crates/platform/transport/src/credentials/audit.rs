//! Who changed what, and who was refused: one event for each, which the process writes to its audit log where it keeps one.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_types::{Error, ErrorKind};
use tracing::Level;

/// The target of these events. They are of level info, and have the fields `port`, `who`, `from`, `what`, `on`, `verdict`, `why`.
pub const AUDIT: &str = "forebay_audit";

/// So much of a path or a name is told.
const ON_BYTES_MAX: usize = 1024;

/// What somebody wanted to do.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Where it came in: `control`, `data`, `s3`, `sql`, `http`, `cluster` (of scheduler and executors); `connection` before anything was asked.
    pub port: &'static str,
    /// The request's name.
    pub what: &'static str,
    /// What it was done to: a path or a name, as far as the request says it.
    pub on: String,
}

static IS_AUDITED: AtomicBool = AtomicBool::new(false);

/// Somebody writes down what [`tell`] is told, from now on and as long as the process lives.
pub fn begin_audit() {
    IS_AUDITED.store(true, Ordering::Relaxed);
}

/// Whether anybody does. The log is not asked: where its layers have filters of their own, asking loses the thread's next event.
pub fn is_audited() -> bool {
    IS_AUDITED.load(Ordering::Relaxed)
}

/// Tells the audit log what `who` did, from an address; or did not, since it was refused.
pub fn tell(who: impl Display, from: &str, deed: &Deed, refused: Option<&Error>) {
    let Deed { port, what, on } = deed;
    // Also of who has proved nothing, and writes what it likes there.
    let on = &on[..on.floor_char_boundary(ON_BYTES_MAX)];
    let verdict = if refused.is_some() { "refused" } else { "allowed" };
    let why = refused.map(tracing::field::display);
    tracing::event!(target: AUDIT, Level::INFO, port, %who, from, what, on, verdict, why);
}

/// Tells the audit log of a connection that was refused since it did not prove who it is.
pub(crate) fn tell_stranger(from: &str, error: &Error) {
    if error.kind() == ErrorKind::Denied && is_audited() {
        tell("unknown", from, &Deed { port: "connection", what: "connect", on: String::new() }, Some(error));
    }
}
