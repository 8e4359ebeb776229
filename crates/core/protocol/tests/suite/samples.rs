//! One of every message.

use std::time::Duration;

use forebay_protocol::*;
use forebay_types::*;

pub fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

pub fn version() -> ObjectVersion {
    ObjectVersion { mount: MountId(7), key: key("a//b "), tag: VersionTag::etag("\"e1\""), size: 300 }
}

pub fn info() -> ObjectInfo {
    ObjectInfo { version: version(), modified_ms: -1 }
}

pub fn form() -> TextForm {
    let lines = CsvLines {
        header: true,
        delimiter: b';',
        quote: b'"',
        escape: Some(b'\\'),
        comment: None,
        terminator: None,
        truncated_rows: false,
    };
    TextForm { lines: TextLines::Csv(lines), schema: vec![1, 0] }
}

pub fn requests() -> Vec<DataRequest> {
    let (mount, operation, segment) = (MountId(7), OperationId(9), SegmentId::of(&version(), 0));
    vec![
        DataRequest::Attach,
        DataRequest::Open { mount, key: key("a//b ") },
        DataRequest::List { mount, prefix: key("p/"), folders: true, after: Some(key("p/m")), limit: 1000 },
        DataRequest::Read { operation, version: version(), start: 128, len: 16, in_place: true },
        DataRequest::ReadLatest { operation, mount, key: key("k"), range: RangeSpec::Suffix { len: 8 }, in_place: false },
        DataRequest::Prefetch {
            operation,
            version: version(),
            ranges: vec![(0, 4096), (1 << 40, u32::MAX)],
            keep: true,
            urgent: false,
            hold_ms: 60_000,
            standing: Standing::default(),
        },
        DataRequest::Put { mount, key: key("k"), condition: PutCondition::Any },
        DataRequest::PutBegin { mount, key: key("k") },
        DataRequest::PutPart { upload: 3, part: 0 },
        DataRequest::PutCommit { upload: 3, parts: 2, condition: PutCondition::Version(VersionTag::etag("\"e1\"")) },
        DataRequest::PutAbort { upload: 3 },
        DataRequest::Delete { mount, key: key("k") },
        DataRequest::Refresh { mount, prefix: key("") },
        DataRequest::Changed { mount, key: key("k"), info: Some(info()) },
        DataRequest::Free { segments: vec![segment] },
        DataRequest::Keep { segments: vec![segment, segment], keep: false },
        DataRequest::Held { segments: vec![] },
        DataRequest::Report,
        DataRequest::Stat { mount: MountId(1), key: key("a//b "), complete: true },
        DataRequest::ReadObject {
            operation: OperationId(1),
            mount: MountId(1),
            key: key("a"),
            range: RangeSpec::From { start: 0 },
            first: 4 << 20,
            complete: true,
            in_place: true,
        },
        DataRequest::Queue,
        DataRequest::Present { runs: vec![(segment, PageRun::new(3, 300))] },
        DataRequest::ReadCell {
            operation: OperationId(9),
            version: version(),
            form: Some(form().into()),
            row_group: 3,
            column: 200,
            in_place: true,
        },
        DataRequest::Ring,
        DataRequest::AskShard { dataset: dataset(), shard: 3, within_ms: 30_000 },
        DataRequest::Shards { dataset: dataset() },
        DataRequest::MergeShard { dataset: dataset(), shard: 3, within_ms: 30_000 },
        DataRequest::ChangeShard { dataset: dataset(), shard: 3, call: u128::MAX, within_ms: 30_000 },
        DataRequest::Departed { since: 1 << 40, within_ms: 30_000 },
        DataRequest::GetRecords(WantedRecords {
            dataset: dataset(),
            shard: 3,
            within_ms: 30_000,
            attributes: vec![0, 300],
            versioned: true,
        }),
        DataRequest::SelectRows(wanted_rows()),
        DataRequest::Accesses(WantedAccesses { since: 1 << 40, one_in: 300, within_ms: 1_000 }),
    ]
}

/// Of two columns those rows whose first is 5 or less and whose second is one of two texts.
pub fn wanted_rows() -> WantedRows {
    let few = RowTest::Compare { column: 0, by: Comparison::AtMost, value: vec![5, 0] };
    let tests = vec![few, RowTest::OneOf { column: 1, values: vec![b"a".to_vec(), vec![]], negated: false }, RowTest::And];
    let (operation, form, limit) = (OperationId(9), None, Some(300));
    let (row_group, columns, bytes_max, raw_bytes) = (3, vec![0, 200], 1 << 20, 2 << 20);
    WantedRows { operation, version: version(), form, row_group, columns, tests, limit, bytes_max, raw_bytes }
}

