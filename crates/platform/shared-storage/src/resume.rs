//! Reads that go on where a connection broke, with nothing twice and nothing of another version.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use forebay_types::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::backend::Source;
use crate::bandwidth::{DemandGuard, Yielding};
use crate::counters::{Tally, count_by};
use crate::request::Class;
use crate::retry::{Failure, RetryPolicy, TryState};

/// Bytes of one answer, in order. It may end early.
pub(crate) type Chunks = BoxStream<'static, Result<Bytes, Failure>>;

/// Asks for the rest of an object at the version that the reading began with.
#[async_trait]
pub(crate) trait Reopen: Send {
    async fn reopen(&self, range: Range<u64>) -> Result<Chunks, Failure>;
}

/// A range that is read over the network: what breaks is taken up where it stopped.
pub(crate) struct Resuming<R> {
    pub(crate) reopen: R,
    pub(crate) chunks: Option<Chunks>,
    pub(crate) left: Range<u64>,
    pub(crate) tries: TryState,
    pub(crate) policy: RetryPolicy,
    pub(crate) tally: Arc<Tally>,
    pub(crate) class: Class,
    pub(crate) yielding: Arc<Yielding>,
    /// Held while this is a demand read.
    pub(crate) _demand: Option<DemandGuard>,
    /// How the object is called in errors.
    pub(crate) path: String,
}

impl<R: Reopen> Resuming<R> {
    async fn attempt(&mut self) -> Result<Bytes, Failure> {
        let _turn = match self.class {
            Class::Demand => None,
            Class::Prefetch | Class::Background => self.yielding.prefetch_turn().await,
        };
        let chunks = match &mut self.chunks {
            Some(chunks) => chunks,
            none => none.insert(self.reopen.reopen(self.left.clone()).await?),
        };
        match chunks.next().await {
            Some(chunk) => chunk,
            None => Err(Failure::transient(Error::retry(format!(
                "{}: the connection ended {} bytes early",
                self.path,
                self.left.end - self.left.start
            )))),
        }
    }
}

#[async_trait]
impl<R: Reopen> Source for Resuming<R> {
    async fn next(&mut self) -> Option<Result<Bytes>> {
        while !self.left.is_empty() {
            match self.attempt().await {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(mut bytes) => {
                    bytes.truncate(usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX));
                    let read = bytes.len() as u64;
                    self.left.start += read;
                    self.tries.progress(read);
                    count_by(&self.tally.bytes_in, read);
                    if self.left.is_empty() {
                        self.chunks = None;
                    }
                    return Some(Ok(bytes));
                }
                Err(failure) => {
                    self.chunks = None;
                    if let Err(error) = self.tries.pause(self.policy, &self.tally, failure).await {
                        let overwritten = matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound);
                        return Some(Err(match overwritten {
                            true => Error::conflict(format!("{}: changed while it was read: open it again", self.path)),
                            false => error,
                        }));
                    }
                }
            }
        }
        None
    }
}
