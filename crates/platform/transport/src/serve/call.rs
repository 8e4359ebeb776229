//! Calls: answered at once when their answer is at hand, else by a task.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use forebay_protocol::{FrameKind, Left};
use tracing::error;

use super::live::Inner;
use crate::caught::{caught, caught_future};
use crate::frames::batch::OutFrame;
use crate::waited::while_waited;
use crate::{Response, Session, Spent};

/// A call that is under way.
pub(super) type Call = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A call that was polled once.
pub(super) enum Begun {
    Answered(Response),
    Pending(Call),
}

impl<S: Session> Inner<S> {
    /// Runs a call: here when its answer is at hand, else in a task.
    pub(super) fn call(self: &Arc<Self>, tag: u64, left: Left, meta: Bytes, payload: Bytes, spent: Spent) {
        let bytes = payload.len();
        match self.begin(left, &meta, payload) {
            Begun::Answered(response) => {
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.push(frame);
                }
            }
            Begun::Pending(call) => self.go_on(tag, bytes, meta, call, Some(spent)),
        }
    }

    /// Begins a call and takes its answer when that is at hand. One that panics is answered so, and nothing else of the connection
    /// knows of it.
    pub(super) fn begin(self: &Arc<Self>, left: Left, asked: &Bytes, payload: Bytes) -> Begun {
        let mut call: Call = Box::pin(while_waited(self.session.clone(), left, asked.clone(), payload));
        // A future is to wake whoever polled it last, which will be the task.
        match caught(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
            Some(Poll::Ready(response)) => Begun::Answered(response),
            Some(Poll::Pending) => Begun::Pending(call),
            None => Begun::Answered(self.failed(asked)),
        }
    }

    /// Runs the rest of a call in a task.
    pub(super) fn go_on(self: &Arc<Self>, tag: u64, bytes: usize, asked: Bytes, call: Call, spent: Option<Spent>) {
        let inner = self.clone();
        self.in_flight.spawn(tag, bytes, async move {
            let response = caught_future(call).await.unwrap_or_else(|| inner.failed(&asked));
            drop(spent);
            if inner.in_flight.finish(tag)
                && let Some(frame) = inner.reply(tag, response)
            {
                inner.outbox.send(frame);
            }
        });
    }

    /// What a call is answered that failed by a defect.
    pub(super) fn failed(&self, meta: &Bytes) -> Response {
        error!(peer = %self.peer.address, "a call failed by a defect, which was reported where it happened");
        self.session.failed(meta)
    }

    /// The frame of an answer; none when it can't be sent, which ends the connection.
    pub(super) fn reply(self: &Arc<Self>, tag: u64, mut response: Response) -> Option<OutFrame> {
        if response.opens_ring {
            response.descriptor = self.open_ring();
        }
        if !self.peer.unix && response.descriptor.take().is_some() {
            error!(peer = %self.peer.address, "a descriptor can't be sent over TCP and was left out");
        }
        match OutFrame::new(self.peer.version, FrameKind::Reply, tag, response.meta, response.payload, response.descriptor) {
            Ok(frame) => Some(frame.telling(response.sent)),
            Err(error) => {
                // The caller must not wait for ever for an answer that can't be sent.
                error!(peer = %self.peer.address, reason = %error, "connection ended: an answer can't be sent");
                self.end();
                None
            }
        }
    }
}
