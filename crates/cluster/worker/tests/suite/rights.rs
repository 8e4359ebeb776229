//! The table of rights, on the ports: every credential at every request of the coordinator's and the worker's protocols. A request
//! without a row does not compile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_nodes::{Affinity, BlockRef, Condition, DirId, NodeType, ROOT, StorageClass};
use forebay_protocol::*;
use forebay_transport::{Address, Admission, Connection, Credential, Security, random_secret, unix_now};
use forebay_types::{
    ErrorKind, FormId, Grant, Key, MountId, MountName, MountOptions, ObjectVersion, OperationId, PageRun, Role, Scope, SegmentId,
    TokenInfo, VersionTag, WorkerId,
};
use forebay_worker::{Worker, WorkerSettings};
use tempfile::TempDir;

use crate::bed::start_worker;

/// What a request takes, as people would say it. Written down apart from what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Any credential.
    Anything,
    /// Reading this mount.
    Reading,
    /// Writing it.
    Writing,
    /// Writing what the connection has begun.
    WritingOn,
    /// Writing everywhere.
    WritingAll,
    /// Reading everywhere.
    ReadingAll,
    /// Reading temporary data.
    ReadingTmp,
    /// Writing temporary data.
    WritingTmp,
    /// Administering this mount.
    Administering,
    /// Administering everywhere.
    AdministeringAll,
    /// Being a process of the cluster.
    Serving,
}

/// The credentials, by what they are for.
const CREDENTIALS: [&str; 11] =
    ["owner", "member", "admin", "write", "read", "write lake", "read lake", "admin lake", "write other", "read tmp", "expired"];

/// Whether a credential has what a request takes.
fn has(credential: &str, takes: Takes) -> bool {
    use Takes::*;
    match credential {
        "owner" => true,
        "member" => !matches!(takes, Administering | AdministeringAll),
        "admin" => takes != Serving,
        "write" => !matches!(takes, Administering | AdministeringAll | Serving),
        "read" => matches!(takes, Anything | Reading | ReadingAll | ReadingTmp),
        "admin lake" => matches!(takes, Anything | Reading | Writing | WritingOn | Administering),
        "write lake" => matches!(takes, Anything | Reading | Writing | WritingOn),
        "read lake" => matches!(takes, Anything | Reading),
        "write other" => matches!(takes, Anything | WritingOn),
        "read tmp" => matches!(takes, Anything | ReadingTmp),
        "expired" => false,
        other => unreachable!("{other}"),
    }
}

const LAKE: MountId = MountId(1);

fn key() -> Key {
    Key::new("k").unwrap()
}

fn version() -> ObjectVersion {
    ObjectVersion { mount: LAKE, key: key(), tag: VersionTag::etag("\"none\""), size: 10 }
}

fn of_client(request: &ControlRequest) -> Takes {
    match request {
        ControlRequest::View { .. }
        | ControlRequest::Tables
        | ControlRequest::Status
        | ControlRequest::Routes { .. }
        | ControlRequest::Placement { .. }
        | ControlRequest::Scheduler
        | ControlRequest::WhoAmI => Takes::Anything,
        ControlRequest::Budget { .. } => Takes::Reading,
        ControlRequest::Unheard { .. } => Takes::Writing,
        ControlRequest::TableAdd { .. } | ControlRequest::TableRemove { .. } => Takes::WritingAll,
    }
}

fn client_requests() -> Vec<ControlRequest> {
    let table = TableDefinition { name: "t".into(), statement: "s".into() };
    vec![
        ControlRequest::View { have: 0 },
        ControlRequest::Tables,
        ControlRequest::Status,
        ControlRequest::Routes { have: 0 },
        ControlRequest::Placement { limit: 1 },
        ControlRequest::Scheduler,
        ControlRequest::WhoAmI,
        ControlRequest::Budget { client: 1, mount: LAKE },
        ControlRequest::Unheard { mount: LAKE, worker: WorkerId(1), number: None },
        ControlRequest::TableAdd { table, replace: true },
        ControlRequest::TableRemove { name: "none".into() },
    ]
}

