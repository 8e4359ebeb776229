//! A connection by a socket, with its two tasks and perhaps a ring.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_protocol::{FrameKind, Left, META_BYTES_MAX};
use forebay_runtime::deadline;
use forebay_types::{Error, Result};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::asking::calls::Calls;
use crate::asking::dial;
use crate::asking::speed::{LARGE_BYTES, Speed};
use crate::frames::batch::OutFrame;
use crate::frames::frame_reader::FrameReader;
use crate::frames::outbox::Outbox;
use crate::frames::{Hangup, Sink};
use crate::ring::{Asked, Ring};
use crate::{Address, Answer, Security};

/// From so many calls in flight on, requests are sent together.
const TOGETHER_FROM: usize = 4;
/// So many of them at least, where as many are made before the writer has its turn.
const TOGETHER_MIN: usize = 8;
/// Notices that may wait to be sent.
const NOTICES_MAX: usize = 4096;

/// A connection by a socket: frames out, frames in.
pub(crate) struct Framed {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    address: Address,
    /// Of the protocol, which both sides speak.
    version: u16,
    outbox: Arc<Outbox>,
    calls: Calls,
    ring: OnceLock<Ring>,
    speed: Speed,
    hangup: Hangup,
    ended: CancellationToken,
}

impl Framed {
    pub(crate) async fn connect(address: &Address, security: &Security) -> Result<Self> {
        let (reader, sink, hangup) = dial::dial(address, security).await?;
        Ok(Self::start(address.clone(), reader, sink, hangup))
    }

    fn start(address: Address, mut reader: FrameReader, sink: Sink, hangup: Hangup) -> Self {
        let outbox = Arc::new(Outbox::new(&sink));
        let shared = Arc::new(Shared {
            address,
            version: reader.version(),
            outbox,
            calls: Calls::default(),
            ring: OnceLock::new(),
            speed: Speed::default(),
            hangup,
            ended: CancellationToken::new(),
        });
        let writing = forebay_runtime::spawn({
            let shared = shared.clone();
            async move {
                if let Err(error) = shared.outbox.write(sink).await {
                    shared.end(Error::closed(format!("connection to {} was lost: {error}", shared.address)));
                }
            }
        });
        let reading = forebay_runtime::spawn({
            let shared = shared.clone();
            async move {
                let error = match shared.read(&mut reader).await {
                    Ok(()) => Error::closed(format!("connection to {} was ended by the peer", shared.address)),
                    Err(error) => Error::closed(format!("connection to {}: {}", shared.address, error.message())),
                };
                debug!(address = %shared.address, reason = %error, "connection ended");
                shared.end(error);
            }
        });
        Self { shared, tasks: [writing, reading] }
    }

    /// Calls; when `near`, by the ring if there is one and it is for such a call. As many at once as anybody likes: the server
    /// takes what it can, and the others wait in the outbox. A turn that a call holds here would be held by one that nobody
    /// goes on with, too.
    pub(crate) async fn call(&self, meta: Bytes, payload: Vec<Bytes>, near: bool) -> Result<Answer> {
        let shared = &self.shared;
        let (tag, others, answer) = shared.calls.begin()?;
        let mut given_up = GiveUp { shared, tag: Some(tag) };
        let left = Left::new(deadline::left());
        let asked = match shared.ring.get() {
            Some(ring) if near => {
                let asked = ring.ask(tag, left, &meta, &payload).await;
                asked.inspect_err(|error| shared.end(error.clone()))?
            }
            _ => Asked::Not,
        };
        match asked {
            Asked::Answer(meta, payload) => {
                shared.calls.give_up(tag);
                given_up.tag = None;
                return Ok(Answer { version: shared.version, meta, payload, descriptor: None });
            }
            Asked::Later => {}
            Asked::Not => {
                let request = OutFrame::request(shared.version, tag, left, meta, payload).inspect_err(|_| {
                    shared.calls.give_up(tag);
                })?;
                match others < TOGETHER_FROM {
                    true => shared.outbox.send(request),
                    // More will come with it, and one system call costs as much as several requests.
                    false => shared.outbox.send_soon(request, together(others)),
                }
            }
        }
        let answer = answer.await;
        // The tag is out of the table by now.
        given_up.tag = None;
        answer.unwrap_or_else(|_| Err(shared.why_ended()))
    }

