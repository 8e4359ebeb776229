//! The order in which parts of a file are asked for and read, in whichever form each is held; Parquet and text share it.

use std::collections::VecDeque;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::metrics::Count;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use crate::hot::row_group::RowGroup;

/// Parts that are looked up at a time, and bytes of decoded columns after which the look-up pauses.
pub(super) const LOOK_AHEAD: usize = 16;
const LOOK_AHEAD_BYTES: usize = 64 << 20;

pub(super) type Batches = BoxStream<'static, Result<RecordBatch>>;

/// A file that is read part by part: row groups of Parquet, chunks of text.
pub(super) trait Parts: Send + Sync + 'static {
    /// How many parts are asked for at most before a run of raw ones is read.
    fn asked_max(&self) -> usize;

    /// A part whose columns are all decoded, with their bytes.
    fn decoded(&self, part: usize) -> impl Future<Output = Option<(RowGroup, usize)>> + Send;

    /// What the scan gives of decoded parts.
    fn batches(&self, run: Vec<RowGroup>) -> impl Future<Output = Result<Batches>> + Send;

    /// What the scan gives of parts that the engine's own reader reads.
    fn raw(&self, run: &[usize]) -> impl Future<Output = Result<Batches>> + Send;
}

/// Reads parts of a file in their order, each in the form that it is held in.
pub(super) fn walk<P: Parts>(parts: P, rest: impl IntoIterator<Item = usize>, decoded: Count) -> Batches {
    let walk = Walk { parts, rest: rest.into_iter().collect(), found: None, decoded };
    stream::try_unfold(walk, |mut walk| async move {
        let run = walk.next().await?;
        Ok::<_, DataFusionError>(run.map(|run| (run, walk)))
    })
    .try_flatten()
    .boxed()
}

struct Walk<P> {
    parts: P,
    rest: VecDeque<usize>,
    /// The first of the rest, where it has been asked for and is decoded.
    found: Option<(RowGroup, usize)>,
    /// Parts that were read in the table form, for `EXPLAIN ANALYZE`.
    decoded: Count,
}

impl<P: Parts> Walk<P> {
    /// The batches of the next parts that are read in the same way; none at the end.
    async fn next(&mut self) -> Result<Option<Batches>> {
        let Some(first) = self.rest.pop_front() else { return Ok(None) };
        let found = if let Some(found) = self.found.take() { Some(found) } else { self.parts.decoded(first).await };
        match found {
            Some((part, bytes)) => {
                let left = self.rest.len();
                let mut run = vec![part];
                let mut held = bytes;
                while run.len() < LOOK_AHEAD
                    && held < LOOK_AHEAD_BYTES
                    && let Some(next) = self.rest.front()
                    && let Some((part, bytes)) = self.parts.decoded(*next).await
                {
                    self.rest.pop_front();
                    run.push(part);
                    held += bytes;
                }
                assert!(run.len() <= LOOK_AHEAD, "{} decoded parts at once", run.len());
                assert_eq!(run.len() - 1 + self.rest.len(), left, "each part is read once");
                self.decoded.add(run.len());
                self.parts.batches(run).await.map(Some)
            }
            None => {
                let left = self.rest.len();
                let mut run = vec![first];
                // Each is asked for, so that it becomes popular; one that is there already ends the run.
                while let Some(next) = self.rest.front().copied() {
                    if run.len() <= self.parts.asked_max() {
                        self.found = self.parts.decoded(next).await;
                        if self.found.is_some() {
                            break;
                        }
                    }
                    run.push(next);
                    self.rest.pop_front();
                }
                assert_eq!(run.len() - 1 + self.rest.len(), left, "each part is read once");
                self.parts.raw(&run).await.map(Some)
            }
        }
    }
}
