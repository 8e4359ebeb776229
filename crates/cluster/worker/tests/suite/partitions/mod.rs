//! Writes while a worker can't be told: an acknowledged one is never followed by the version of before, whoever is cut off from whom.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_block_store::StoreSettings;
use forebay_node::Node;
use forebay_protocol::{
    ControlReply, ControlRequest, DataReply, DataRequest, Heartbeat, MemberRequest, PutCondition, WorkerInfo,
};
use forebay_testbed::Proxy;
use forebay_transport::{Address, Security};
use forebay_types::{ErrorKind, Key, MountOptions, ObjectVersion, Result, Validate};
use forebay_worker::{Tuning, Worker, WorkerSettings};
use tokio::sync::watch;

use crate::bed::{Bed, Client, Plan, control, until};

/// A worker that others and the coordinator reach through networks that can be cut.
struct Far {
    worker: Arc<Worker>,
    /// From other workers to it.
    peers: Proxy,
    /// From it to the coordinator.
    coordinator: Proxy,
}

impl Far {
    async fn start(bed: &Bed, name: &str) -> Self {
        let (address, target) = watch::channel(None);
        let peers = Proxy::start(target).await;
        let coordinator = Proxy::before(bed.node.coordinator_at()).await;
        let store = StoreSettings::new(bed.folder.path().join(name), 16 << 20);
        let Address::Tcp(advertise) = peers.address.clone() else { unreachable!() };
        let mut node = Node::join(coordinator.address.clone(), Security::default());
        let settings =
            WorkerSettings { advertise: Some(advertise), store, unix_socket: None, ..node.worker_in(bed.folder.path(), 0) };
        let tuning = Tuning { beat: Duration::from_millis(100), ..Tuning::default() };
        let worker = Arc::clone(node.start_worker_with(settings, tuning).await.unwrap());
        let Address::Tcp(listens) = worker.address() else { unreachable!() };
        address.send_replace(Some(listens));
        Self { worker, peers, coordinator }
    }

    fn cut(&self) {
        self.peers.cut();
        self.coordinator.cut();
    }

    fn heal(&self) {
        self.peers.heal();
        self.coordinator.heal();
    }

    /// Past what is cut.
    async fn reader(&self, bed: &Bed) -> Client {
        Client::connect(&self.worker.address(), bed.mount.id).await
    }
}

async fn bed() -> Bed {
    let options = MountOptions { validate: Validate::Immutable, ..MountOptions::default() };
    Bed::new(Plan { options, ..Plan::default() }).await
}

async fn write(writer: &Client, bytes: &'static str) -> Result<ObjectVersion> {
    let put = DataRequest::Put { mount: writer.mount, key: Key::new("a").unwrap(), condition: PutCondition::Any };
    match writer.send(put, vec![bytes.into()]).await?.0 {
        DataReply::Info(info) => Ok(info.version),
        other => panic!("{other:?}"),
    }
}

/// Both know the same version, and neither asks for it again.
async fn known(bed: &Bed, writer: &Client, reader: &Client) -> ObjectVersion {
    bed.object("a", 100);
    until("both hear of what others write", async || {
        let before = (reader.version("a").await, writer.version("a").await);
        let heads = bed.s3.counters().heads;
        (reader.version("a").await, writer.version("a").await) == before && bed.s3.counters().heads == heads
    })
    .await;
    reader.version("a").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_writers_can_not_reach_has_forgotten_when_they_are_answered() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let (writer, reader) = (bed.client().await, far.reader(&bed).await);
    let old = known(&bed, &writer, &reader).await;
    far.peers.cut();
    let began = Instant::now();
    let new = write(&writer, "new").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "no lease has to run out for it: {:?}", began.elapsed());
    assert_eq!(reader.version("a").await, new, "it answered with {old:?}");
    let began = Instant::now();
    let newer = write(&writer, "newer").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "it is not waited for again: {:?}", began.elapsed());
    assert_eq!(reader.version("a").await, newer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_from_everyone_asks_shared_storage_once_its_lease_is_over() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let (writer, reader) = (bed.client().await, far.reader(&bed).await);
    known(&bed, &writer, &reader).await;
    far.cut();
    let began = Instant::now();
    let new = write(&writer, "new").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    assert_eq!(reader.version("a").await, new, "nobody could tell it");
    far.heal();
    let newer = write(&writer, "newer").await.unwrap();
    assert_eq!(reader.version("a").await, newer, "it is back, or not yet");
}

