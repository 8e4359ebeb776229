//! Has workers bring what the schedule orders, in messages of bounded size within the mounts' bounds, and notes how each ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::TransferState;
use forebay_scheduling::{BlockRange, Transfer};
use forebay_types::{Mount, ObjectVersion, OperationId, WorkerId};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::scheduler::Books;
use crate::scheduler::books::deciding::Sender;

/// Bytes of one message to a worker: how fine what arrives is told.
const MESSAGE_BYTES: u64 = 8 << 20;
/// How long what failed rests before it is planned again.
const REST: Duration = Duration::from_millis(500);

/// Carries transfers out.
pub(crate) struct Carrier {
    books: Arc<Mutex<Books>>,
    client: Client,
    /// Transfers ahead of tasks are carried out; off: tasks fetch as they read.
    ahead: bool,
    under_way: Arc<Mutex<HashMap<u64, UnderWay>>>,
    next: std::sync::atomic::AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

struct UnderWay {
    version: Arc<ObjectVersion>,
    start: u64,
    bytes: u64,
    worker: WorkerId,
    since: Instant,
}

/// What is brought with one request.
struct Message {
    worker: WorkerId,
    operation: OperationId,
    version: Arc<ObjectVersion>,
    ranges: Vec<(u64, u32)>,
    blocks: Vec<BlockRange>,
    bytes: u64,
    urgent: bool,
}

impl Carrier {
    pub(in crate::scheduler) fn new(books: Arc<Mutex<Books>>, client: Client, ahead: bool) -> Arc<Self> {
        let (under_way, next, tasks) = (Arc::default(), Default::default(), Mutex::default());
        Arc::new(Self { books, client, ahead, under_way, next, tasks })
    }

    /// Starts what the schedule wants brought now.
    pub(in crate::scheduler) fn go(self: &Arc<Self>) {
        if !self.ahead {
            return;
        }
        let transfers = {
            let mut books = self.books.lock();
            let bandwidth = self.bandwidth(&books);
            let transfers = books.ask("what to bring", |schedule| {
                schedule.set_bandwidth(bandwidth);
                schedule.transfers()
            });
            transfers.unwrap_or_default()
        };
        self.bring(&transfers);
    }

    /// What the mounts that jobs read give together; none when one of them has no bound.
    fn bandwidth(&self, books: &Books) -> Option<u64> {
        let view = self.client.view();
        let is_read = |mount: &&Mount| books.jobs.values().any(|job| job.mounts.contains(&mount.id));
        let bounds = view.mounts.iter().filter(is_read).map(|mount| mount.options.bandwidth);
        bounds.map(|bound| bound.map(|rate| rate.bytes_per_sec())).sum()
    }

    /// Starts these transfers.
    pub(in crate::scheduler) fn bring(self: &Arc<Self>, transfers: &[Transfer]) {
        if !self.ahead || transfers.is_empty() {
            return;
        }
        let messages = self.messages(transfers);
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        for message in messages {
            let carrier = Arc::downgrade(self);
            let client = self.client.clone();
            let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let start = message.ranges.first().map_or(0, |range| range.0);
            let (version, bytes, worker) = (Arc::clone(&message.version), message.bytes, message.worker);
            self.under_way.lock().insert(number, UnderWay { version, start, bytes, worker, since: forebay_runtime::now() });
            // The schedule's bytes in flight bound how many there are.
            tasks.spawn(async move {
                let Message { operation, worker, ref version, urgent, .. } = message;
                let brought = client.bring(operation, worker, version, message.ranges, urgent).await;
                match &brought {
                    Ok(bytes) => tracing::debug!(%worker, key = %version.key, bytes, urgent, "brought"),
                    Err(error) => {
                        tracing::debug!(%worker, key = %version.key, %error, "not brought");
                        forebay_runtime::time::sleep(REST).await;
                    }
                }
                let Some(carrier) = carrier.upgrade() else { return };
                carrier.under_way.lock().remove(&number);
                carrier.books.lock().decide("what was brought", Sender::Nobody, |books| {
                    books.brought_bytes += brought.as_ref().map_or(0, |bytes| *bytes);
                    for block in message.blocks {
                        match &brought {
                            Ok(_) => books.schedule.arrived(block, message.worker),
                            Err(_) => books.schedule.failed(block, message.worker),
                        }
                    }
                });
                carrier.go();
            });
        }
    }

    fn messages(&self, transfers: &[Transfer]) -> Vec<Message> {
        let mut books = self.books.lock();
        let mut messages: Vec<Message> = Vec::new();
        for transfer in transfers {
            let Some((version, operation, range)) = books.locate(&transfer.range) else {
                books.decide("what nobody reads", Sender::Nobody, |books| books.schedule.failed(transfer.range, transfer.to));
                continue;
            };
            let bytes = u64::from(range.1);
            let goes_along = |message: &&mut Message| {
                (message.worker, message.urgent) == (transfer.to, transfer.urgent) && message.version == version
            };
            match messages.iter_mut().rev().find(goes_along) {
                Some(message) if message.bytes + bytes <= MESSAGE_BYTES => {
                    message.ranges.push(range);
                    message.blocks.push(transfer.range);
                    message.bytes += bytes;
                }
                _ => messages.push(Message {
                    worker: transfer.to,
                    operation,
                    version,
                    ranges: vec![range],
                    blocks: vec![transfer.range],
                    bytes,
                    urgent: transfer.urgent,
                }),
            }
        }
        messages
    }

    /// What is under way, the oldest first.
    pub(in crate::scheduler) fn shown(&self) -> Vec<TransferState> {
        let view = self.client.view();
        let mut shown: Vec<(u64, TransferState)> = Vec::new();
        for (number, of) in self.under_way.lock().iter() {
            let mount = view.mounts.iter().find(|mount| mount.id == of.version.mount);
            let mount = mount.map_or_else(|| format!("(mount {})", of.version.mount.0), |mount| mount.name.to_string());
            let path = format!("/{mount}/{}", of.version.key);
            let (start, bytes, worker) = (of.start, of.bytes, of.worker.to_string());
            shown.push((*number, TransferState { path, start, bytes, worker, seconds: of.since.elapsed().as_secs_f64() }));
        }
        shown.sort_by_key(|(number, _)| *number);
        shown.into_iter().map(|(_, state)| state).collect()
    }
}
