//! The status as it changes, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures::stream::{self, Stream};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time between two events.
const EVERY: Duration = Duration::from_secs(1);
/// Who watches at once at most.
const WATCHERS_MAX: usize = 64;

/// One text for all who watch, made at most once a second however many they are.
pub(crate) struct Events {
    make: Box<dyn Fn() -> String + Send + Sync>,
    last: Mutex<Option<(Instant, Arc<str>)>>,
    watchers: Arc<Semaphore>,
}

impl Events {
    pub(crate) fn new(make: impl Fn() -> String + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { make: Box::new(make), last: Mutex::default(), watchers: Arc::new(Semaphore::new(WATCHERS_MAX)) })
    }

    fn now(&self) -> Arc<str> {
        let mut last = self.last.lock();
        match &*last {
            Some((made, text)) if made.elapsed() < EVERY / 2 => Arc::clone(text),
            _ => {
                let text: Arc<str> = (self.make)().into();
                *last = Some((forebay_runtime::now(), Arc::clone(&text)));
                text
            }
        }
    }

    /// From now on, until who watches goes; none where too many do.
    pub(crate) fn watch(self: &Arc<Self>) -> Option<Sse<impl Stream<Item = Result<Event, Infallible>> + use<>>> {
        let place = Arc::clone(&self.watchers).try_acquire_owned().ok()?;
        let watching: (_, Option<OwnedSemaphorePermit>, _) = (Arc::clone(self), Some(place), false);
        let events = stream::unfold(watching, |(events, place, goes_on)| async move {
            if goes_on {
                forebay_runtime::time::sleep(EVERY).await;
            }
            let event = Event::default().event("status").data(events.now().as_ref());
            Some((Ok(event), (events, place, true)))
        });
        Some(Sse::new(events).keep_alive(KeepAlive::default()))
    }
}
