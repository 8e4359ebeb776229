//! Bodies on their way through the server: at the link's pace, counted, and cut or stalled where a fault says so.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_runtime::time::{Sleep, sleep_until};
use hyper::body::{Body, Frame, SizeHint};

use crate::counters::Tally;
use crate::faults::Fault;
use crate::pace::Pacer;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Which way a body goes, and thereby which half of the link and which counter it uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A request's body.
    In,
    /// The bytes of an object.
    Out,
    /// The body of any other answer: on the link, but not counted.
    Other,
}

/// What all bodies go over, and what has gone over it.
pub(crate) struct Link {
    pub(crate) tally: Tally,
    pub(crate) inwards: Pacer,
    pub(crate) outwards: Pacer,
}

/// A body that moves at the link's pace, is counted, and breaks or stalls where a fault says so.
pub(crate) struct Paced<B> {
    inner: B,
    link: Arc<Link>,
    way: Way,
    fault: Option<Fault>,
    moved: u64,
    /// What has come from `inner` and not been handed on.
    rest: Bytes,
    /// The next piece, and when it has passed the link.
    due: Option<(Bytes, Pin<Box<Sleep>>)>,
}

impl<B> Paced<B> {
    pub(crate) fn new(inner: B, link: Arc<Link>, way: Way, fault: Option<Fault>) -> Self {
        Self { inner, link, way, fault, moved: 0, rest: Bytes::new(), due: None }
    }

    fn hand_on(&mut self, piece: Bytes) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let bytes = piece.len() as u64;
        self.moved += bytes;
        match self.way {
            Way::In => self.link.tally.received(bytes),
            Way::Out => self.link.tally.sent(bytes),
            Way::Other => {}
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    /// How much may still be moved before the fault strikes.
    fn allowed(&self) -> u64 {
        match self.fault {
            Some(Fault::CutAfter(bytes) | Fault::StallAfter(bytes)) => bytes.saturating_sub(self.moved),
            _ => u64::MAX,
        }
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            if let Some((_, sleep)) = &mut this.due {
                ready!(sleep.as_mut().poll(cx));
                let (piece, _) = this.due.take().expect("just seen");
                return this.hand_on(piece);
            }
            if this.rest.is_empty() {
                match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                    None => return Poll::Ready(None),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => this.rest = data,
                        Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                    },
                }
                continue;
            }
            let allowed = this.allowed();
            if allowed == 0 {
                return match this.fault {
                    // The connection's end wakes the task; nothing else will.
                    Some(Fault::StallAfter(_)) => Poll::Pending,
                    _ => Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset).into()))),
                };
            }
            let pacer = if this.way == Way::In { &this.link.inwards } else { &this.link.outwards };
            let bytes = this.rest.len().min(pacer.piece_bytes()).min(usize::try_from(allowed).unwrap_or(usize::MAX));
            let piece = this.rest.split_to(bytes);
            let Some(when) = pacer.take(bytes) else { return this.hand_on(piece) };
            this.due = Some((piece, Box::pin(sleep_until(when))));
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.fault == Some(Fault::NoLength) {
            return SizeHint::new();
        }
        let held = (self.rest.len() + self.due.as_ref().map_or(0, |(piece, _)| piece.len())) as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + held);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.due.is_none() && self.inner.is_end_stream()
    }
}
