//! The ring of a connection of the same host: small calls by shared memory, answered as those of the socket are.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use forebay_protocol::LEFT_SINCE;
use forebay_types::Error;
use tracing::warn;

use super::call::Begun;
use super::live::Inner;
use crate::ring::{Answers, Request, Seat, Slots};
use crate::{ServerLimits, Session};

impl<S: Session> Inner<S> {
    /// Makes the connection's ring; the descriptor for the client.
    pub(super) fn open_ring(self: &Arc<Self>) -> Option<OwnedFd> {
        if !(self.peer.unix && self.peer.same_user) || self.seat.get().is_some() {
            return None;
        }
        let (slots, descriptor) = Slots::create(self.peer.version >= LEFT_SINCE)
            .inspect_err(|error| warn!(peer = %self.peer.address, %error, "no ring for a client of this host"))
            .ok()?;
        let this: Weak<Self> = Arc::downgrade(self);
        let seat = self.rings.seat(slots, this)?;
        let seated = self.seat.set(seat.clone()).is_ok();
        if !seated || self.closed.load(Ordering::Acquire) {
            seat.leave();
        }
        seated.then_some(descriptor)
    }

    /// Gives its place among the rings up.
    pub(super) fn leave_ring(&self) {
        if let Some(seat) = self.seat.get() {
            seat.leave();
        }
    }
}

impl<S: Session> Answers for Inner<S> {
    fn takes(self: Arc<Self>, seat: &Arc<Seat>) -> bool {
        let ServerLimits { in_flight, payload_bytes, .. } = self.limits;
        if self.in_flight.is_below(in_flight, payload_bytes) && self.outbox.bytes() <= payload_bytes {
            return true;
        }
        let seat = Arc::downgrade(seat);
        // Ends with the connection: its end is that nothing is in flight and nothing waits to be sent.
        forebay_runtime::spawn(async move {
            self.in_flight.below(in_flight, payload_bytes).await;
            self.outbox.drained_to(payload_bytes).await;
            if let Some(seat) = seat.upgrade() {
                seat.go_on();
            }
        });
        false
    }

    fn answer(self: Arc<Self>, slots: &Slots, number: u64, request: Request) {
        let Request { tag, left, meta, payload } = request;
        if self.in_flight.contains(tag) {
            return self.broken(Error::invalid(format!("request {tag} is in flight already")));
        }
        let bytes = payload.len();
        match self.begin(left, &meta, payload) {
            Begun::Answered(response) => {
                // Each slot is given back once: from then on it may be another call's.
                if response.descriptor.is_some() || response.opens_ring {
                    slots.later(number);
                } else if slots.answer(number, &response.meta, &response.payload) {
                    return response.reached();
                }
                if let Some(frame) = self.reply(tag, response) {
                    self.outbox.send(frame);
                }
            }
            Begun::Pending(call) => {
                // What comes by a ring is small, and rings are few.
                self.go_on(tag, bytes, meta, call, None);
                slots.later(number);
            }
        }
    }

    fn broken(&self, error: Error) {
        warn!(peer = %self.peer.address, reason = %error, "connection ended: the peer breaks the protocol");
        self.end();
    }
}