/// Shorter than its lease, and longer than a writer waits for an answer of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_away_for_a_moment_does_not_bring_the_old_version_back() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let (writer, reader) = (bed.client().await, far.reader(&bed).await);
    known(&bed, &writer, &reader).await;
    far.cut();
    let writing = tokio::spawn(async move { (write(&writer, "new").await, writer) });
    tokio::time::sleep(Duration::from_millis(1700)).await;
    far.heal();
    let (new, writer) = writing.await.unwrap();
    let new = new.unwrap();
    for _ in 0..100 {
        assert_eq!(reader.version("a").await, new);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let newer = write(&writer, "newer").await.unwrap();
    assert_eq!(reader.version("a").await, newer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_writers_do_not_know_of_yet_answers_from_nothing() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let writer = far.reader(&bed).await;
    known(&bed, &writer, &bed.client().await).await;
    // It does not get the view that names the next one.
    far.coordinator.cut();
    let store = StoreSettings::new(bed.folder.path().join("late"), 16 << 20);
    let late = crate::bed::start_worker(bed.node.coordinator_at(), store, None).await;
    let reader = Client::connect(&late.address(), bed.mount.id).await;
    reader.version("a").await;
    match write(&writer, "new").await {
        Ok(new) => assert_eq!(reader.version("a").await, new),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Retry, "{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_through_a_worker_without_a_lease_waits_for_it_and_changes_nothing_before() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let (writer, reader) = (far.reader(&bed).await, bed.client().await);
    let old = known(&bed, &writer, &reader).await;
    far.coordinator.cut();
    tokio::time::sleep(Duration::from_millis(5500)).await;
    let writing = tokio::spawn(async move { write(&writer, "new").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!writing.is_finished());
    assert_eq!(bed.s3.counters().puts, 0);
    assert_eq!(reader.version("a").await, old);
    far.coordinator.heal();
    let new = writing.await.unwrap().unwrap();
    assert_eq!(reader.version("a").await, new);
}

/// Another process was started with a copy of its data folder while the coordinator heard nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_finds_another_in_its_place_has_no_lease_until_that_one_is_silent() {
    let bed = bed().await;
    let far = Far::start(&bed, "far").await;
    let (writer, reader) = (bed.client().await, far.reader(&bed).await);
    known(&bed, &writer, &reader).await;
    let coordinator = bed.node.coordinator_at();
    let seen = async || {
        let ControlReply::View(view) = control(coordinator, ControlRequest::View { have: 0 }).await.unwrap() else { panic!() };
        view.workers.into_iter().find(|worker| Address::Tcp(worker.address.clone()) == far.peers.address)
    };
    let there = seen().await.unwrap();
    far.coordinator.cut();
    let copy = WorkerInfo { address: "127.0.0.1:9".into(), turn: 0, ..there };
    until("the copy is let in", async || control(coordinator, MemberRequest::Register(copy.clone())).await.is_ok()).await;
    far.coordinator.heal();
    let asks = async || {
        let before = bed.s3.counters().heads;
        reader.version("a").await;
        bed.s3.counters().heads > before
    };
    let mut in_a_row = 0;
    until("it asks shared storage at each open", async || {
        control(coordinator, MemberRequest::Heartbeat(Heartbeat::silent(copy.id))).await.unwrap();
        in_a_row = if asks().await { in_a_row + 1 } else { 0 };
        in_a_row == 50
    })
    .await;
    until("it is let in again", async || seen().await.is_some()).await;
    until("it hears of what others write", async || !asks().await).await;
}
