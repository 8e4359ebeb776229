//! Clients and a worker in processes of their own on one host, as users run them: small calls go by shared memory.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_client::{Address, Client, ClientSettings, CreateOptions, NodeErrorKind, NodeType, Nodes, Security};
use forebay_node::Node;

use crate::nodes::conforms_with;

/// Where the process is to work that this program starts of itself.
const FOLDER: &str = "FOREBAY_TEST_BESIDE";

/// What both processes know.
fn ours() -> Security {
    Security::owner("a secret of these tests").unwrap()
}

/// A coordinator and a worker in another process.
struct Beside {
    process: Child,
    folder: tempfile::TempDir,
    address: Address,
}

impl Beside {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "beside::serves_as_a_process_of_its_own"]).env(FOLDER, folder.path());
        let process = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        let address = loop {
            match std::fs::read_to_string(folder.path().join("address")) {
                Ok(address) => break address.parse().unwrap(),
                Err(_) => assert!(began.elapsed() < Duration::from_secs(30), "the worker does not start"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { process, folder, address }
    }

    async fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let mut settings = ClientSettings { security: ours(), ..ClientSettings::new(self.address.clone()) };
        change(&mut settings);
        Client::connect(settings).await.unwrap()
    }

    /// How long the thread has run that polls rings; none when there is none.
    fn polled(&self) -> Option<Duration> {
        let tasks = Path::new("/proc").join(self.process.id().to_string()).join("task");
        let mut tasks = std::fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path());
        let rings = tasks.find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "rings"))?;
        let nanos = std::fs::read_to_string(rings.join("schedstat")).unwrap();
        Some(Duration::from_nanos(nanos.split(' ').next().unwrap().parse().unwrap()))
    }

    /// Whether none of its threads runs.
    fn is_stopped(&self) -> bool {
        let tasks = Path::new("/proc").join(self.process.id().to_string()).join("task");
        let mut stats = std::fs::read_dir(tasks).unwrap().map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")));
        // The state stands behind the name, which may hold blanks.
        stats.all(|stat| stat.unwrap().rsplit(") ").next().unwrap().starts_with('T'))
    }

    fn kill(mut self) -> tempfile::TempDir {
        self.process.kill().unwrap();
        let signal = self.process.wait().unwrap().signal();
        assert_eq!(signal, Some(9));
        let (folder, empty) = (tempfile::tempdir().unwrap(), &mut self.folder);
        std::mem::replace(empty, folder)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other process; it ends with the test that started it.
#[tokio::test]
#[ignore = "the tests of this module run it as a process of its own"]
async fn serves_as_a_process_of_its_own() {
    let folder = std::env::var(FOLDER).expect("started by another test");
    let folder = Path::new(&folder);
    let mut node = Node::lead_in(folder, ours()).await.unwrap();
    let worker = node.worker_in(folder, 128 << 20);
    node.start_worker(worker).await.unwrap();
    std::fs::write(folder.join("address.part"), node.coordinator_at().to_string()).unwrap();
    std::fs::rename(folder.join("address.part"), folder.join("address")).unwrap();
    let ended = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
    ended.await.unwrap().unwrap();
    node.shutdown().await;
}

/// Puts and gets until the worker has polled for them, 10 s at most. Several together first: without optimisation calls that come
/// one after the other may come too slowly for it to begin.
async fn use_ring(beside: &Beside, nodes: &Nodes) {
    let before = beside.polled().unwrap_or_default();
    let began = Instant::now();
    while beside.polled().unwrap_or_default() < before + Duration::from_millis(1) {
        assert!(began.elapsed() < Duration::from_secs(10), "no small call goes by the ring");
        let together = (0..16).map(|number| nodes.get(if number == 0 { "/tmp/small" } else { "/tmp/none" }));
        drop(futures::future::join_all(together).await);
        for number in 0..100u32 {
            let value = Bytes::copy_from_slice(&number.to_le_bytes());
            nodes.put("/tmp/small", value.clone()).await.unwrap();
            assert_eq!(nodes.get("/tmp/small").await.unwrap(), value);
        }
    }
}

#[tokio::test]
async fn a_ring_conforms() {
    let beside = Beside::start();
    let (client, other) = (beside.client(|_| {}).await, beside.client(|_| {}).await);
    conforms_with(&client, &other, None).await;
    use_ring(&beside, &client.nodes()).await;
    let nodes = other.nodes();
    for len in [0, 1, 4096, 4097, 16 << 10, (16 << 10) + 1, 20 << 10, 1 << 20, 3 << 20] {
        let value = Bytes::from(crate::cluster::bytes(len as u64, len));
        nodes.put("/tmp/value", value.clone()).await.unwrap();
        assert!(nodes.get("/tmp/value").await.unwrap() == value, "{len}");
    }
    let names: Vec<String> = (0..200).map(|name| name.to_string()).collect();
    nodes.create("/tmp/many", CreateOptions::new(NodeType::Table)).await.unwrap();
    for together in [1, 16, 64, 200] {
        let names: Vec<&str> = names[..together].iter().map(String::as_str).collect();
        let values: Vec<_> = names.iter().map(|name| (*name, Bytes::from(vec![together as u8; 1000]))).collect();
        assert!(nodes.put_many("/tmp/many", &values).await.unwrap().iter().all(Result::is_ok));
        let got = nodes.get_many("/tmp/many", &names).await.unwrap();
        assert!(got.into_iter().all(|value| value.unwrap() == vec![together as u8; 1000]));
    }
}

#[tokio::test]
async fn turned_off_there_is_no_ring() {
    let beside = Beside::start();
    for turned_off in
        [|settings: &mut ClientSettings| settings.ring = false, |settings: &mut ClientSettings| settings.in_place = false]
    {
        let nodes = beside.client(turned_off).await.nodes();
        for _ in 0..200 {
            nodes.put("/tmp/k", "v").await.unwrap();
        }
    }
    assert_eq!(beside.polled(), None);
}

#[tokio::test]
async fn calls_with_pauses_between_them_and_idle_clients_cost_no_polling() {
    let beside = Beside::start();
    let nodes = beside.client(|_| {}).await.nodes();
    use_ring(&beside, &nodes).await;
    // What it polls after the last call is over.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = beside.polled().unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(beside.polled().unwrap() - before < Duration::from_millis(1), "idle");
    let before = beside.polled().unwrap();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        nodes.put("/tmp/k", "v").await.unwrap();
    }
    let polled = beside.polled().unwrap() - before;
    assert!(polled < Duration::from_millis(5), "{polled:?} for 100 calls with pauses");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_killed_fails_calls_at_once() {
    let beside = Beside::start();
    let nodes = beside.client(|_| {}).await.nodes();
    use_ring(&beside, &nodes).await;
    let calling = tokio::spawn(async move {
        loop {
            match nodes.delete("/tmp/none", false).await {
                Err(error) if error.kind == NodeErrorKind::NotFound => {}
                ended => return ended.unwrap_err(),
            }
        }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _folder = beside.kill();
    let error = tokio::time::timeout(Duration::from_secs(5), calling).await.expect("nothing hangs").unwrap();
    // It may be done, and is not made again: of a put it would be asked what became of it for as long as calls are tried.
    assert_eq!(error.kind, NodeErrorKind::DataLost, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_worker_is_waited_for_and_goes_on() {
    let beside = Beside::start();
    let nodes = beside.client(|_| {}).await.nodes();
    use_ring(&beside, &nodes).await;
    let process = rustix::process::Pid::from_child(&beside.process);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    // A thread that runs stops a moment later.
    let began = Instant::now();
    while !beside.is_stopped() {
        assert!(began.elapsed() < Duration::from_secs(5), "it does not stop");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let call = tokio::spawn({
        let nodes = nodes.clone();
        async move { nodes.put("/tmp/k", "after").await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!call.is_finished(), "{:?}", call.await);
    rustix::process::kill_process(process, rustix::process::Signal::CONT).unwrap();
    tokio::time::timeout(Duration::from_secs(5), call).await.expect("it goes on").unwrap().unwrap();
    assert_eq!(nodes.get("/tmp/k").await.unwrap(), "after");
}