    /// Calls may go by the ring that a server has handed over.
    pub(crate) fn use_ring(&self, descriptor: OwnedFd) -> Result<()> {
        // One that is there already stays.
        let _ = self.shared.ring.set(Ring::open(descriptor)?);
        Ok(())
    }

    pub(crate) fn calls_by_ring(&self) -> u64 {
        self.shared.ring.get().map_or(0, Ring::answered)
    }

    /// Bytes a second that come over a network; none where there is none between, or that is not known.
    pub(crate) fn bytes_per_sec(&self) -> Option<u64> {
        match &self.shared.address {
            Address::Tcp(_) => self.shared.speed.known(),
            Address::Unix(_) => None,
        }
    }

    pub(crate) fn notify(&self, meta: Bytes) -> Result<()> {
        let shared = &self.shared;
        if let Some(error) = shared.calls.ended() {
            return Err(error);
        }
        if shared.outbox.len() >= NOTICES_MAX {
            return Err(Error::retry(format!("{} takes no more messages now", shared.address)));
        }
        shared.outbox.send(OutFrame::new(shared.version, FrameKind::Notice, 0, meta, Vec::new(), None)?);
        Ok(())
    }

    pub(crate) fn address(&self) -> &Address {
        &self.shared.address
    }

    pub(crate) fn version(&self) -> u16 {
        self.shared.version
    }

    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.shared.ended
    }

    /// Ends all calls. The peer of a Unix socket hears the end when the last holder lets go: until then what was read in place stands.
    pub(crate) fn close(&self) {
        let shared = &self.shared;
        shared.end(Error::closed(format!("connection to {} was closed", shared.address)));
    }
}

impl Shared {
    async fn read(&self, reader: &mut FrameReader) -> Result<()> {
        while let Some(frame) = reader.next(META_BYTES_MAX).await? {
            let tag = frame.header.tag;
            let waits = self.calls.waits(tag).filter(|_| frame.header.kind == FrameKind::Reply);
            let Some(waits) = waits else {
                return Err(Error::invalid("the peer sent a frame that is no reply to a request"));
            };
            if !waits {
                reader.skip(frame.header.payload_len).await?;
                continue;
            }
            let began = (frame.header.payload_len >= LARGE_BYTES).then(forebay_runtime::now);
            let payload = reader.payload(&frame.header).await?;
            if let Some(began) = began {
                self.speed.came(frame.header.payload_len, forebay_runtime::now().saturating_duration_since(began));
            }
            let (version, meta, descriptor) = (self.version, frame.meta, frame.descriptor);
            self.calls.answer(tag, Answer { version, meta, payload, descriptor });
        }
        Ok(())
    }

    fn end(&self, error: Error) {
        self.calls.end(error);
        self.outbox.close();
        self.hangup.stop_hearing();
        self.ended.cancel();
    }

    fn why_ended(&self) -> Error {
        self.calls.ended().unwrap_or_else(|| Error::closed(format!("connection to {} has ended", self.address)))
    }
}

impl Drop for Framed {
    fn drop(&mut self) {
        self.shared.end(Error::closed(format!("connection to {} was dropped", self.shared.address)));
        // Nobody holds it any more, nor what the peer kept for it.
        self.shared.hangup.hang_up();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Requests that are sent together while so many others are in flight: half of them, so that the peer answers one half while the
/// other one is made.
fn together(others: usize) -> usize {
    (others / 2).max(TOGETHER_MIN)
}

/// Cancels a request unless its answer has come.
struct GiveUp<'a> {
    shared: &'a Shared,
    /// None once there is nothing to cancel.
    tag: Option<u64>,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        let Some(tag) = self.tag else { return };
        if !self.shared.calls.give_up(tag) || self.shared.outbox.withdraw(tag) {
            return;
        }
        if let Ok(frame) = OutFrame::new(self.shared.version, FrameKind::Cancel, tag, Bytes::new(), Vec::new(), None) {
            self.shared.outbox.send(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_in_flight_is_sent_together_and_never_few() {
        assert_eq!([TOGETHER_FROM, 15, 127].map(together), [TOGETHER_MIN, TOGETHER_MIN, 63]);
    }
}
