//! What outlives a connection that this side has ended.

use std::sync::Arc;

use crate::frames::Hangup;

/// What a session has left for as long as its peer lives.
pub(super) struct Kept {
    what: Option<Box<dyn Send>>,
    hangup: Arc<Hangup>,
}

impl Kept {
    pub(super) fn new(what: Box<dyn Send>, hangup: Arc<Hangup>) -> Self {
        Self { what: Some(what), hangup }
    }

    pub(super) async fn while_peer_lives(mut self) {
        self.hangup.gone().await;
        self.what = None;
    }
}

impl Drop for Kept {
    /// Where nobody waits any more, as when a server ends in a process that goes on, a task of its own does.
    fn drop(&mut self) {
        if let Some(what) = self.what.take() {
            let hangup = Arc::clone(&self.hangup);
            forebay_runtime::spawn_left(async move {
                hangup.gone().await;
                drop(what);
            });
        }
    }
}
