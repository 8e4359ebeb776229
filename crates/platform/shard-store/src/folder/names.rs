//! Names of new files: no two files of a folder ever have the same one, whatever fails.

use std::sync::atomic::{AtomicU64, Ordering};

/// Hands out names. A number that was handed out never comes again, also when the change that asked for it failed: its file
/// may be mapped.
pub(crate) struct Names {
    last: AtomicU64,
}

impl Names {
    /// Names behind that of the newest file.
    pub(crate) fn after(last: u64) -> Self {
        Self { last: AtomicU64::new(last) }
    }

    /// A name for a new file.
    pub(crate) fn next(&self, what: &str) -> String {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{what}-{number:06}")
    }

    /// The number in the name of the newest file, for the manifest.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}
