//! The bytes of an answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_metrics::Counter;
use futures::stream::BoxStream;
use hyper::body::{Body, Frame, SizeHint};

use super::turns::Turn;

/// The body of an answer: what is there at once, then what comes.
pub(crate) struct AnswerBody {
    first: Bytes,
    rest: Option<BoxStream<'static, Result<Bytes, forebay_types::Error>>>,
    /// Bytes still to come; none when nobody knows.
    left: Option<u64>,
    /// Counts what is sent of it.
    sent: Option<Arc<Counter>>,
    /// Ends with the body.
    turn: Option<Turn>,
}

impl AnswerBody {
    pub(crate) fn empty() -> Self {
        Self::of(Bytes::new())
    }

    pub(crate) fn of(bytes: Bytes) -> Self {
        Self { left: Some(bytes.len() as u64), first: bytes, rest: None, sent: None, turn: None }
    }

    pub(crate) fn stream(
        first: Bytes,
        rest: BoxStream<'static, Result<Bytes, forebay_types::Error>>,
        bytes: Option<u64>,
    ) -> Self {
        Self { first, rest: Some(rest), left: bytes, sent: None, turn: None }
    }

    /// Counts what is sent of it, and keeps the connection's turn as long as there is more.
    pub(crate) fn sending(&mut self, sent: Arc<Counter>, turn: Turn) {
        assert!(self.sent.is_none() && self.turn.is_none(), "an answer is sent in one turn");
        self.sent = Some(sent);
        self.turn = Some(turn);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = forebay_types::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = if self.first.is_empty() {
            let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
            match std::task::ready!(rest.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => {
                    tracing::warn!(%error, "answer broken off");
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            }
        } else {
            std::mem::take(&mut self.first)
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(piece.len() as u64);
        }
        if let Some(sent) = &self.sent {
            sent.add(piece.len() as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && (self.rest.is_none() || self.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}
