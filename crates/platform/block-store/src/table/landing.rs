//! What readers wait for when another one has begun to load the same pages already.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::Notify;

/// The end of a read from the disk tier, waited for by everyone who wants its pages.
#[derive(Debug, Default)]
pub(crate) struct Landing {
    landed: AtomicBool,
    notify: Notify,
}

impl Landing {
    /// The pages are there, or will not come.
    pub fn land(&self) {
        self.landed.store(true, SeqCst);
        self.notify.notify_waiters();
    }

    pub async fn landed(&self) {
        loop {
            let notified = self.notify.notified();
            if self.landed.load(SeqCst) {
                return;
            }
            notified.await;
        }
    }
}
