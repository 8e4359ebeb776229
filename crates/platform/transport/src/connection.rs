use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{FrameKind, META_BYTES_MAX};
use forebay_types::{Error, Result};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::batch::OutFrame;
use crate::calls::Calls;
use crate::dial;
use crate::frame_reader::FrameReader;
use crate::link::{Hangup, Sink};
use crate::outbox::Outbox;
use crate::{Address, Security};

/// Calls in flight on a connection; more wait for their turn. A server takes as many.
const CALLS_MAX: usize = 1024;
/// Notices that may wait to be sent.
const NOTICES_MAX: usize = 4096;

/// The asking side of a connection. Many calls may be in flight; replies come in any order.
///
/// Clones share the connection. It ends with the last of them, when the peer ends it, or by [`Self::close`]; it is
/// never made anew.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

/// An answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// The message.
    pub meta: Bytes,
    /// Raw bytes after it, in a buffer of their size.
    pub payload: Bytes,
    /// A descriptor that came with it.
    pub descriptor: Option<OwnedFd>,
}

struct Inner {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    address: Address,
    outbox: Arc<Outbox>,
    calls: Calls,
    turns: Semaphore,
    hangup: Hangup,
    ended: watch::Sender<bool>,
}

impl Connection {
    /// Connects and passes the handshake, within 3 s and 5 s.
    ///
    /// `Retry` when there is no one or no answer, `Denied` when the tokens differ, `Invalid` when the address, the TLS
    /// files or the versions are wrong.
    pub async fn connect(address: &Address, security: &Security) -> Result<Self> {
        let (reader, sink, hangup) = dial::dial(address, security).await?;
        Ok(Self::start(address.clone(), reader, sink, hangup))
    }

    fn start(address: Address, mut reader: FrameReader, sink: Sink, hangup: Hangup) -> Self {
        let outbox = Arc::new(Outbox::new(&sink));
        let shared = Arc::new(Shared {
            address,
            outbox,
            calls: Calls::default(),
            turns: Semaphore::new(CALLS_MAX),
            hangup,
            ended: watch::Sender::new(false),
        });
        let writing = tokio::spawn({
            let shared = shared.clone();
            async move {
                if let Err(error) = shared.outbox.write(sink).await {
                    shared.end(Error::closed(format!("connection to {} was lost: {error}", shared.address)));
                }
            }
        });
        let reading = tokio::spawn({
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
        Self { inner: Arc::new(Inner { shared, tasks: [writing, reading] }) }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request at the server.
    ///
    /// `Closed` when the connection ends before the answer, `Invalid` when the request is too long for a frame. Has no
    /// timeout of its own.
    pub async fn call(&self, meta: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
        let shared = &self.inner.shared;
        let Ok(_turn) = shared.turns.acquire().await else {
            return Err(shared.why_ended());
        };
        let (tag, answer) = shared.calls.begin()?;
        let request = OutFrame::new(FrameKind::Request, tag, meta, payload, None).inspect_err(|_| {
            shared.calls.give_up(tag);
        })?;
        let given_up = GiveUp { shared, tag };
        shared.outbox.send(request);
        let answer = answer.await;
        // The tag is out of the table by now, so this cancels nothing.
        drop(given_up);
        answer.unwrap_or_else(|_| Err(shared.why_ended()))
    }

    /// Sends a message that has no answer. `Retry` when too many wait to be sent, `Closed` when the connection has ended.
    pub fn notify(&self, meta: Bytes) -> Result<()> {
        let shared = &self.inner.shared;
        if let Some(error) = shared.calls.ended() {
            return Err(error);
        }
        if shared.outbox.len() >= NOTICES_MAX {
            return Err(Error::retry(format!("{} takes no more messages now", shared.address)));
        }
        shared.outbox.send(OutFrame::new(FrameKind::Notice, 0, meta, Vec::new(), None)?);
        Ok(())
    }

    /// Whom it is to.
    pub fn address(&self) -> &Address {
        &self.inner.shared.address
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        *self.inner.shared.ended.borrow()
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        // Fails only without a sender, which `self` keeps.
        let _ = self.inner.shared.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Ends the connection; calls in flight fail with `Closed`.
    pub fn close(&self) {
        let shared = &self.inner.shared;
        shared.end(Error::closed(format!("connection to {} was closed", shared.address)));
    }
}

impl Shared {
    async fn read(&self, reader: &mut FrameReader) -> Result<()> {
        while let Some(frame) = reader.next(META_BYTES_MAX).await? {
            let tag = frame.header.tag;
            if frame.header.kind != FrameKind::Reply || !self.calls.knows(tag) {
                return Err(Error::invalid("the peer sent a frame that is no reply to a request"));
            }
            if !self.calls.is_waiting(tag) {
                reader.skip(frame.header.payload_len).await?;
                continue;
            }
            let payload = reader.payload(frame.header.payload_len).await?;
            self.calls.answer(tag, Answer { meta: frame.meta, payload, descriptor: frame.descriptor });
        }
        Ok(())
    }

    fn end(&self, error: Error) {
        self.calls.end(error);
        self.turns.close();
        self.outbox.close();
        self.hangup.hang_up();
        self.ended.send_replace(true);
    }

    fn why_ended(&self) -> Error {
        self.calls.ended().unwrap_or_else(|| Error::closed(format!("connection to {} has ended", self.address)))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.end(Error::closed(format!("connection to {} was dropped", self.shared.address)));
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Cancels a request unless its answer has come.
struct GiveUp<'a> {
    shared: &'a Shared,
    tag: u64,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if !self.shared.calls.give_up(self.tag) || self.shared.outbox.withdraw(self.tag) {
            return;
        }
        if let Ok(frame) = OutFrame::new(FrameKind::Cancel, self.tag, Bytes::new(), Vec::new(), None) {
            self.shared.outbox.send(frame);
        }
    }
}