fn of_administrator(request: &AdminRequest) -> Takes {
    match request {
        AdminRequest::MountSet { .. }
        | AdminRequest::MountRemove { .. }
        | AdminRequest::PinAdd { .. }
        | AdminRequest::PinRemove { .. } => Takes::Administering,
        AdminRequest::MountAdd { .. }
        | AdminRequest::Drain { .. }
        | AdminRequest::TokenAdd { .. }
        | AdminRequest::TokenRemove { .. }
        | AdminRequest::Tokens => Takes::AdministeringAll,
    }
}

/// None that does anything when it is let through: the next one is to find things as they were.
fn admin_requests() -> Vec<AdminRequest> {
    let keys = Credential::owner("a secret of these tests").unwrap().keys();
    let nothing = Grant { scope: Scope::Only { mounts: vec![], temporary: false }, ..Grant::everywhere(Role::Read) };
    vec![
        AdminRequest::MountAdd { name: name("lake"), url: "file:///none".into(), options: MountOptions::default() },
        AdminRequest::MountSet {
            name: name("lake"),
            options: MountOptions { endpoint: Some("none".into()), ..MountOptions::default() },
        },
        AdminRequest::PinAdd { path: "/lake/x".parse().unwrap() },
        AdminRequest::PinRemove { path: "/lake/none".parse().unwrap() },
        AdminRequest::Drain { worker: WorkerId(1), draining: true },
        AdminRequest::TokenAdd { name: "none".into(), grant: nothing, keys },
        AdminRequest::TokenRemove { name: "none".into() },
        AdminRequest::Tokens,
    ]
}

fn member_requests() -> Vec<MemberRequest> {
    vec![
        MemberRequest::Leave(WorkerId(1)),
        MemberRequest::News(WorkerId(1)),
        MemberRequest::PassRoot { from: WorkerId(1), to: WorkerId(2) },
        MemberRequest::Scheduler { serves: "127.0.0.1:1".into() },
        MemberRequest::Credentials,
        MemberRequest::Heartbeat(Heartbeat {
            worker: WorkerId(1),
            have: 0,
            demand: vec![],
            report: WorkerReport::default(),
            window: None,
            ended: vec![],
            fresh: vec![],
            heard: None,
        }),
    ]
}

fn of_data(request: &DataRequest) -> Takes {
    match request {
        DataRequest::Attach => Takes::ReadingAll,
        DataRequest::Open { .. }
        | DataRequest::List { .. }
        | DataRequest::Read { .. }
        | DataRequest::ReadLatest { .. }
        | DataRequest::ReadObject { .. }
        | DataRequest::ReadCell { .. }
        | DataRequest::Stat { .. }
        | DataRequest::Refresh { .. }
        | DataRequest::AskShard { .. }
        | DataRequest::GetRecords(_)
        | DataRequest::Shards { .. }
        | DataRequest::Prefetch { keep: false, .. } => Takes::Reading,
        DataRequest::Prefetch { keep: true, .. } => Takes::Administering,
        DataRequest::Put { .. }
        | DataRequest::PutBegin { .. }
        | DataRequest::Delete { .. }
        | DataRequest::Changed { .. }
        | DataRequest::ChangeShard { .. }
        | DataRequest::MergeShard { .. } => Takes::Writing,
        DataRequest::PutPart { .. } | DataRequest::PutCommit { .. } | DataRequest::PutAbort { .. } => Takes::WritingOn,
        DataRequest::Free { .. } | DataRequest::Keep { .. } => Takes::AdministeringAll,
        DataRequest::Held { .. }
        | DataRequest::Present { .. }
        | DataRequest::Departed { .. }
        | DataRequest::Report
        | DataRequest::Queue
        | DataRequest::Ring => Takes::Anything,
    }
}

fn dataset() -> DatasetId {
    DatasetId { mount: LAKE, folder: Key::new("t.shards").unwrap(), manifest: 1, tag: 1 }
}

