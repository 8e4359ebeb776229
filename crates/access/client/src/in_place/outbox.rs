//! What a client tells a worker of its reads in place.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use forebay_protocol::{DataNotice, DataReply, InPlaceCount, NodeReply, decode_from, encode_for};
use forebay_runtime::time::{sleep, timeout};
use forebay_transport::{Answer, Connection};
use forebay_types::{ErrorKind, OperationId, Result, SegmentId};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A call to a worker under way, and how to tell the pin in its answer.
type Call = (BoxFuture<'static, Result<Answer>>, PinOf);

/// The pin that an answer gives, if any.
pub(crate) type PinOf = fn(&Answer) -> Option<u64>;

/// The pin in an answer to a read of an object.
pub(crate) fn pin_of_read(answer: &Answer) -> Option<u64> {
    match decode_from(answer.version, &answer.meta) {
        Ok(
            DataReply::Read { in_place: Some((pin, _)), .. }
            | DataReply::ReadLatest { in_place: Some((pin, _)), .. }
            | DataReply::ReadObject { in_place: Some((pin, _)), .. },
        ) => Some(pin),
        _ => None,
    }
}

/// The pin in an answer about a temporary node.
pub(crate) fn pin_of_node(answer: &Answer) -> Option<u64> {
    match NodeReply::decode(&answer.meta) {
        Ok(NodeReply::InPlace { pin, .. } | NodeReply::Place { pin, .. }) => Some(pin),
        _ => None,
    }
}

/// What a client has to tell a worker about its reads in place, gathered into few messages.
#[derive(Default)]
pub(crate) struct Outbox {
    pending: Mutex<Pending>,
    wake: Notify,
    urgent: Notify,
}

#[derive(Default)]
struct Pending {
    pins: Vec<u64>,
    counts: HashMap<(OperationId, SegmentId), (u32, u64)>,
    orphans: Vec<Call>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.counts.is_empty() && self.orphans.is_empty()
    }

    fn urgent(&self) -> bool {
        self.pins.len() == BATCH || self.counts.len() == BATCH
    }
}

/// Entries of one message at most, and what is sent without waiting for more.
const BATCH: usize = 1024;
/// How long a message waits for more to say.
const GATHER: Duration = Duration::from_millis(10);
/// How long a read that nobody waits for any more may go on, so that its pin is not lost, before it is cancelled.
const ORPHAN_DEADLINE: Duration = Duration::from_secs(5);
/// Such reads at once; more are cancelled at once.
const ORPHANS_MAX: usize = 1024;

impl Outbox {
    /// This pin is dropped.
    pub(crate) fn unpin(&self, pin: u64) {
        self.push(|pending| pending.pins.push(pin));
    }

    /// A read in place that the worker doesn't know of.
    pub(crate) fn count(&self, operation: OperationId, segment: SegmentId, bytes: u64) {
        self.push(|pending| {
            let (reads, sum) = pending.counts.entry((operation, segment)).or_default();
            *reads = reads.saturating_add(1);
            *sum += bytes;
        });
    }

    fn push(&self, add: impl FnOnce(&mut Pending)) {
        let (first, urgent) = {
            let mut pending = self.pending.lock();
            let first = pending.is_empty();
            add(&mut pending);
            (first, pending.urgent())
        };
        if first {
            self.wake.notify_one();
        }
        if urgent {
            self.urgent.notify_one();
        }
    }

    /// Sends what has gathered; what the connection does not take now waits for the next time.
    fn flush(&self, connection: &Connection) {
        let (pins, counts) = {
            let mut pending = self.pending.lock();
            (std::mem::take(&mut pending.pins), std::mem::take(&mut pending.counts))
        };
        let counts: Vec<_> = counts
            .into_iter()
            .map(|((operation, segment), (reads, bytes))| InPlaceCount { operation, segment, reads, bytes })
            .collect();
        let (mut pins, mut counts) = (pins.chunks(BATCH), counts.chunks(BATCH));
        loop {
            let (pins, counts) = (pins.next().unwrap_or_default(), counts.next().unwrap_or_default());
            if pins.is_empty() && counts.is_empty() {
                return;
            }
            let notice = DataNotice::Unpin { pins: pins.to_vec(), counts: counts.to_vec() };
            match connection.notify(encode_for(connection.version(), &notice)) {
                Ok(()) => {}
                // Pins must not be lost; counts may.
                Err(error) if error.kind() == ErrorKind::Retry => pins.iter().for_each(|pin| self.unpin(*pin)),
                // A connection that is gone has given up its pins already.
                Err(_) => return,
            }
        }
    }

    /// Gathers and sends until the connection closes or the owner drops this.
    pub(crate) async fn run(self: Arc<Self>, connection: Connection) {
        let mut orphans = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = connection.closed() => return,
                Some(()) = orphans.next() => {}
                () = self.wake.notified() => {
                    tokio::select! {
                        () = self.urgent.notified() => {}
                        () = sleep(GATHER) => {}
                    }
                    let calls = std::mem::take(&mut self.pending.lock().orphans);
                    orphans.extend(calls.into_iter().map(|call| self.bury(call)));
                    self.flush(&connection);
                }
            }
        }
    }

    async fn bury(&self, (call, pin_of): Call) {
        let Ok(Ok(answer)) = timeout(ORPHAN_DEADLINE, call).await else { return };
        if let Some(pin) = pin_of(&answer) {
            self.unpin(pin);
        }
    }
}

/// A read in place under way. Dropped before its answer came, it goes on in the background: the answer may be on its way
/// already, with a pin that nobody would give back.
pub(crate) struct Rescued {
    call: Option<Call>,
    begun: bool,
    outbox: Arc<Outbox>,
}

impl Rescued {
    pub(crate) fn new(call: impl Future<Output = Result<Answer>> + Send + 'static, outbox: &Arc<Outbox>, pin_of: PinOf) -> Self {
        Self { call: Some((Box::pin(call), pin_of)), begun: false, outbox: Arc::clone(outbox) }
    }
}

impl Future for Rescued {
    type Output = Result<Answer>;

    fn poll(mut self: Pinned<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.begun = true;
        let call = self.call.as_mut().expect("polled again after it was ready");
        let answer = std::task::ready!(call.0.as_mut().poll(context));
        self.call = None;
        Poll::Ready(answer)
    }
}

impl Drop for Rescued {
    fn drop(&mut self) {
        if let Some(call) = self.call.take()
            && self.begun
        {
            self.outbox.push(|pending| {
                if pending.orphans.len() < ORPHANS_MAX {
                    pending.orphans.push(call);
                }
                debug_assert!(pending.orphans.len() <= ORPHANS_MAX, "reads that nobody waits for are bounded");
            });
        }
    }
}
