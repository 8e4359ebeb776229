//! Has workers bring what the schedule orders, in messages of bounded size within the mounts' bounds, notes how each ended, and tells them
//! when nobody reads any more what they hold of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::Client;
use forebay_protocol::TransferState;
use forebay_scheduling::{BlockRange, Transfer};
use forebay_types::{Mount, MountId, ObjectVersion, OperationId, SegmentId, Standing, WorkerId};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::books::{Books, Sender};

/// Bytes of one message to a worker: how fine what arrives is told.
const MESSAGE_BYTES: u64 = 8 << 20;
/// How long what failed rests before it is planned again.
const REST: Duration = Duration::from_millis(500);

type Holding = HashMap<(OperationId, WorkerId), HashSet<SegmentId>>;

/// Carries transfers out.
pub struct Carrier {
    books: Arc<Mutex<Books>>,
    client: Client,
    /// Transfers ahead of tasks are carried out; off: tasks fetch as they read.
    ahead: bool,
    under_way: Arc<Mutex<HashMap<u64, UnderWay>>>,
    /// The workers that hold what was brought, for which operations, and of which segments it is, until it has been read.
    holding: Arc<Mutex<Holding>>,
    next: std::sync::atomic::AtomicU64,
    tasks: Mutex<JoinSet<()>>,
}

struct UnderWay {
    operation: OperationId,
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
    standing: Standing,
    version: Arc<ObjectVersion>,
    ranges: Vec<(u64, u32)>,
    blocks: Vec<BlockRange>,
    bytes: u64,
    urgent: bool,
}

impl Carrier {
    /// Carries nothing out yet; never, unless `ahead`.
    pub fn new(books: Arc<Mutex<Books>>, client: Client, ahead: bool) -> Arc<Self> {
        let (under_way, holding, next, tasks) = (Arc::default(), Arc::default(), Default::default(), Mutex::default());
        Arc::new(Self { books, client, ahead, under_way, holding, next, tasks })
    }

    /// Starts what the schedule wants brought now.
    pub fn go(self: &Arc<Self>) {
        if !self.ahead {
            return;
        }
        let transfers = {
            let mut books = self.books.lock();
            let bandwidths = self.bandwidths(&books);
            let transfers = books.ask("what to bring", |schedule| {
                for (mount, bytes_per_sec) in &bandwidths {
                    schedule.set_bandwidth(*mount, *bytes_per_sec);
                }
                schedule.transfers()
            });
            transfers.unwrap_or_default()
        };
        self.bring(&transfers);
    }

    /// What each of the mounts that jobs read gives; none where it has no bound.
    fn bandwidths(&self, books: &Books) -> Vec<(MountId, Option<u64>)> {
        let view = self.client.view();
        let is_read = |mount: &&Mount| books.jobs.values().any(|job| job.mounts.contains(&mount.id));
        let bound = |mount: &Mount| (mount.id, mount.options.bandwidth.map(|rate| rate.bytes_per_sec()));
        view.mounts.iter().filter(is_read).map(bound).collect()
    }

