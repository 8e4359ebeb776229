//! What is recorded in this process: whether anything is, which operations, and the spans that wait to be sent.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_protocol::TraceContext;
use forebay_types::OperationId;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::record::Record;

/// Spans that wait to be sent; more are lost, and counted.
pub(crate) const QUEUE_MAX: usize = 16 << 10;
/// Operations that are known to be traced: with more the one that was asked for least recently is forgotten.
const OPERATIONS_MAX: NonZeroUsize = NonZeroUsize::new(16 << 10).expect("it is not 0");

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// There is one in a process that records, and it stays.
pub(crate) struct Recorder {
    queue: mpsc::Sender<Record>,
    /// Of what begins here, the part that is recorded.
    share: f64,
    operations: Mutex<LruCache<OperationId, TraceContext>>,
    lost: AtomicU64,
}

impl Recorder {
    /// From now on this process records. None when it does already.
    pub(crate) fn begin(share: f64) -> Option<mpsc::Receiver<Record>> {
        let (queue, records) = mpsc::channel(QUEUE_MAX);
        let operations = Mutex::new(LruCache::new(OPERATIONS_MAX));
        RECORDER.set(Self { queue, share, operations, lost: AtomicU64::new(0) }).is_ok().then_some(records)
    }

    pub(crate) fn get() -> Option<&'static Self> {
        RECORDER.get()
    }

    /// Keeps a span until it is sent. Waits for nothing.
    pub(crate) fn keep(&self, record: Record) {
        if self.queue.try_send(record).is_err() {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn bind(&self, operation: OperationId, context: TraceContext) {
        self.operations.lock().put(operation, context);
    }

    pub(crate) fn of(&self, operation: OperationId) -> Option<TraceContext> {
        self.operations.lock().get(&operation).copied()
    }

    /// Spans that were lost since this was asked last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Relaxed)
    }

    /// More were lost.
    pub(crate) fn note_lost(&self, spans: u64) {
        self.lost.fetch_add(spans, Relaxed);
    }

    /// Whether a trace that begins here is recorded.
    pub(crate) fn takes_one(&self) -> bool {
        self.share > 0.0 && (self.share >= 1.0 || forebay_runtime::random_range(0.0..1.0_f64) < self.share)
    }
}

/// Whether this process records spans.
pub fn is_on() -> bool {
    RECORDER.get().is_some()
}

/// An operation is done at this place in a trace, as the process says that has it.
pub fn known(operation: OperationId, context: Option<TraceContext>) {
    if let (Some(recorder), Some(context)) = (Recorder::get(), context) {
        recorder.bind(operation, context);
    }
}
