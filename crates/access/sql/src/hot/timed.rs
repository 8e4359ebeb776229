//! How long making batches keeps a thread: what is waited for meanwhile does not count.

use std::task::Poll;
use std::time::Duration;

use futures::stream::{self, StreamExt};

use crate::hot::walk::Batches;

/// The same batches; `done` is told how many rows they had and what they took, once the last one has come.
pub(super) fn timed(mut batches: Batches, done: impl FnOnce(usize, Duration) + Send + 'static) -> Batches {
    let (mut rows, mut took, mut done) = (0, Duration::ZERO, Some(done));
    let timed = stream::poll_fn(move |context| {
        let began = forebay_runtime::now();
        let polled = batches.poll_next_unpin(context);
        took += began.elapsed();
        match &polled {
            Poll::Ready(Some(Ok(batch))) => rows += batch.num_rows(),
            Poll::Ready(None) => {
                if let Some(done) = done.take() {
                    done(rows, took);
                }
            }
            // One that fails says nothing.
            Poll::Ready(Some(Err(_))) => done = None,
            Poll::Pending => {}
        }
        polled
    });
    timed.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::sleep;

    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::error::DataFusionError;
    use parking_lot::Mutex;

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("id", ids)]).unwrap()
    }

    /// What is told of a stream that works for 20 ms a batch and waits for 250 ms before each.
    async fn told(batches: Vec<datafusion::error::Result<RecordBatch>>) -> Option<(usize, Duration)> {
        let works = stream::iter(batches).then(|batch| async move {
            tokio::time::sleep(Duration::from_millis(250)).await;
            sleep(Duration::from_millis(20));
            batch
        });
        let told = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&told);
        let read: Vec<_> = timed(works.boxed(), move |rows, took| *tell.lock() = Some((rows, took))).collect().await;
        assert!(!read.is_empty());
        *told.lock()
    }

    #[tokio::test]
    async fn work_is_counted_and_waiting_is_not() {
        let (rows, took) = told(vec![Ok(batch(5)), Ok(batch(7))]).await.unwrap();
        assert_eq!(rows, 12);
        assert!((Duration::from_millis(40)..Duration::from_millis(450)).contains(&took), "{took:?}");
        assert_eq!(told(vec![Ok(batch(5)), Err(DataFusionError::Internal("x".into()))]).await, None);
    }
}
