//! Panics of what others have written, which end nothing but themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// Runs what must not take others with it when it panics: None then, which the panic's hook has reported.
///
/// What it shares with others must be whole at every moment that it may panic at, as with the locks used here, which don't remember
/// who failed under them.
pub fn caught<T>(what: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(what)).ok()
}

/// The same for a future, which is not polled any more once it has panicked.
pub async fn caught_future<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match caught(|| future.as_mut().poll(context)) {
        Some(poll) => poll.map(Some),
        None => Poll::Ready(None),
    })
    .await
}
