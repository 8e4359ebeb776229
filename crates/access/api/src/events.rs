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

/// Who watches, and what for.
struct Watching<F> {
    events: Arc<Events>,
    _place: OwnedSemaphorePermit,
    /// Whether who watches still may.
    may: F,
    goes_on: bool,
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

    /// From now on, until who watches goes, or may not any more; none where too many do.
    pub(crate) fn watch<F>(self: &Arc<Self>, may: F) -> Option<Sse<impl Stream<Item = Result<Event, Infallible>> + use<F>>>
    where
        F: Fn() -> bool + Send + 'static,
    {
        Some(Sse::new(self.seen(may)?).keep_alive(KeepAlive::default()))
    }

    fn seen<F>(self: &Arc<Self>, may: F) -> Option<impl Stream<Item = Result<Event, Infallible>> + use<F>>
    where
        F: Fn() -> bool + Send + 'static,
    {
        let place = Arc::clone(&self.watchers).try_acquire_owned().ok()?;
        assert!(self.watchers.available_permits() < WATCHERS_MAX, "who watches has one of the places");
        let watching = Watching { events: Arc::clone(self), _place: place, may, goes_on: false };
        Some(stream::unfold(watching, |mut watching| async move {
            if watching.goes_on {
                forebay_runtime::time::sleep(EVERY).await;
                if !(watching.may)() {
                    return None;
                }
            }
            watching.goes_on = true;
            let event = Event::default().event("status").data(watching.events.now().as_ref());
            Some((Ok(event), watching))
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use futures::StreamExt;

    use super::*;

    #[tokio::test]
    async fn who_may_not_any_more_sees_no_more_and_leaves_the_place_to_others() {
        let events = Events::new(|| "{}".to_string());
        let may = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&may);
        let seen = events.seen(move || asked.load(Relaxed)).unwrap();
        futures::pin_mut!(seen);
        assert!(seen.next().await.is_some() && seen.next().await.is_some());
        assert_eq!(events.watchers.available_permits(), WATCHERS_MAX - 1);
        may.store(false, Relaxed);
        assert!(seen.next().await.is_none());
        assert_eq!(events.watchers.available_permits(), WATCHERS_MAX);
    }
}
