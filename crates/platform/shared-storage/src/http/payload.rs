//! Bodies of requests: in memory, so that they can be sent again, or passed on as they come.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Why a body that is passed on ends before its time.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// Bytes as they come.
pub(crate) type Stream = futures::stream::BoxStream<'static, Result<Bytes, BodyError>>;

/// A request's body: pieces of memory, sent as they are, or bytes that are passed on as they come.
#[derive(Default)]
pub(crate) struct Payload {
    pieces: VecDeque<Bytes>,
    left: u64,
    stream: Option<Stream>,
}

impl Payload {
    /// Exactly `bytes` bytes, or the request is broken off.
    pub(crate) fn stream(stream: Stream, bytes: u64) -> Self {
        Self { pieces: VecDeque::new(), left: bytes, stream: Some(stream) }
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(pieces: Vec<Bytes>) -> Self {
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces: pieces.into(), left, stream: None }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        while let Some(piece) = self.pieces.pop_front() {
            if !piece.is_empty() {
                self.left -= piece.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        match std::task::ready!(stream.as_mut().poll_next(cx)) {
            Some(Ok(bytes)) => match self.left.checked_sub(bytes.len() as u64) {
                Some(left) => {
                    self.left = left;
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                }
                None => Poll::Ready(Some(Err("the body is longer than was said".into()))),
            },
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None if self.left > 0 => Poll::Ready(Some(Err("the body is shorter than was said".into()))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        // A stream may still say, after its last byte, that it is not to be believed.
        self.left == 0 && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
