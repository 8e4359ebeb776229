//! Room for one connection.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_trace::{current, within};
use forebay_types::{Error, Result};
use futures::future::BoxFuture;
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
pub(crate) struct Slot<T>(Arc<Inner<T>>);

struct Inner<T> {
    current: Mutex<Option<T>>,
    failed: tokio::sync::Mutex<Option<(Instant, Error)>>,
}

/// A peer that just refused is not asked again for so long; whoever asks gets the same error.
pub(crate) const REFUSED_FOR: Duration = Duration::from_millis(200);

impl<T: Alive + Send + 'static> Slot<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner { current: Mutex::new(None), failed: tokio::sync::Mutex::new(None) }))
    }

    /// The connection that is there, if it still is.
    pub(crate) fn current(&self) -> Option<T> {
        self.0.current()
    }

    /// The connection, made by `connect` when there is none.
    pub(crate) async fn get<Fut>(&self, connect: impl FnOnce() -> Fut) -> Result<T>
    where
        Fut: Future<Output = Result<T>> + Send + 'static,
    {
        if let Some(it) = self.current() { Ok(it) } else { to_its_end(Arc::clone(&self.0).make(connect())).await }
    }
}

impl<T: Alive> Inner<T> {
    fn current(&self) -> Option<T> {
        let mut current = self.current.lock();
        match &*current {
            Some(it) if it.alive() => Some(it.clone()),
            // What ended is let go at once: it may keep a mapping alive.
            _ => current.take().and(None),
        }
    }

    async fn make(self: Arc<Self>, connect: impl Future<Output = Result<T>>) -> Result<T> {
        let mut failed = self.failed.lock().await;
        if let Some(it) = self.current() {
            return Ok(it);
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < REFUSED_FOR
        {
            return Err(error.clone());
        }
        match connect.await {
            Ok(it) => {
                *failed = None;
                *self.current.lock() = Some(it.clone());
                Ok(it)
            }
            Err(error) => {
                *failed = Some((forebay_runtime::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Runs what others wait for while it holds a lock: in a task, since whoever began it may not go on with it. A stream that
/// reads ahead and waits to be asked for more is such a one.
pub(crate) fn to_its_end<T: Send + 'static>(
    what: impl Future<Output = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    Box::pin(async move {
        match forebay_runtime::spawn(within(current(), what)).await {
            Ok(ended) => ended,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Error::closed("the runtime that this was begun in has ended")),
        }
    })
}
