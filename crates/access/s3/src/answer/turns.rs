//! Which of a connection's requests are being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whose turn it is on a connection that hyper serves. All of it is looked at by the connection's own task.
#[derive(Default)]
pub(crate) struct Turns {
    /// Requests whose answers are not given away yet.
    open: AtomicUsize,
    /// A request has come, and the last one had no body.
    bare: AtomicBool,
    /// The socket took no more when it was last written to.
    blocked: AtomicBool,
}

/// A request that is being answered: until its answer's body ends.
pub(crate) struct Turn(Arc<Turns>);

impl Turns {
    pub(crate) fn begin(self: &Arc<Self>, has_body: bool) -> Turn {
        self.open.fetch_add(1, Relaxed);
        self.bare.store(!has_body, Relaxed);
        Turn(Arc::clone(self))
    }

    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Relaxed);
    }

    /// Whether hyper, which has just said that it waits, can wait for nothing but the next request: it has no body to read, no
    /// answer to wait for, and no bytes to send, since it would have sent them to a socket that takes them.
    pub(crate) fn is_between(&self) -> bool {
        self.open.load(Relaxed) == 0 && self.bare.load(Relaxed) && !self.blocked.load(Relaxed)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let before = self.0.open.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "a turn ends once");
    }
}