pub fn replies() -> Vec<DataReply> {
    let in_place = Some((5, Span { offset: 1 << 30, len: 4096 }));
    let hint = Hint { queue: 300, routes: (2 << 32) + 1 };
    vec![
        DataReply::Failed { kind: ErrorKind::Conflict, message: "/lake/a//b : another version".into() },
        DataReply::Attached { arena_bytes: 1 << 40 },
        DataReply::Info(info()),
        DataReply::Listed(ListPage { objects: vec![info()], folders: vec![key("p/")], next: Some(key("p/z")) }),
        DataReply::Read { in_place, hint },
        DataReply::ReadLatest { info: info(), start: 1, len: 2, in_place: None, hint },
        DataReply::Fetched { bytes: 123 },
        DataReply::Upload { upload: 3, part_bytes: 8 << 20 },
        DataReply::Done,
        DataReply::Freed { bytes: 0 },
        DataReply::Held(vec![Held { dram_bytes: 1, disk_bytes: 2, bytes: 3, keep: true }]),
        DataReply::Report(Box::new(report())),
        DataReply::Stat(info(), attributes()),
        DataReply::ReadObject { info: info(), attributes: attributes(), start: 1, len: 2, in_place: None, hint, hit: true },
        DataReply::Copied { runs: vec![(0, 3), (1000, 24)], sums: vec![7; 27] },
        DataReply::Queue(hint),
        DataReply::Present(vec![true, false]),
        DataReply::NoCell { hint },
        DataReply::Form(Some(form().into())),
        DataReply::Heard { view: (2 << 32) + 6 },
        DataReply::Shard { queue: 300 },
        DataReply::Shards(vec![shard_state()]),
        DataReply::ShardChanged { version: 1 << 40 },
        DataReply::Shared(Shared { runs: vec![(0, 3)], sums: vec![7; 3], holds: true, elsewhere: Some(WorkerId(1)) }),
        DataReply::Departed(Departed {
            next: 1 << 40,
            lost: true,
            runs: vec![(SegmentId::of(&version(), 0), PageRun::new(3, 300))],
            came: Vec::new(),
        }),
        DataReply::ShardHeld(Some(ShardHeld { bytes: 1 << 40, queue: 3 })),
        DataReply::Selected(SelectedRows { rows: 300, fits: true, hint }),
        DataReply::Accesses(Accesses { next: 1 << 40, lost: 300, made: vec![] }),
        DataReply::Busy { after_ms: 300, message: "/lake: later".into() },
    ]
}

fn dataset() -> DatasetId {
    DatasetId { mount: MountId(7), folder: key("orders.shards"), manifest: 2, tag: 9 }
}

fn shard_state() -> ShardState {
    ShardState {
        shard: 3,
        bytes: 1 << 30,
        size_milli: 900,
        is_changing: true,
        answered: 5,
        queue: 2,
        why: "nothing to change".into(),
    }
}

pub fn notices() -> Vec<DataNotice> {
    let count = InPlaceCount { operation: OperationId(9), segment: SegmentId::of(&version(), 0), reads: 4, bytes: 5 };
    vec![DataNotice::Unpin { pins: vec![1, u64::MAX], counts: vec![count] }, DataNotice::Ended { operation: OperationId(9) }]
}

pub fn report() -> WorkerReport {
    let counters = StorageCounters { gets: 1, bytes_in: 2, socket_bytes_in: 3, ..StorageCounters::default() };
    WorkerReport {
        dram: (3, 2, 1),
        disk: (6, 5, 4),
        kept: (1, 2),
        own: (3, 4),
        segments: 7,
        storage: vec![(MountId(7), counters)],
        warnings: vec!["disk tier off: input/output error".into()],
        ..WorkerReport::default()
    }
}

