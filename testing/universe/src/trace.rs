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
        let of_bytes = xxh3_64(bytes);
        {
            // Of what a line would say, without making it: packets are most of what happens.
            let mut hash = self.hash.lock();
            [at_us, bytes.len() as u64, of_bytes].iter().for_each(|number| hash.update(&number.to_le_bytes()));
            [from, to, kind].iter().for_each(|word| {
                hash.update(word.as_bytes());
                hash.update(b" ");
            });
        }
        self.tell(at_us, format_args!("{from} > {to} {kind} {} {of_bytes:016x}", bytes.len()));
    }

    /// Anything else.
    pub(crate) fn event(&self, at_us: u64, what: impl Display) {
        let what = what.to_string();
        {
            let mut hash = self.hash.lock();
            hash.update(&at_us.to_le_bytes());
            hash.update(what.as_bytes());
        }
        self.tell(at_us, what);
    }

    fn tell(&self, at_us: u64, what: impl Display) {
        if self.tells {
            use std::io::Write;
            // Who reads it may have gone.
            let _ = std::io::stderr().write_all(format!("{at_us:>10} {what}\n").as_bytes());
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash.lock().digest()
    }
}
