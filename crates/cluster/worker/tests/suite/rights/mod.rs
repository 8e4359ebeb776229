//! The table of rights, on the ports: every credential at every request of the coordinator's and the worker's protocols. A request
//! without a row does not compile.

mod blocks;
mod counts;
mod orders;
mod table;
mod takes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_coordinator::CoordinatorSettings;
use forebay_metadata::Memory;
use forebay_node::Node;
use forebay_nodes::{DirId, NodeError, NodeErrorKind, ROOT};
use forebay_protocol::*;
use forebay_transport::{Address, Admission, Connection, Credential, Security, random_secret, unix_now};
use forebay_types::{
    ErrorKind, Grant, Key, MountId, MountName, MountOptions, OperationId, Role, Scope, SegmentId, Standing, TokenInfo,
};
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

use crate::bed::{start_worker, until};
use table::*;
use takes::*;

/// A coordinator and a worker, and a credential of each kind.
struct Cluster {
    node: Node,
    worker: Arc<Worker>,
    credentials: BTreeMap<&'static str, Credential>,
    _kept: (TempDir, TempDir, Memory),
}

impl Cluster {
    async fn start() -> Self {
        let (folder, lake) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let owner = Credential::owner(&random_secret().unwrap()).unwrap();
        let member = Credential::member(&random_secret().unwrap()).unwrap();
        let security = |shows: &Credential| Security {
            shows: Some(shows.clone()),
            admits: Arc::new(Admission::of([&owner, &member])),
            tls: None,
            ..Security::default()
        };
        // There the first mount is `LAKE`.
        let memory = Memory::new();
        let coordinator = Node::coordinator_in(folder.path(), security(&owner));
        let mut node = Node::lead(CoordinatorSettings { metadata_url: memory.url().to_string(), ..coordinator }).await.unwrap();
        let settings =
            WorkerSettings { security: security(&member), unix_socket: None, ..node.worker_in(folder.path(), 64 << 20) };
        let worker = Arc::clone(node.start_worker(settings).await.unwrap());
        let control = Connection::connect(node.coordinator_at(), &Security::holder(owner.clone())).await.unwrap();
        for mount in ["lake", "other"] {
            let path = lake.path().join(mount);
            std::fs::create_dir(&path).unwrap();
            let (url, options) = (format!("file://{}", path.display()), MountOptions::default());
            let added = ask(&control, AdminRequest::MountAdd { name: name(mount), url, options }).await;
            assert!(matches!(added, ControlReply::Mount(_)), "{added:?}");
        }
        let mut cluster = Self { node, worker, credentials: BTreeMap::new(), _kept: (folder, lake, memory) };
        cluster.credentials.insert("owner", owner);
        cluster.credentials.insert("member", member);
        let only =
            |mounts: &[&str], temporary| Scope::Only { mounts: mounts.iter().map(|mount| name(mount)).collect(), temporary };
        let tokens = [
            ("admin", Role::Admin, Scope::All),
            ("write", Role::Write, Scope::All),
            ("read", Role::Read, Scope::All),
            ("admin lake", Role::Admin, only(&["lake", "gone"], false)),
            ("write lake", Role::Write, only(&["lake"], false)),
            ("read lake", Role::Read, only(&["lake"], false)),
            ("write other", Role::Write, only(&["other"], false)),
            ("read tmp", Role::Read, only(&[], true)),
            ("expired", Role::Admin, Scope::All),
        ];
        for (what, role, scope) in tokens {
            let expires = (what == "expired").then(|| unix_now() - 1);
            let token = add_token(&control, &what.replace(' ', "-"), Grant { role, scope, expires }).await;
            cluster.credentials.insert(what, token);
        }
        // The worker learns of the last one with the others.
        cluster.admits("expired").await;
        cluster
    }

    /// Waits until the worker has heard of a credential.
    async fn admits(&self, credential: &str) {
        until("the worker hears of it", async || self.connect(&self.worker.address(), credential).await.is_ok()).await;
    }

    async fn connect(&self, address: &Address, credential: &str) -> forebay_types::Result<Connection> {
        Connection::connect(address, &Security::holder(self.credentials[credential].clone())).await
    }
}

async fn add_token(control: &Connection, name: &str, grant: Grant) -> Credential {
    let secret = random_secret().unwrap();
    let keys = Credential::owner(&secret).unwrap().keys();
    match ask(control, AdminRequest::TokenAdd { name: name.into(), grant, keys }).await {
        ControlReply::Tokens(tokens) => token_of(&tokens[0], &secret),
        other => panic!("{other:?}"),
    }
}