fn data_requests() -> Vec<DataRequest> {
    let (operation, mount, range, in_place) = (OperationId(1), LAKE, RangeSpec::From { start: 0 }, false);
    let prefetch =
        |keep| DataRequest::Prefetch { operation, version: version(), ranges: vec![(0, 10)], keep, urgent: false, hold_ms: 10 };
    let segments = || vec![SegmentId(1)];
    vec![
        DataRequest::Attach,
        DataRequest::Open { mount, key: key() },
        DataRequest::List { mount, prefix: Key::new("").unwrap(), folders: false, after: None, limit: 1 },
        DataRequest::Read { operation, version: version(), start: 0, len: 1, in_place },
        DataRequest::ReadLatest { operation, mount, key: key(), range, in_place },
        DataRequest::ReadObject { operation, mount, key: key(), range, first: 1, complete: false, in_place },
        DataRequest::ReadCell { operation, version: version(), form: None, row_group: 0, column: 0, in_place },
        DataRequest::Stat { mount, key: key(), complete: false },
        DataRequest::Refresh { mount, prefix: key() },
        DataRequest::AskShard { dataset: dataset(), shard: 0, within_ms: 100 },
        DataRequest::GetRecords(WantedRecords {
            dataset: dataset(),
            shard: 0,
            within_ms: 100,
            attributes: vec![],
            versioned: false,
        }),
        DataRequest::Shards { dataset: dataset() },
        DataRequest::ChangeShard { dataset: dataset(), shard: 0, call: 1, within_ms: 100 },
        DataRequest::MergeShard { dataset: dataset(), shard: 0, within_ms: 100 },
        prefetch(false),
        prefetch(true),
        DataRequest::Put { mount, key: key(), condition: PutCondition::Any },
        DataRequest::PutBegin { mount, key: key() },
        DataRequest::Delete { mount, key: key() },
        DataRequest::Changed { mount, key: key(), info: None },
        DataRequest::PutPart { upload: 999, part: 0 },
        DataRequest::PutCommit { upload: 999, parts: 0, condition: PutCondition::Any },
        DataRequest::PutAbort { upload: 999 },
        DataRequest::Free { segments: segments() },
        DataRequest::Keep { segments: segments(), keep: true },
        DataRequest::Held { segments: segments() },
        DataRequest::Present { runs: vec![(SegmentId(1), PageRun { start: 0, len: 1 })] },
        DataRequest::Departed { since: 0, within_ms: 1 },
        DataRequest::Report,
        DataRequest::Queue,
        DataRequest::Ring,
    ]
}

fn of_node(op: &NodeOp<'_>) -> Takes {
    match op {
        NodeOp::Get
        | NodeOp::GetMany { .. }
        | NodeOp::Stat
        | NodeOp::List { .. }
        | NodeOp::Read { .. }
        | NodeOp::Extents { .. }
        | NodeOp::Parent
        | NodeOp::BlockRead { .. } => Takes::ReadingTmp,
        NodeOp::Put { .. }
        | NodeOp::PutMany { .. }
        | NodeOp::PutBlocks { .. }
        | NodeOp::Create { .. }
        | NodeOp::Append { .. }
        | NodeOp::AppendBlocks { .. }
        | NodeOp::Write { .. }
        | NodeOp::Delete { .. }
        | NodeOp::DeleteIf { .. }
        | NodeOp::Replace { .. }
        | NodeOp::Rename { .. }
        | NodeOp::OpenWriter { .. }
        | NodeOp::CloseWriter { .. }
        | NodeOp::Lease { .. }
        | NodeOp::BlockWrite { .. }
        | NodeOp::Prepare { descriptor: false, .. }
        | NodeOp::Written { .. } => Takes::WritingTmp,
        NodeOp::Prepare { descriptor: true, .. } => Takes::WritingAll,
    }
}

const BLOCK: BlockRef = BlockRef { worker: 1, number: 1, len: 1 };