    /// Starts these transfers.
    pub fn bring(self: &Arc<Self>, transfers: &[Transfer]) {
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
            let (operation, since) = (message.operation, forebay_runtime::now());
            let known = self.under_way.lock().insert(number, UnderWay { operation, version, start, bytes, worker, since });
            assert!(known.is_none(), "the number of a message is given once");
            let segments = message.blocks.iter().map(|block| block.segment);
            self.holding.lock().entry((operation, worker)).or_default().extend(segments);
            // The schedule's bytes in flight bound how many there are.
            tasks.spawn(async move {
                let Message { operation, worker, ref version, urgent, .. } = message;
                let brought = client.bring((operation, message.standing), worker, version, message.ranges, urgent).await;
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

    /// Tells workers what they need hold no longer: what was brought for jobs that are over and no other one reads, and what is where no
    /// executor is any more. The tasks of one that is lost read elsewhere. Who can't be told now is told the next time.
    pub fn let_go(&self) {
        let over = self.held_for_nothing();
        if over.is_empty() {
            return;
        }
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        for ((operation, worker), segments) in over {
            let (client, holding) = (self.client.clone(), Arc::clone(&self.holding));
            tasks.spawn(async move {
                if let Err(error) = client.ended(operation, worker).await {
                    tracing::debug!(%worker, %error, "a worker was not told that nobody reads what was brought");
                    // One that is gone holds nothing; its connections have ended.
                    if client.view().workers.iter().any(|known| known.id == worker) {
                        forebay_runtime::time::sleep(REST).await;
                        holding.lock().entry((operation, worker)).or_default().extend(segments);
                    }
                }
            });
        }
    }

    /// Takes out what nobody reads any more, but for where something is still on its way: it would be held after the word.
    fn held_for_nothing(&self) -> Vec<((OperationId, WorkerId), HashSet<SegmentId>)> {
        let books = self.books.lock();
        let mut holding = self.holding.lock();
        if holding.is_empty() {
            return Vec::new();
        }
        let at_work = books.workers_at_work();
        let operations: HashSet<OperationId> = books.jobs.values().map(|job| job.ticket.operation).collect();
        let coming: HashSet<(OperationId, WorkerId)> =
            self.under_way.lock().values().map(|coming| (coming.operation, coming.worker)).collect();
        // What is brought for one job is brought for all that read it.
        let is_read = |segments: &HashSet<SegmentId>| {
            books.jobs.values().any(|job| segments.iter().any(|segment| job.versions.contains_key(segment)))
        };
        let is_over = |held: &(OperationId, WorkerId), segments: &mut HashSet<SegmentId>| {
            !coming.contains(held) && !(at_work.contains(&held.1) && (operations.contains(&held.0) || is_read(segments)))
        };
        holding.extract_if(is_over).collect()
    }

    fn messages(&self, transfers: &[Transfer]) -> Vec<Message> {
        let mut books = self.books.lock();
        let mut messages: Vec<Message> = Vec::new();
        for transfer in transfers {
            let Some((version, (operation, standing), range)) = books.locate(&transfer.range) else {
                books.decide("what nobody reads", Sender::Nobody, |books| books.schedule.failed(transfer.range, transfer.to));
                continue;
            };
            let bytes = u64::from(range.1);
            let goes_along = |message: &&mut Message| {
                (message.worker, message.urgent, message.operation) == (transfer.to, transfer.urgent, operation)
                    && message.version == version
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
                    standing,
                    version,
                    ranges: vec![range],
                    blocks: vec![transfer.range],
                    bytes,
                    urgent: transfer.urgent,
                }),
            }
        }
        let fits = |message: &Message| message.bytes <= MESSAGE_BYTES || message.ranges.len() == 1;
        assert!(messages.iter().all(fits), "what is brought together is within a message");
        let bytes = |message: &Message| message.ranges.iter().map(|range| u64::from(range.1)).sum::<u64>();
        debug_assert!(messages.iter().all(|message| bytes(message) == message.bytes), "a message has the bytes of its ranges");
        messages
    }

    /// What is under way, the oldest first.
    pub fn shown(&self) -> Vec<TransferState> {
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

#[cfg(test)]
mod tests {
    use forebay_scheduling::{ScheduleSettings, Source};
    use forebay_testbed::{TestCluster, until};
    use forebay_types::{ForebayPath, PageRun};

    use super::*;
    use crate::job::Cut;
    use crate::ticket::Ticket;

    const MIB: u64 = 1 << 20;

    /// A job whose input was brought to the worker beside the only executor, and not read there yet.
    async fn brought(test: &TestCluster) -> (Arc<Mutex<Books>>, Arc<Carrier>) {
        let (worker, client) = (test.node.workers[0].id(), test.client(|_| {}).await);
        test.store("x", &vec![7; MIB as usize]);
        let x = client.open(&"/lake/x".parse::<ForebayPath>().unwrap()).await.unwrap().version;
        let range = BlockRange { segment: SegmentId::of(&x, 0), pages: PageRun::new(0, 256) };
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(&format!("{:x}-1", worker.0), 1, Some(12 << 20));
        books.job_seen("job", || Ticket::silent(OperationId(7)));
        books.inputs_known("job", 1, 0, (Arc::default(), Cut::Each), [(range.segment, (Arc::new(x), 0))]);
        let books = Arc::new(Mutex::new(books));
        let carrier = Carrier::new(Arc::clone(&books), client, true);
        carrier.bring(&[Transfer { range, from: Source::Storage, to: worker, urgent: false }]);
        carrier.let_go();
        until("it is brought and held", || test.pinned() == MIB && carrier.shown().is_empty()).await;
        carrier.let_go();
        assert!(carrier.holding.lock().keys().eq(&[(OperationId(7), worker)]), "its task may come");
        (books, carrier)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_brought_for_a_job_stayed_pinned_when_the_job_was_over() {
        let test = TestCluster::start(1).await;
        let (books, carrier) = brought(&test).await;
        books.lock().job_over("job", "failed", String::new());
        carrier.let_go();
        assert!(carrier.holding.lock().is_empty());
        until("the worker lets go", || test.pinned() == 0).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_brought_for_a_job_that_is_over_is_held_for_another_one_that_reads_it() {
        let test = TestCluster::start(1).await;
        let (books, carrier) = brought(&test).await;
        let versions: Vec<_> = books.lock().jobs["job"].versions.iter().map(|(id, version)| (*id, version.clone())).collect();
        let ticket = Ticket::silent(OperationId(8));
        books.lock().job_seen("other", || ticket);
        books.lock().inputs_known("other", 1, 0, (Arc::default(), Cut::Each), versions);
        books.lock().job_over("job", "failed", String::new());
        carrier.let_go();
        assert!(!carrier.holding.lock().is_empty() && test.pinned() == MIB);
        books.lock().job_over("other", "done", String::new());
        carrier.let_go();
        until("the worker lets go", || test.pinned() == 0).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_brought_for_an_executor_stayed_pinned_when_it_was_lost() {
        let test = TestCluster::start(1).await;
        let (books, carrier) = brought(&test).await;
        assert_eq!(books.lock().forget_silent(Duration::ZERO).len(), 1);
        carrier.let_go();
        assert!(carrier.holding.lock().is_empty() && books.lock().jobs.contains_key("job"));
        until("the worker lets go", || test.pinned() == 0).await;
    }
}
