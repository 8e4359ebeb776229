//! Frames that wait to be sent on a connection, sent by who puts them there.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::Sink;
use crate::frames::batch::{Batch, OutFrame};
use crate::sockets::Socket;

#[cfg(test)]
#[cfg(feature = "models")]
mod models;
mod words;

use words::{Mutex, Notify};

/// Batches that a sender takes on beside its own before it leaves the rest to the writer task.
const DIRECT_BATCHES_MAX: usize = 8;

/// The frames that wait to be sent on one connection.
///
/// Who puts a frame in sends it at once, and what others put in meanwhile: no task has to be woken for it. Where many come
/// one after the other they are left to the connection's writer task instead ([`Self::send_soon`]). When the socket is full
/// (and always on a stream, as with TLS) the writer task takes over too. Never more than one of them sends: who does has set
/// `State::sending`.
pub(crate) struct Outbox {
    state: Mutex<State>,
    direct: Option<Arc<dyn Direct>>,
    /// Payloads go with their checksums.
    checks: bool,
    work: Notify,
    progress: Notify,
    /// Bytes of frames that are not through, of all outboxes of a server.
    all: Arc<AtomicUsize>,
    /// Bytes that are out of a frame that is not through.
    begun: AtomicUsize,
}

/// A socket that whoever has a frame may send by.
trait Direct: Send + Sync {
    /// Sends what there is room for; the bytes of the frames that are through. `WouldBlock` when it is full.
    fn send(&self, batch: &mut Batch) -> io::Result<usize>;
}

impl Direct for Socket {
    fn send(&self, batch: &mut Batch) -> io::Result<usize> {
        batch.send_with(|slices, descriptor| Self::send(self, slices, descriptor))
    }
}

/// What the writer task sends by, waiting for room.
trait Through {
    /// The bytes of the frames that are through, when some are.
    async fn send(&mut self, batch: &mut Batch) -> io::Result<usize>;
    /// Everything is out.
    async fn rest(&mut self) -> io::Result<()>;
}

impl Through for Sink {
    async fn send(&mut self, batch: &mut Batch) -> io::Result<usize> {
        Self::send(self, batch).await
    }

    async fn rest(&mut self) -> io::Result<()> {
        Self::rest(self).await
    }
}

#[derive(Default)]
struct State {
    queue: VecDeque<OutFrame>,
    /// Bytes of frames that are not through yet, those being sent among them.
    bytes: usize,
    /// What the writer task is to go on with.
    handed_over: Batch,
    sending: bool,
    closed: bool,
}

impl Outbox {
    /// An outbox that is emptied into `sink` by [`Self::write`].
    pub(crate) fn new(sink: &Sink) -> Self {
        Self::one_of(sink, Arc::default())
    }

    /// One of those whose bytes `all` counts together.
    pub(crate) fn one_of(sink: &Sink, all: Arc<AtomicUsize>) -> Self {
        let Sink::Socket { socket, .. } = sink else { return Self::over(None, false, all) };
        Self::over(Some(socket.clone()), !socket.unix, all)
    }

    fn over(direct: Option<Arc<dyn Direct>>, checks: bool, all: Arc<AtomicUsize>) -> Self {
        let (work, progress, begun) = (Notify::new(), Notify::new(), AtomicUsize::default());
        Self { state: Mutex::default(), direct, checks, work, progress, all, begun }
    }

    /// Puts a frame in without sending it yet; how many no one has begun to send. A closed outbox drops it.
    pub(crate) fn push(&self, frame: OutFrame) -> usize {
        let frame = if self.checks { frame.checked() } else { frame };
        let mut state = self.state.lock();
        if !state.closed {
            state.bytes += frame.bytes;
            self.all.fetch_add(frame.bytes, Relaxed);
            state.queue.push_back(frame);
        }
        state.queue.len()
    }

    /// Puts a frame in and sends it as soon as can be.
    pub(crate) fn send(&self, frame: OutFrame) {
        self.push(frame);
        self.flush();
    }

    /// Puts a frame in, to be sent with what comes after it before the writer task has its turn, or before there are `together`.
    pub(crate) fn send_soon(&self, frame: OutFrame, together: usize) {
        match self.push(frame) >= together {
            true => self.flush(),
            false => self.work.notify_one(),
        }
    }