fn mount() -> Mount {
    Mount {
        id: MountId(7),
        name: "lake".parse().unwrap(),
        url: "s3://bucket/prefix".into(),
        options: MountOptions {
            endpoint: Some("http://127.0.0.1:9000".into()),
            validate: Validate::Immutable,
            bandwidth: Some("1Gbit".parse().unwrap()),
            burst: Some(ByteSize(1 << 20)),
            discover: Some(Duration::from_secs(30)),
            eager: true,
            replicas: Some(2),
            hot_form: HotForm::Raw,
            ..MountOptions::default()
        },
    }
}

fn worker() -> WorkerInfo {
    WorkerInfo {
        id: WorkerId(1),
        host: HostId("boot".into()),
        address: "127.0.0.1:7412".into(),
        unix_socket: Some("/run/forebay.sock".into()),
        dram_bytes: 1,
        disk_bytes: 2,
        turn: 1,
        location: "rack1".into(),
        draining: true,
        protocol: 0,
    }
}

fn view() -> ClusterView {
    let pin = Pin { mount: MountId(7), prefix: key("dim/") };
    ClusterView {
        version: 3,
        epoch: 2,
        mounts: vec![mount()],
        pins: vec![pin],
        workers: vec![worker()],
        poll: Some(Duration::from_secs(20)),
        losses: (2 << 32) + 1,
    }
}

fn window() -> WindowReport {
    let entry = SegmentUse {
        version: version(),
        index: 0,
        operations: 3,
        reads: 4,
        bytes: 500,
        service: Duration::from_micros(70),
        peak: 2,
        held_bytes: 4096,
    };
    let busy = Duration::from_millis(900);
    let (lasted, uses) = (Duration::from_secs(60), vec![entry]);
    WindowReport {
        window: (2 << 32) + 9,
        lasted,
        uses,
        busy,
        busy_bytes: 500,
        reads_left_out: 1,
        roots: vec![(MountId(7), "t".into())],
    }
}

fn placement() -> PlacementStatus {
    let segment = SegmentStatus {
        path: "/lake/a".parse().unwrap(),
        index: 1,
        segment: SegmentId::of(&version(), 1),
        popularity: 5.5,
        operations: 3,
        reads: 5,
        bytes_read: 4,
        planned: vec![(WorkerId(1), 80)],
        held: vec![(WorkerId(1), 4096)],
        loading: vec![WorkerId(2)],
        routing: vec![(WorkerId(1), 100)],
        in_table: true,
    };
    PlacementStatus {
        policy: "getafix".into(),
        window: Duration::from_secs(60),
        runs: 7,
        speeds: vec![(WorkerId(1), 1 << 30)],
        unsatisfied: vec!["a, segment 0: why".into()],
        segments: vec![segment],
        ..PlacementStatus::default()
    }
}

pub fn control_requests() -> Vec<ControlRequest> {
    let table = TableDefinition { name: "t".into(), statement: "CREATE EXTERNAL TABLE t".into() };
    vec![
        ControlRequest::View { have: 0 },
        ControlRequest::TableAdd { table, replace: true },
        ControlRequest::TableRemove { name: "t".into() },
        ControlRequest::Tables,
        ControlRequest::Budget { client: 11, mount: MountId(7) },
        ControlRequest::Status,
        ControlRequest::Routes { have: (2 << 32) + 1 },
        ControlRequest::Placement { limit: 100 },
        ControlRequest::Scheduler,
        ControlRequest::WhoAmI,
        ControlRequest::Unheard { mount: MountId(7), worker: WorkerId(1), number: Some((2 << 32) + 6) },
    ]
}

pub fn admin_requests() -> Vec<AdminRequest> {
    let path: ForebayPath = "/lake/dim/".parse().unwrap();
    let (name, options) = (mount().name, mount().options);
    vec![
        AdminRequest::MountAdd { name: name.clone(), url: mount().url, options: options.clone() },
        AdminRequest::MountSet { name: name.clone(), options },
        AdminRequest::MountRemove { name },
        AdminRequest::PinAdd { path: path.clone() },
        AdminRequest::PinRemove { path },
        AdminRequest::Drain { worker: WorkerId(1), draining: true },
        AdminRequest::TokenAdd { name: "etl".into(), grant: verifier().grant, keys: verifier().keys },
        AdminRequest::TokenRemove { name: "etl.2".into() },
        AdminRequest::Tokens,
    ]
}

