//! Of a coordinator and of members.

use std::time::Duration;

use forebay_protocol::*;
use forebay_types::*;

use super::*;

pub fn report() -> WorkerReport {
    let counters = StorageCounters { gets: 1, bytes_in: 2, socket_bytes_in: 3, ..StorageCounters::default() };
    WorkerReport {
        dram: (3, 2, 1),
        disk: (6, 5, 4),
        kept: (1, 2),
        own: (3, 4),
        segments: 7,
        storage: vec![(MountId(7), counters)],
        warnings: vec![Warning { text: "disk tier off: input/output error".into(), about: About::default() }],
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
        segment: SegmentId(0x2faa_1bfb_4fae_ac6e_72ae_865c_ec02_3a1e),
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
        ended: vec![OrderEnd { segment: SEGMENT, hold: true, held_bytes: 300 }],
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
        PeerRequest::Copy { segment: SEGMENT, start: 1, pages: 1024 },
        PeerRequest::Form { form: FormId(0x8575_b4b5_5bcc_a867_78b4_eed0_50a3_abab) },
        PeerRequest::Coming { mount: MountId(7), key: key("x/log/0123456789abcdef/0001-0000000001"), records: vec![1, u64::MAX] },
        PeerRequest::Missed { asker: WorkerId(1), segment: SEGMENT, start: 1, pages: 1024 },
        PeerRequest::ShardHeld { shard: u128::MAX },
        PeerRequest::ShardPart { shard: 7, file: 1, start: 1 << 40, bytes: 4 << 20 },
        PeerRequest::ClaimBegin {
            claim: u128::MAX,
            writer: WorkerId(1),
            mount: MountId(7),
            key: key("x/log/0123456789abcdef/0001-0000000001"),
        },
        PeerRequest::ClaimKeep { claim: 7, number: 1 << 40 },
        PeerRequest::ClaimKept {
            claim: 7,
            from: 300,
            close: true,
            mount: MountId(7),
            key: key("x/log/0123456789abcdef/0001-0000000001"),
        },
        PeerRequest::ClaimEnd { claim: 7, mount: MountId(7), key: key("x/log/0123456789abcdef/0001-0000000001") },
        PeerRequest::Came { info: info() },
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
                Order::Drop { segment: SEGMENT },
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