    /// Bytes of frames that are not through yet.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Bytes that are out of a frame that is not through.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Relaxed)
    }

    /// Frames that no one has begun to send.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Takes a request back that no one has begun to send.
    pub(crate) fn withdraw(&self, tag: u64) -> bool {
        let mut state = self.state.lock();
        let found = state.queue.iter().position(|frame| frame.is_request() && frame.tag() == tag);
        let frame = found.and_then(|index| state.queue.remove(index));
        self.less(&mut state, frame.as_ref().map_or(0, |frame| frame.bytes));
        frame.is_some()
    }

    /// Sends what is there, as far as the socket takes it now.
    pub(crate) fn flush(&self) {
        let mut batch = Batch::default();
        {
            let mut state = self.state.lock();
            if state.sending || state.queue.is_empty() {
                return;
            }
            state.sending = true;
            std::mem::swap(&mut state.queue, &mut batch.frames);
        }
        if let Some(socket) = &self.direct {
            for _ in 0..DIRECT_BATCHES_MAX {
                let full = self.send_batch(&mut batch, |batch| socket.send(batch));
                // Any other error comes up again in the writer task, which ends the connection for it.
                if full.is_err() {
                    break;
                }
                if !self.next_batch(&mut batch) {
                    return;
                }
            }
        }
        self.state.lock().handed_over = batch;
        self.work.notify_one();
    }

    /// The writer task: sends what is handed over to it. Returns when the connection fails or the outbox is closed.
    #[expect(private_bounds, reason = "a model of the outbox has a sink of its own")]
    pub(crate) async fn write(&self, mut sink: impl Through) -> io::Result<()> {
        loop {
            self.work.notified().await;
            let mut batch = {
                let mut state = self.state.lock();
                if state.closed {
                    return Ok(());
                }
                std::mem::take(&mut state.handed_over)
            };
            if batch.is_empty() {
                // What was put in to be sent together.
                self.flush();
                continue;
            }
            loop {
                while !batch.is_empty() {
                    let through = sink.send(&mut batch).await?;
                    self.release(through, &batch);
                    tokio::task::coop::consume_budget().await;
                }
                if !self.next_batch(&mut batch) {
                    break;
                }
            }
            sink.rest().await?;
        }
    }

    /// Waits until `bytes` of frames or less are not through.
    pub(crate) async fn drained_to(&self, bytes: usize) {
        loop {
            let mut progress = std::pin::pin!(self.progress.notified());
            progress.as_mut().enable();
            {
                let state = self.state.lock();
                if state.bytes <= bytes || state.closed {
                    return;
                }
            }
            progress.await;
        }
    }

    /// Drops everything, now and from now on.
    pub(crate) fn close(&self) {
        let dropped = {
            let mut state = self.state.lock();
            state.closed = true;
            let left = state.bytes;
            self.less(&mut state, left);
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.handed_over))
        };
        drop(dropped);
        self.work.notify_one();
        self.progress.notify_waiters();
    }

    fn send_batch(&self, batch: &mut Batch, mut send: impl FnMut(&mut Batch) -> io::Result<usize>) -> io::Result<()> {
        while !batch.is_empty() {
            let through = send(batch)?;
            self.release(through, batch);
        }
        Ok(())
    }

    /// Fills the empty `batch` with what came in; with nothing there sending is over.
    fn next_batch(&self, batch: &mut Batch) -> bool {
        let mut state = self.state.lock();
        if state.queue.is_empty() {
            state.sending = false;
            return false;
        }
        std::mem::swap(&mut state.queue, &mut batch.frames);
        true
    }

    fn less(&self, state: &mut State, bytes: usize) {
        state.bytes -= bytes;
        self.all.fetch_sub(bytes, Relaxed);
    }

    /// Some of a batch is out, and so many bytes of frames through.
    fn release(&self, through: usize, batch: &Batch) {
        self.begun.store(batch.begun(), Relaxed);
        if through > 0 {
            let mut state = self.state.lock();
            // A closed outbox counts nothing any more.
            let through = through.min(state.bytes);
            self.less(&mut state, through);
            drop(state);
            self.progress.notify_waiters();
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "models"))]
mod tests {
    use bytes::Bytes;
    use forebay_protocol::{FrameKind, PROTOCOL_VERSION};

    use super::*;

    /// A socket that takes everything, and counts how often it is called.
    #[derive(Default)]
    struct Wire(AtomicUsize);

    impl Direct for Wire {
        fn send(&self, batch: &mut Batch) -> io::Result<usize> {
            self.0.fetch_add(1, Relaxed);
            batch.send_with(|slices, _| Ok(slices.iter().map(|slice| slice.len()).sum()))
        }
    }

    #[test]
    fn many_frames_are_sent_together_and_not_all_of_them_at_the_end() {
        let wire = Arc::new(Wire::default());
        let direct: Arc<dyn Direct> = wire.clone();
        let outbox = Outbox::over(Some(direct), false, Arc::default());
        let sends = |tag| {
            let frame = OutFrame::new(PROTOCOL_VERSION, FrameKind::Request, tag, Bytes::new(), Vec::new(), None).unwrap();
            outbox.send_soon(frame, 8);
            wire.0.load(Relaxed)
        };
        let sends: Vec<usize> = (1..=20).map(sends).collect();
        assert_eq!((sends[6], sends[7], sends[14], sends[15], sends[19]), (0, 1, 1, 2, 2));
        assert_eq!(outbox.len(), 4, "which the writer sends");
        outbox.flush();
        assert_eq!((outbox.len(), outbox.bytes(), wire.0.load(Relaxed)), (0, 0, 3));
    }
}