fn node_ops() -> Vec<NodeOp<'static>> {
    vec![
        NodeOp::Get,
        NodeOp::GetMany { names: vec!["k"] },
        NodeOp::Stat,
        NodeOp::List { after: None, limit: 1 },
        NodeOp::Read { offset: 0, bytes: 1 },
        NodeOp::Extents { offset: 0, bytes: 1 },
        NodeOp::Parent,
        NodeOp::BlockRead { block: BLOCK, start: 0, bytes: 1 },
        NodeOp::Put { value: Raw(b"v") },
        NodeOp::PutMany { values: vec![("k", Raw(b"v"))] },
        NodeOp::PutBlocks { blocks: vec![] },
        NodeOp::Create { kind: NodeType::File, enumerable: true, class: None, location: None },
        NodeOp::Append { writer: 0, bytes: Raw(b"v") },
        NodeOp::AppendBlocks { writer: 0, blocks: vec![] },
        NodeOp::Write { writer: 0, offset: 0, bytes: Raw(b"v") },
        NodeOp::Delete { recursive: false },
        NodeOp::DeleteIf { condition: Condition::Absent },
        NodeOp::Replace { name: "j", condition: Condition::Absent },
        NodeOp::Rename { dir: ROOT, name: "j", inside: false },
        NodeOp::OpenWriter { writer: 7 },
        NodeOp::CloseWriter { writer: 7 },
        NodeOp::Lease { ttl_ms: None },
        NodeOp::BlockWrite { class: StorageClass::Dram },
        NodeOp::Prepare { bytes: 1, descriptor: false },
        NodeOp::Prepare { bytes: 1, descriptor: true },
        NodeOp::Written { pin: 999 },
    ]
}

/// What workers say to each other, which nobody else may: of a container that there is not.
fn peer_ops() -> Vec<PeerOp<'static>> {
    let none = DirId { worker: 1, number: 999 };
    let affinity = Affinity { class: StorageClass::Dram, location: forebay_nodes::Location::default() };
    vec![
        PeerOp::BlockFree { blocks: vec![] },
        PeerOp::BlockUnknown { blocks: vec![] },
        PeerOp::Adopt { kind: NodeType::Directory, affinity, parent: none },
        PeerOp::RemoveNodes { recursive: false },
        PeerOp::Reparent { parent: ROOT },
        PeerOp::Arrive { rename: 1, source: 1, name: "n", node: Raw(b"") },
        PeerOp::Settle { rename: 1, committed: false },
        PeerOp::Outcome { rename: 1 },
        PeerOp::Moved,
        PeerOp::Room,
        PeerOp::TakeOver { source: 1, carton: Raw(b"") },
        PeerOp::TakeOverNodes,
        PeerOp::TakeOverEnd,
        PeerOp::TakeOverDrop,
        PeerOp::TookOver { old: none, parent: none },
        PeerOp::Relink { old: none, new: none },
        PeerOp::BlocksOf { worker: 1, limit: 1 },
        PeerOp::BlocksMoved { moved: vec![] },
        PeerOp::Nameless { containers: vec![] },
        PeerOp::Missing { containers: vec![] },
        PeerOp::WayUp { outer: none },
    ]
}

fn name(name: &str) -> MountName {
    name.parse().unwrap()
}

