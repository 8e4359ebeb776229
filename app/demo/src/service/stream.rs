//! An object's bytes as they were when it was opened, so that an overwrite in the midst of an answer changes nothing of it.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use s3s::stream::{ByteStream, RemainingLength};

use crate::store::Opened;

/// Bytes read at once.
const READ_BYTES: u64 = 256 << 10;

/// A range of what was opened, read as the connection takes it.
///
/// Reads happen on the server's own thread: nearly always from the page cache, which is cheaper than handing them over.
pub(super) struct ObjectStream {
    opened: Opened,
    left: Range<u64>,
}

impl ObjectStream {
    pub(super) fn new(opened: Opened, range: Range<u64>) -> Self {
        Self { opened, left: range }
    }
}

impl Stream for ObjectStream {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let bytes = (self.left.end - self.left.start).min(READ_BYTES) as usize;
        Poll::Ready(Some(match self.opened.read(self.left.start, bytes) {
            Ok(read) => {
                self.left.start += read.len() as u64;
                Ok(read)
            }
            Err(error) => Err(error.into()),
        }))
    }
}

impl ByteStream for ObjectStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact((self.left.end - self.left.start) as usize)
    }
}
