//! An object's bytes from one open file, so that an overwrite in the midst of an answer changes nothing of it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use s3s::stream::{ByteStream, RemainingLength};

/// Bytes read from the file at once.
const READ_BYTES: u64 = 256 << 10;

/// A range of one open file, read as the connection takes it.
///
/// Reads happen on the server's own thread: nearly always from the page cache, which is cheaper than handing them over.
pub(super) struct FileStream {
    file: File,
    left: Range<u64>,
}

impl FileStream {
    pub(super) fn new(file: File, range: Range<u64>) -> Self {
        Self { file, left: range }
    }
}

impl Stream for FileStream {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let bytes = (self.left.end - self.left.start).min(READ_BYTES) as usize;
        let mut buffer = Vec::with_capacity(bytes);
        let read = rustix::io::pread(&self.file, rustix::buffer::spare_capacity(&mut buffer), self.left.start);
        Poll::Ready(Some(match read {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => {
                buffer.truncate(bytes);
                self.left.start += buffer.len() as u64;
                Ok(Bytes::from(buffer))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }))
    }
}

impl ByteStream for FileStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact((self.left.end - self.left.start) as usize)
    }
}