/// A coordinator and a worker, and a credential of each kind.
struct Cluster {
    coordinator: Coordinator,
    worker: Worker,
    credentials: BTreeMap<&'static str, Credential>,
    _folders: (TempDir, TempDir),
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
        };
        let any = || Address::Tcp("127.0.0.1:0".into());
        let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let settings = CoordinatorSettings { security: security(&owner), ..CoordinatorSettings::new(any(), url) };
        let coordinator = Coordinator::start(settings).await.unwrap();
        let store = StoreSettings::new(folder.path().join("worker"), 64 << 20);
        let settings = WorkerSettings { security: security(&member), ..WorkerSettings::new(coordinator.address(), any(), store) };
        let worker = Worker::start(settings).await.unwrap();
        let control = Connection::connect(&coordinator.address(), &Security::holder(owner.clone())).await.unwrap();
        for mount in ["lake", "other"] {
            let path = lake.path().join(mount);
            std::fs::create_dir(&path).unwrap();
            let (url, options) = (format!("file://{}", path.display()), MountOptions::default());
            let added = ask(&control, AdminRequest::MountAdd { name: name(mount), url, options }).await;
            assert!(matches!(added, ControlReply::Mount(_)), "{added:?}");
        }
        let mut cluster = Self { coordinator, worker, credentials: BTreeMap::new(), _folders: (folder, lake) };
        cluster.credentials.insert("owner", owner);
        cluster.credentials.insert("member", member);
        let only =
            |mounts: &[&str], temporary| Scope::Only { mounts: mounts.iter().map(|mount| name(mount)).collect(), temporary };
        let tokens = [
            ("admin", Role::Admin, Scope::All),
            ("write", Role::Write, Scope::All),
            ("read", Role::Read, Scope::All),
            ("admin lake", Role::Admin, only(&["lake"], false)),
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
        for _ in 0..200 {
            if self.connect(&self.worker.address(), credential).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the worker does not hear of {credential}");
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
    failed || matches!(NodeReply::decode(meta), Ok(NodeReply::Failed(error)) if says(&error.message))
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
    let address = cluster.coordinator.address();
    check(&cluster, &address, rows).await;
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_answers_who_may_ask() {
    let cluster = Cluster::start().await;
    let mut rows: Vec<_> =
        data_requests().into_iter().map(|request| (format!("{request:?}"), of_data(&request), encode(&request))).collect();
    rows.extend(node_ops().into_iter().map(|op| {
        let takes = of_node(&op);
        let call = NodeCall { from: ROOT, moves: 0, path: "k", op };
        (format!("{call:?}"), takes, call.encode())
    }));
    rows.extend(peer_ops().into_iter().map(|op| {
        let call = PeerCall { from: DirId { worker: 1, number: 999 }, path: "", op };
        (format!("{call:?}"), Takes::Serving, call.encode())
    }));
    let requests = [
        PeerRequest::Copy { segment: SegmentId(1), start: 0, pages: 1 },
        PeerRequest::Form { form: FormId(1) },
        PeerRequest::Coming { mount: LAKE, key: key(), records: vec![1] },
        PeerRequest::Missed { asker: WorkerId(1), segment: SegmentId(1), start: 0, pages: 1 },
    ];
    for request in requests {
        rows.push((format!("{request:?}"), Takes::Serving, request.encode()));
    }
    let address = cluster.worker.address();
    check(&cluster, &address, rows).await;
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
    for address in [cluster.coordinator.address(), cluster.worker.address()] {
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
    let control = cluster.connect(&cluster.coordinator.address(), "read lake").await.unwrap();
    let ControlReply::View(view) = ask(&control, ControlRequest::View { have: 0 }).await else { panic!("a view") };
    assert_eq!(view.mounts.iter().map(|mount| mount.name.as_str()).collect::<Vec<_>>(), ["lake"]);
    assert_eq!(view.workers.len(), 1);
    let ControlReply::Status(status) = ask(&control, ControlRequest::Status).await else { panic!("a status") };
    assert_eq!(status.mounts.len(), 1);
    let ControlReply::Caller(caller) = ask(&control, ControlRequest::WhoAmI).await else { panic!("a caller") };
    assert_eq!(caller.name, "token read-lake.1");
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_of_a_mount_holds_as_soon_as_the_mount_is_made() {
    let mut cluster = Cluster::start().await;
    let control = cluster.connect(&cluster.coordinator.address(), "owner").await.unwrap();
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
    let owner = cluster.connect(&cluster.coordinator.address(), "owner").await.unwrap();
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
    for _ in 0..200 {
        if queue(&first).await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(queue(&first).await);
    assert!(cluster.connect(&cluster.worker.address(), "read").await.is_err());
    let next = Connection::connect(&cluster.worker.address(), &Security::holder(second)).await.unwrap();
    assert!(!queue(&next).await);
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_outlive_the_coordinator() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
    let start = || Coordinator::start(CoordinatorSettings::new(Address::Tcp("127.0.0.1:0".into()), url.clone()));
    let coordinator = start().await.unwrap();
    let control = Connection::connect(&coordinator.address(), &Security::default()).await.unwrap();
    let token = add_token(&control, "etl", Grant::everywhere(Role::Write)).await;
    coordinator.shutdown().await;
    let coordinator = start().await.unwrap();
    let control = Connection::connect(&coordinator.address(), &Security::holder(token)).await.unwrap();
    assert!(matches!(ask(&control, ControlRequest::Status).await, ControlReply::Status(_)));
    let worker = start_worker(&coordinator.address(), StoreSettings::new(folder.path().join("worker"), 64 << 20), None).await;
    worker.shutdown().await;
}