fn token_of(info: &TokenInfo, secret: &str) -> Credential {
    Credential::token(&format!("fb.{}.{secret}", info.id)).unwrap()
}

async fn ask(connection: &Connection, call: impl Into<ControlCall>) -> ControlReply {
    decode(&connection.call(encode(&call.into()), Vec::new()).await.unwrap().meta).unwrap()
}

/// Whether an answer is that the caller may not, and not some other refusal.
fn is_refused(meta: &[u8]) -> bool {
    let says =
        |message: &str| message.contains("that takes ") || message.contains("has expired") || message.contains("was taken away");
    // Failures of both planes have the same bytes.
    let failed = matches!(decode(meta), Ok(DataReply::Failed { kind: ErrorKind::Denied, message }) if says(&message));
    let denied = |error: &NodeError| error.kind == NodeErrorKind::Denied && says(&error.message);
    failed || matches!(NodeReply::decode(meta), Ok(NodeReply::Failed(error)) if denied(&error))
}

/// Every cell of a table: what it takes is what it gets.
async fn check(cluster: &Cluster, address: &Address, rows: Vec<(String, Takes, Bytes)>) {
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for credential in CREDENTIALS {
        let connection = cluster.connect(address, credential).await.unwrap();
        for (request, takes, message) in &rows {
            let answer = tokio::time::timeout(Duration::from_secs(20), connection.call(message.clone(), vec![Bytes::new()]));
            let refused = is_refused(&answer.await.expect("an answer").unwrap().meta);
            cells += 1;
            if refused == has(credential, *takes) {
                wrong.push(format!("{credential} at {request}: {}", if refused { "refused" } else { "let through" }));
            }
        }
    }
    assert_eq!(cells, rows.len() * CREDENTIALS.len());
    assert!(wrong.is_empty(), "{} of {cells} verdicts: {wrong:#?}", wrong.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_coordinator_answers_who_may_ask() {
    let cluster = Cluster::start().await;
    let row = |call: ControlCall, takes| (format!("{call:?}"), takes, encode(&call));
    let mut rows: Vec<_> =
        client_requests().into_iter().map(|request| row(request.clone().into(), of_client(&request))).collect();
    rows.extend(admin_requests().into_iter().map(|request| row(request.clone().into(), of_administrator(&request))));
    rows.extend(member_requests().into_iter().map(|request| row(request.into(), Takes::Serving)));
    check(&cluster, cluster.node.coordinator_at(), rows).await;
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_answers_who_may_ask() {
    let cluster = Cluster::start().await;
    let mut rows: Vec<_> =
        data_requests().into_iter().map(|request| (format!("{request:?}"), of_data(&request), encode(&request))).collect();
    rows.extend(node_ops().into_iter().map(|op| {
        let takes = of_node(&op);
        let call = NodeCall { from: ROOT, moves: 0, path: "k", op, number: None };
        (format!("{call:?}"), takes, call.encode())
    }));
    rows.extend(peer_ops().into_iter().map(|op| {
        let call = PeerCall { from: DirId { worker: 1, number: 999 }, path: "", op };
        (format!("{call:?}"), Takes::Serving, call.encode())
    }));
    for request in peer_requests() {
        rows.push((format!("{request:?}"), Takes::Serving, request.encode()));
    }
    let address = cluster.worker.address();
    check(&cluster, &address, rows).await;
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_write_temporary_data_is_told_so_in_words_of_his_version() {
    let cluster = Cluster::start().await;
    for (version, kind) in [(8, NodeErrorKind::Invalid), (9, NodeErrorKind::Denied)] {
        let security = Security::holder(cluster.credentials["read tmp"].clone()).speaking(version);
        let connection = Connection::connect(&cluster.worker.address(), &security).await.unwrap();
        let put = NodeCall { from: ROOT, moves: 0, path: "k", op: NodeOp::Put { value: Raw(b"v") }, number: None };
        let answer = connection.call(put.encode(), Vec::new()).await.unwrap();
        let Ok(NodeReply::Failed(error)) = NodeReply::decode(&answer.meta) else { panic!("it is refused") };
        assert_eq!(error.kind, kind, "{version}: {error}");
        assert!(error.message.contains("that takes "), "{error}");
    }
    cluster.worker.shutdown().await;
}

/// Nothing answers a notice: what it does is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_takes_notice_of_who_may_ask_and_of_nobody_else() {
    const PATIENCE: Duration = Duration::from_millis(200);
    let cluster = Cluster::start().await;
    let owner = cluster.connect(&cluster.worker.address(), "owner").await.unwrap();
    let put = DataRequest::Put { mount: LAKE, key: key(), condition: PutCondition::Any };
    let stored = owner.call(encode(&put), vec![Bytes::from(vec![7; 10_000])]).await.unwrap();
    let Ok(DataReply::Info(info)) = decode(&stored.meta) else { panic!("nothing written") };
    for (number, credential) in (100..).zip(CREDENTIALS) {
        let operation = OperationId(number);
        let version = info.version.clone();
        let (ranges, standing) = (vec![(0, 10_000)], Standing::default());
        let hold = DataRequest::Prefetch { operation, version, ranges, keep: false, urgent: true, hold_ms: 60_000, standing };
        let held = owner.call(encode(&hold), Vec::new()).await.unwrap();
        assert!(matches!(decode(&held.meta), Ok(DataReply::Fetched { .. })));
        until("it is held", async || cluster.worker.report().dram.2 > 0).await;
        let connection = cluster.connect(&cluster.worker.address(), credential).await.unwrap();
        let before = cluster.worker.report().reads;
        let counts = vec![InPlaceCount { operation, segment: SegmentId(1), reads: 3, bytes: 3 }];
        let notices = of_every_kind(vec![DataNotice::Unpin { pins: vec![], counts }, DataNotice::Ended { operation }]);
        for notice in notices {
            let done = || match &notice {
                DataNotice::Unpin { .. } => cluster.worker.report().reads == before + 3,
                DataNotice::Ended { .. } => cluster.worker.report().dram.2 == 0,
            };
            connection.notify(encode(&notice)).unwrap();
            match has(credential, of_notice(&notice)) {
                true => until("it is taken notice of", async || done()).await,
                false => {
                    tokio::time::sleep(PATIENCE).await;
                    assert!(!done(), "{credential} at {notice:?}");
                }
            }
        }
        owner.notify(encode(&DataNotice::Ended { operation })).unwrap();
        until("nothing is held", async || cluster.worker.report().dram.2 == 0).await;
    }
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_shows_nothing_or_something_else_is_not_let_in() {
    let cluster = Cluster::start().await;
    let wrong = [
        Security { shows: None, ..Security::default() },
        Security::default(),
        Security::owner("a guess of somebody").unwrap(),
        Security::holder(Credential::member("a guess of somebody").unwrap()),
        Security::holder(Credential::token("a guess of somebody").unwrap()),
        Security::holder(Credential::token("fb.write.1.a-guess-of-somebody").unwrap()),
        Security::holder(Credential::token("fb.none.1.a-guess-of-somebody").unwrap()),
    ];
    for address in [cluster.node.coordinator_at().clone(), cluster.worker.address()] {
        for security in &wrong {
            let error = Connection::connect(&address, security).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        }
    }
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_one_mount_sees_no_other() {
    let cluster = Cluster::start().await;
    let control = cluster.connect(cluster.node.coordinator_at(), "read lake").await.unwrap();
    let ControlReply::View(view) = ask(&control, ControlRequest::View { have: 0 }).await else { panic!("a view") };
    assert_eq!(view.mounts.iter().map(|mount| mount.name.as_str()).collect::<Vec<_>>(), ["lake"]);
    assert_eq!(view.workers.len(), 1);
    let ControlReply::Status(status) = ask(&control, ControlRequest::Status).await else { panic!("a status") };
    assert_eq!(status.mounts.len(), 1);
    let ControlReply::Caller(caller) = ask(&control, ControlRequest::WhoAmI).await else { panic!("a caller") };
    assert_eq!(caller.name, "token read-lake.1");
    let storage_of = async |who: &str| {
        let data = cluster.connect(&cluster.worker.address(), who).await.unwrap();
        let reply: DataReply = decode(&data.call(encode(&DataRequest::Report), Vec::new()).await.unwrap().meta).unwrap();
        let DataReply::Report(report) = reply else { panic!("{reply:?}") };
        report.storage.len()
    };
    until("the worker knows both mounts", async || storage_of("owner").await == 2).await;
    assert_eq!(storage_of("read lake").await, 1, "by its worker neither");
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_one_mount_is_told_of_no_reads_of_others() {
    let cluster = Cluster::start().await;
    let owner = cluster.connect(&cluster.worker.address(), "owner").await.unwrap();
    for (mount, bytes) in [(LAKE, 1_000u32), (MountId(LAKE.0 + 1), 30_000)] {
        let put = DataRequest::Put { mount, key: key(), condition: PutCondition::Any };
        let stored = owner.call(encode(&put), vec![Bytes::from(vec![7; bytes as usize])]).await.unwrap();
        let Ok(DataReply::Info(info)) = decode(&stored.meta) else { panic!("nothing written") };
        for _ in 0..2 {
            let (operation, version) = (OperationId(1), info.version.clone());
            let read = DataRequest::Read { operation, version, start: 0, len: bytes, in_place: false };
            assert_eq!(owner.call(encode(&read), Vec::new()).await.unwrap().payload.len(), bytes as usize);
        }
    }
    let told = async |who: &str| {
        let data = cluster.connect(&cluster.worker.address(), who).await.unwrap();
        let reply: DataReply = decode(&data.call(encode(&DataRequest::Report), Vec::new()).await.unwrap().meta).unwrap();
        let DataReply::Report(report) = reply else { panic!("{reply:?}") };
        (report.reads, report.bytes_served, report.mount_reads.len())
    };
    assert_eq!(told("owner").await, (4, 62_000, 2));
    assert_eq!(told("read lake").await, (2, 2_000, 1));
    assert_eq!(told("write other").await, (2, 60_000, 1));
    assert_eq!(told("read tmp").await, (0, 0, 0));
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_of_a_mount_holds_as_soon_as_the_mount_is_made() {
    let mut cluster = Cluster::start().await;
    let control = cluster.connect(cluster.node.coordinator_at(), "owner").await.unwrap();
    let names: Vec<MountName> = (0..5).map(|number| name(&format!("new-{number}"))).collect();
    let scope = Scope::Only { mounts: names.clone(), temporary: false };
    let token = add_token(&control, "new", Grant { role: Role::Read, scope, expires: None }).await;
    cluster.credentials.insert("new", token);
    cluster.admits("new").await;
    let data = cluster.connect(&cluster.worker.address(), "new").await.unwrap();
    let folder = TempDir::new().unwrap();
    for name in names {
        let (url, options) = (format!("file://{}", folder.path().display()), MountOptions::default());
        let ControlReply::Mount(mount) = ask(&control, AdminRequest::MountAdd { name, url, options }).await else {
            panic!("a mount")
        };
        let list = DataRequest::List { mount: mount.id, prefix: Key::new("").unwrap(), folders: true, after: None, limit: 10 };
        let reply: DataReply = decode(&data.call(encode(&list), Vec::new()).await.unwrap().meta).unwrap();
        assert!(matches!(reply, DataReply::Listed(_)), "{reply:?}");
    }
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_rotated_and_taken_away() {
    let cluster = Cluster::start().await;
    let owner = cluster.connect(cluster.node.coordinator_at(), "owner").await.unwrap();
    let first = cluster.connect(&cluster.worker.address(), "read").await.unwrap();
    let second = add_token(&owner, "read", Grant::everywhere(Role::Read)).await;
    assert_eq!(second.id(), "read.2");
    // A third at once would be one that nobody uses.
    let keys = second.keys();
    let third = ask(&owner, AdminRequest::TokenAdd { name: "read".into(), grant: Grant::everywhere(Role::Read), keys }).await;
    assert!(matches!(third, ControlReply::Failed { kind: ErrorKind::Conflict, .. }), "{third:?}");
    let queue = |connection: &Connection| {
        let (connection, message) = (connection.clone(), encode(&DataRequest::Queue));
        async move { is_refused(&connection.call(message, Vec::new()).await.unwrap().meta) }
    };
    assert!(!queue(&first).await);
    let removed = ask(&owner, AdminRequest::TokenRemove { name: "read.1".into() }).await;
    assert!(matches!(&removed, ControlReply::Tokens(tokens) if tokens.len() == 1), "{removed:?}");
    // On the connection that stands, and for a new one, within a heartbeat.
    until("it is refused", async || queue(&first).await).await;
    assert!(cluster.connect(&cluster.worker.address(), "read").await.is_err());
    let next = Connection::connect(&cluster.worker.address(), &Security::holder(second)).await.unwrap();
    assert!(!queue(&next).await);
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_outlive_the_coordinator() {
    let folder = TempDir::new().unwrap();
    let start = || Node::lead_in(folder.path(), Security::default());
    let node = start().await.unwrap();
    let control = Connection::connect(node.coordinator_at(), &Security::default()).await.unwrap();
    let token = add_token(&control, "etl", Grant::everywhere(Role::Write)).await;
    node.shutdown().await;
    let node = start().await.unwrap();
    let control = Connection::connect(node.coordinator_at(), &Security::holder(token)).await.unwrap();
    assert!(matches!(ask(&control, ControlRequest::Status).await, ControlReply::Status(_)));
    let worker = start_worker(node.coordinator_at(), StoreSettings::new(folder.path().join("worker"), 64 << 20), None).await;
    worker.shutdown().await;
}