pub fn member_requests() -> Vec<MemberRequest> {
    let heartbeat = Heartbeat {
        worker: WorkerId(1),
        have: 3,
        demand: vec![(MountId(7), 50_000_000)],
        report: report(),
        window: Some(window()),
        ended: vec![OrderEnd { segment: SegmentId::of(&version(), 0), hold: true, held_bytes: 300 }],
        fresh: vec![version()],
        heard: Some((2 << 32) + 5),
        background: Vec::new(),
        ahead: Vec::new(),
    };
    vec![
        MemberRequest::Register(worker()),
        MemberRequest::Heartbeat(heartbeat),
        MemberRequest::Leave(WorkerId(1)),
        MemberRequest::News(WorkerId(1)),
        MemberRequest::PassRoot { from: WorkerId(1), to: WorkerId(2) },
        MemberRequest::Scheduler { serves: "h:1".into() },
        MemberRequest::Credentials,
    ]
}

pub fn peer_requests() -> Vec<PeerRequest> {
    vec![
        PeerRequest::Copy { segment: SegmentId::of(&version(), 0), start: 1, pages: 1024 },
        PeerRequest::Form { form: form().id() },
        PeerRequest::Coming { mount: MountId(7), key: key("x/log/0123456789abcdef/0001-0000000001"), records: vec![1, u64::MAX] },
        PeerRequest::Missed { asker: WorkerId(1), segment: SegmentId::of(&version(), 0), start: 1, pages: 1024 },
        PeerRequest::ShardHeld { shard: u128::MAX },
        PeerRequest::ShardPart { shard: 7, file: 1, start: 1 << 40, bytes: 4 << 20 },
    ]
}

pub fn verifier() -> Verifier {
    let scope = Scope::Only { mounts: vec![mount().name], temporary: true };
    let grant = Grant { role: Role::Write, scope, expires: Some(1_900_000_000) };
    Verifier { id: "etl.2".into(), grant, created: 1_800_000_000, keys: TokenKeys { stored: [1; 32], server: [2; 32] } }
}

pub fn control_replies() -> Vec<ControlReply> {
    let share = MountShare { mount: MountId(7), bytes_per_sec: Some(1_000_000), burst_bytes: 1 << 20 };
    let status = ClusterStatus {
        forebay_version: "0.1.0".into(),
        epoch: 2,
        uptime: Duration::from_millis(1500),
        metadata: "sqlite".into(),
        mounts: vec![MountStatus { mount: mount(), counters: StorageCounters::default() }],
        pins: vec!["/lake/dim/".parse().unwrap()],
        workers: vec![(worker(), WorkerState::Lost, report())],
    };
    vec![
        ControlReply::Failed { kind: ErrorKind::NotFound, message: "no such mount".into() },
        ControlReply::View(view()),
        ControlReply::Unchanged,
        ControlReply::Beat {
            view: Some(view()),
            shares: vec![share],
            lease: Duration::from_secs(5),
            window: (2 << 32) + 9,
            orders: vec![
                Order::Hold { version: version(), index: 0, from: vec![WorkerId(1), WorkerId(2)] },
                Order::Drop { segment: SegmentId::of(&version(), 0) },
            ],
            routes: (2 << 32) + 1,
            credentials: (2 << 32) + 3,
            hears: Some((2 << 32) + 6),
            settled: (2 << 32) + 7,
        },
        ControlReply::Mount(mount()),
        ControlReply::Tables(vec![TableDefinition { name: "t".into(), statement: "s".into() }]),
        ControlReply::Budget(BudgetLease { share, lasts: Duration::from_secs(1) }),
        ControlReply::Status(Box::new(status)),
        ControlReply::Done,
        ControlReply::Routes(RoutesDelta {
            version: (2 << 32) + 2,
            base: (2 << 32) + 1,
            routes: vec![Route { key: RouteKey(7), holders: vec![(WorkerId(1), 80), (WorkerId(2), 20)] }],
        }),
        ControlReply::Placement(Box::new(placement())),
        ControlReply::Scheduler(None),
        ControlReply::Tokens(vec![verifier().info()]),
        ControlReply::Caller(CallerInfo { name: "token etl.2".into(), grant: Some(verifier().grant) }),
        ControlReply::Credentials { version: 5, verifiers: vec![verifier()] },
        ControlReply::Unheard { number: (2 << 32) + 6 },
    ]
}

fn attributes() -> Attributes {
    Attributes { headers: vec![("x-amz-meta-a".into(), b"caf\xe9".to_vec())], complete: true }
}
