//! Who is told that something begins to be read.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

/// Somebody who waits for something to be read; nobody, until there is one.
#[derive(Default)]
pub(super) struct Begins(OnceLock<Arc<Notify>>);

impl Begins {
    /// Tells `waits` from now on. Where there is somebody already, it stays so.
    pub(super) fn telling(&self, waits: Arc<Notify>) {
        let _ = self.0.set(waits);
    }

    pub(super) fn tell(&self) {
        if let Some(waits) = self.0.get() {
            waits.notify_one();
        }
    }
}
