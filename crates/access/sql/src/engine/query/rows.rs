//! The rows of a running statement, made by whose threads they are to be made.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use datafusion::arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use forebay_runtime::Computing;
use forebay_runtime::deadline::Waited;
use forebay_types::Result;
use futures::StreamExt;
use tokio_util::task::AbortOnDropHandle;

use crate::error::ended_early;
use crate::panics::caught;
use crate::stores::Seen;

/// What a stream gave: none at its end.
type Next = Option<Result<RecordBatch, DataFusionError>>;

/// A stream of rows. Each batch is made when it is asked for.
pub(super) struct Rows {
    seen: Arc<Seen>,
    computing: Option<Computing>,
    state: State,
    _waiter: Waiter,
}

/// Whoever waits for rows, until this is dropped. What computes between two batches, on whichever thread, looks whether he still does.
pub(super) struct Waiter(Arc<AtomicUsize>);

impl Waiter {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(1)))
    }

    pub(super) fn waited(&self) -> Waited {
        Waited::by(Arc::clone(&self.0))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.store(0, Relaxed);
    }
}

enum State {
    /// Nobody has asked.
    Still(SendableRecordBatchStream),
    /// The next batch is being made, and goes on being made when who waits for it stops doing so.
    Asked(AbortOnDropHandle<(SendableRecordBatchStream, Result<Next>)>),
    /// The stream has failed, or the thread that made the next batch has ended, and the stream with it.
    Lost,
}

impl Rows {
    /// Those of a stream, made by threads of their own where there are some.
    pub(super) fn of(stream: SendableRecordBatchStream, waiter: Waiter, seen: Arc<Seen>, computing: Option<Computing>) -> Self {
        Self { seen, computing, state: State::Still(stream), _waiter: waiter }
    }

    /// Nothing comes of it any more.
    pub(super) fn give_up(&mut self) {
        assert!(!matches!(self.state, State::Asked(_)), "rows are given up while some of them are asked for");
        self.state = State::Lost;
    }

    /// The next batch; an error where a decoder panicked over it.
    pub(super) async fn next(&mut self) -> Result<Next> {
        let Some(computing) = &self.computing else {
            return match &mut self.state {
                State::Still(stream) => caught(&self.seen, stream.next()).await,
                _ => Err(ended_early()),
            };
        };
        if let State::Still(_) = self.state {
            let State::Still(mut stream) = std::mem::replace(&mut self.state, State::Lost) else { unreachable!("it was still") };
            let seen = Arc::clone(&self.seen);
            let made = computing.spawn(async move {
                let next = caught(&seen, stream.next()).await;
                (stream, next)
            });
            self.state = State::Asked(AbortOnDropHandle::new(made));
        }
        let State::Asked(made) = &mut self.state else { return Err(ended_early()) };
        // Waited for in place: who stops waiting and asks again gets this batch.
        let Ok((stream, next)) = made.await else {
            self.state = State::Lost;
            return Err(ended_early());
        };
        self.state = State::Still(stream);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_gone_waits_no_more() {
        let waiter = Waiter::new();
        let waited = waiter.waited();
        assert!(!waited.is_over());
        drop(waiter);
        assert!(waited.is_over());
    }
}
