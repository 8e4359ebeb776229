//! What happened, as a number that differs when anything of it does, and as lines for who wants to read it.

use std::fmt::Display;

use parking_lot::Mutex;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What happened in a world.
pub(crate) struct Trace {
    hash: Mutex<Xxh3>,
    tells: bool,
}

impl Trace {
    /// One that also writes lines to the standard error, when it `tells`.
    pub(crate) fn new(tells: bool) -> Self {
        Self { hash: Mutex::new(Xxh3::new()), tells }
    }

    /// A packet arrived.
    pub(crate) fn packet(&self, at_us: u64, kind: &str, from: &str, to: &str, bytes: &[u8]) {
        self.event(at_us, format_args!("{from} > {to} {kind} {} {:016x}", bytes.len(), xxh3_64(bytes)));
    }

    /// Anything else.
    pub(crate) fn event(&self, at_us: u64, what: impl Display) {
        let line = format!("{at_us:>10} {what}\n");
        self.hash.lock().update(line.as_bytes());
        if self.tells {
            use std::io::Write;
            // Who reads it may have gone.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    /// The number.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.lock().digest()
    }
}
