use std::future::Future;
use std::time::{Duration, Instant};

use forebay_types::{Error, Result};
use parking_lot::Mutex;

/// Something that may end on its own and is then made anew.
pub(crate) trait Alive: Clone {
    fn alive(&self) -> bool;
}

impl Alive for forebay_transport::Connection {
    fn alive(&self) -> bool {
        !self.is_closed()
    }
}

/// Room for one connection: made at first use, once for everyone who waits, and again after it closed.
pub(crate) struct Slot<T> {
    current: Mutex<Option<T>>,
    failed: tokio::sync::Mutex<Option<(Instant, Error)>>,
}

/// A peer that just refused is not asked again for so long; whoever asks gets the same error.
const PAUSE: Duration = Duration::from_millis(200);

impl<T: Alive> Slot<T> {
    pub(crate) fn new() -> Self {
        Self { current: Mutex::new(None), failed: tokio::sync::Mutex::new(None) }
    }

    /// The connection that is there, if it still is.
    pub(crate) fn current(&self) -> Option<T> {
        let mut current = self.current.lock();
        match &*current {
            Some(it) if it.alive() => Some(it.clone()),
            // What ended is let go at once: it may keep a mapping alive.
            _ => current.take().and(None),
        }
    }

    /// The connection, made by `connect` when there is none.
    pub(crate) async fn get<Fut: Future<Output = Result<T>>>(&self, connect: impl FnOnce() -> Fut) -> Result<T> {
        if let Some(it) = self.current() {
            return Ok(it);
        }
        let mut failed = self.failed.lock().await;
        if let Some(it) = self.current() {
            return Ok(it);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        match connect().await {
            Ok(it) => {
                *failed = None;
                *self.current.lock() = Some(it.clone());
                Ok(it)
            }
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}
