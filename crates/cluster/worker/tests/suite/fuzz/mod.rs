//! Frames and messages of peers that know the token and mean harm, into a live worker and a live coordinator. None may fail by a
//! defect, take long, or take memory; others are served as before. `FOREBAY_TEST_FUZZ_SECS` makes it go on for longer.

mod answers;

use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_fuzz::{Mutator, Tally, resident_bytes, shape};
use forebay_nodes::{BlockRef, CallNumber, CreateOptions, DirId, NodeType, ROOT, StorageClass};
use forebay_protocol::{
    AdminRequest, ControlCall, ControlReply, ControlRequest, DataNotice, DataReply, DataRequest, DraftCall, FrameKind, Heartbeat,
    InPlaceCount, MemberRequest, NODE_MESSAGE, NODE_NUMBERED_MESSAGE, NODE_PEER_MESSAGE, NodeCall, NodeOp, NodeReply, PeerCall,
    PutCondition, RangeSpec, Raw, SegmentUse, TierDeed, TierOrder, TraceContext, WantedAccesses, WindowReport, WorkerInfo,
    decode, encode,
};
use forebay_transport::{Connection, Security};
use forebay_types::{ErrorKind, HostId, ObjectVersion, PageRun, SegmentId, Standing, WorkerId};
use futures::future::join_all;
use tokio::io::AsyncWriteExt;

use crate::bed::{Bed, MIB, OPERATION, Plan};
use crate::by_hand;

/// Of calls that take effect once: late ones are among them.
const NUMBER: CallNumber = CallNumber { client: 1, slot: 2, turn: 3 };
/// Calls under way at once.
const AT_ONCE: usize = 32;
/// What a call may take on a machine that is busy: deadlines of workers that are not there are among it.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the process may grow by, in bytes: tiers, buffers, what the S3 server keeps.
const MEMORY_MAX: u64 = 1 << 30;

/// Panics of this workspace's own code, which are counted from the first call on.
fn defects() -> usize {
    static DEFECTS: AtomicUsize = AtomicUsize::new(0);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let file = info.location().map_or("", |location| location.file());
            if file.starts_with("crates/") && file.contains("/src/") {
                DEFECTS.fetch_add(1, Relaxed);
            }
            before(info);
        }));
    });
    DEFECTS.load(Relaxed)
}

fn variant(text: String) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric()).collect()
}

/// What a worker's answer says, in short.
fn edge(request: &[u8], answer: &[u8]) -> String {
    let (_, request) = TraceContext::split(Bytes::copy_from_slice(request));
    let request = &request[..];
    let about = request.first().copied().unwrap_or(0);
    if [NODE_MESSAGE, NODE_NUMBERED_MESSAGE, NODE_PEER_MESSAGE].contains(&about) {
        let op = match (NodeCall::decode(request), PeerCall::decode(request)) {
            (Some(Ok(call)), _) => variant(format!("{:?}", call.op)),
            (_, Some(Ok(call))) => variant(format!("{:?}", call.op)),
            _ => "unreadable".into(),
        };
        return match NodeReply::decode(answer).expect("a worker's answers can be read") {
            NodeReply::Failed(error) => {
                assert_ne!(error.kind, forebay_nodes::NodeErrorKind::Internal, "{request:?}: {error}");
                format!("node {op} {:?} {}", error.kind, shape(&error.message))
            }
            reply => format!("node {op} {}", variant(format!("{reply:?}"))),
        };
    }
    match decode::<DataReply>(answer).expect("a worker's answers can be read") {
        DataReply::Failed { kind, message } => {
            assert!(!message.contains("defect"), "{request:?}: {message}");
            format!("data {about} {kind:?} {}", shape(&message))
        }
        reply => format!("data {about} {}", variant(format!("{reply:?}"))),
    }
}

/// Messages that a worker understands, about things that it has.
fn seeds(bed: &Bed, version: &ObjectVersion, worker: u64, dir: DirId, block: BlockRef) -> Vec<Vec<u8>> {
    let (mount, key, operation, segment) = (bed.mount.id, version.key.clone(), OPERATION, SegmentId::of(version, 0));
    let read = |start, len| DataRequest::Read { operation, version: version.clone(), start, len, in_place: true };
    let (ranges, keep, urgent, hold_ms) = (vec![(0, 4096), (5 << 20, 1 << 20)], false, true, 1000);
    let standing = Standing { priority: -7, began_ms: 1 };
    let prefetch = DataRequest::Prefetch { operation, version: version.clone(), ranges, keep, urgent, hold_ms, standing };
    let range = RangeSpec::Bounded { start: 5, len: 5000 };
    let (first, complete, in_place) = (4096, true, true);
    let cell = |form| DataRequest::ReadCell { operation, version: version.clone(), form, row_group: 0, column: 0, in_place };
    let of_shards = by_hand::of_shards(mount, &key).map(|request| encode(&request).to_vec());
    let requests = [
        DataRequest::Attach,
        DataRequest::Ring,
        DataRequest::Open { mount, key: key.clone() },
        DataRequest::Stat { mount, key: key.clone(), complete },
        DataRequest::List { mount, prefix: key.clone(), folders: true, after: Some(key.clone()), limit: 10 },
        read(0, 100),
        read(3 << 20, 1 << 20),
        DataRequest::ReadLatest { operation, mount, key: key.clone(), range, in_place },
        DataRequest::ReadObject { operation, mount, key: key.clone(), range, first, complete, in_place },
        prefetch,
        DataRequest::Put { mount, key: key.clone(), condition: PutCondition::Absent },
        DataRequest::PutBegin { mount, key: key.clone() },
        DataRequest::PutPart { upload: 1, part: 0 },
        DataRequest::PutCommit { upload: 1, parts: 1, condition: PutCondition::Absent },
        DataRequest::PutAbort { upload: 1 },
        DataRequest::Drafts { operation, call: DraftCall::Open { mount, below: key.clone() } },
        DataRequest::Drafts { operation, call: DraftCall::Begin { mount, key: key.clone() } },
        DataRequest::Drafts { operation, call: DraftCall::End },
        DataRequest::Refresh { mount, prefix: key.clone() },
        DataRequest::Changed { mount, key, info: None },
        DataRequest::Free { segments: vec![segment, SegmentId(1)] },
        DataRequest::Keep { segments: vec![segment], keep: true },
        DataRequest::TierOrder(TierOrder::of_all(std::slice::from_ref(version), TierDeed::Keep).remove(0)),
        DataRequest::Held { segments: vec![segment, SegmentId(7)] },
        DataRequest::Report,
        DataRequest::Queue,
        DataRequest::Present { runs: vec![(segment, PageRun::new(0, 1)), (segment, PageRun::new(3, 16_384))] },
        DataRequest::Departed { since: 0, within_ms: 1 },
        DataRequest::Accesses(WantedAccesses { since: 0, one_in: 0, within_ms: 1 }),
        cell(None),
        DataRequest::SelectRows(crate::cells::rows_of(operation, version, &[0, 1], crate::cells::few(b"some"))),
    ];
    let condition = forebay_nodes::Condition::Any;
    let (class, value) = (StorageClass::Dram, Raw(b"some bytes"));
    let ops = |blocks: Vec<BlockRef>| {
        vec![
            NodeOp::Get,
            NodeOp::Put { value },
            NodeOp::PutBlocks { blocks: blocks.clone() },
            NodeOp::Create { kind: NodeType::File, enumerable: true, class: Some(class), location: None },
            NodeOp::Create { kind: NodeType::Directory, enumerable: false, class: None, location: None },
            NodeOp::Stat,
            NodeOp::List { after: Some("a"), limit: 100 },
            NodeOp::Append { writer: 0, bytes: value },
            NodeOp::AppendBlocks { writer: 0, blocks: blocks.clone() },
            NodeOp::Write { writer: 0, offset: 3, bytes: value },
            NodeOp::Read { offset: 2, bytes: 100 },
            NodeOp::Extents { offset: 0, bytes: u64::MAX },
            NodeOp::Delete { recursive: true },
            NodeOp::Parent,
            NodeOp::Rename { dir, name: "moved", inside: false },
            NodeOp::OpenWriter { writer: 9 },
            NodeOp::CloseWriter { writer: 9 },
            NodeOp::Lease { ttl_ms: Some(100) },
            NodeOp::BlockWrite { class },
            NodeOp::BlockRead { block, start: 1, bytes: 10 },
            NodeOp::GetMany { names: vec!["a", "b"] },
            NodeOp::PutMany { values: vec![("m1", value), ("m2", value)] },
            NodeOp::Prepare { bytes: 1 << 20, descriptor: true },
            NodeOp::Written { pin: 0 },
            NodeOp::Replace { name: "other", condition },
            NodeOp::DeleteIf { condition },
            NodeOp::Usage,
            NodeOp::SetQuota { bytes: Some(1 << 30) },
            NodeOp::WasDone { number: NUMBER, within_ms: 1000 },
        ]
    };
    let mut seeds: Vec<_> = requests.iter().map(|request| encode(request).to_vec()).chain(of_shards).collect();
    seeds.push(TraceContext { trace: 7, span: 8 }.before(&encode(&read(0, 5000))).to_vec());
    seeds.extend(by_hand::of_workers(segment, mount).map(|request| request.encode().to_vec()));
    for op in by_hand::of_peers(worker, dir, block) {
        seeds.push(PeerCall { from: dir, path: "", op: op.clone() }.encode().to_vec());
        seeds.push(PeerCall { from: ROOT, path: "dir", op }.encode().to_vec());
    }
    let get = NodeCall { from: ROOT, moves: 0, path: "value", op: NodeOp::Get, number: None }.encode();
    seeds.push(TraceContext { trace: 7, span: 8 }.before(&get).to_vec());
    for op in ops(vec![block]) {
        for (from, path) in [(ROOT, "dir/file"), (ROOT, "value"), (dir, "file"), (dir, "")] {
            let call = NodeCall { from, moves: 0, path, op: op.clone(), number: None };
            seeds.push(call.encode().to_vec());
            if op.is_numbered() {
                seeds.push(NodeCall { number: Some(NUMBER), ..call }.encode().to_vec());
            }
        }
    }
    seeds
}

async fn node(connection: &Connection, path: &str, op: NodeOp<'_>, payload: Vec<Bytes>) -> Bytes {
    connection.call(NodeCall { from: ROOT, moves: 0, path, op, number: None }.encode(), payload).await.unwrap().meta
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_takes_any_message() {
    assert_eq!(defects(), 0);
    let bed = Bed::new(Plan { dram_bytes: 128 << 20, ..Plan::default() }).await;
    let data = bed.object("a", 9 * MIB);
    let client = bed.unix_client().await;
    let version = client.version("a").await;
    client.call(DataRequest::Attach).await.unwrap();
    let connection = client.connection.clone();
    let CreateOptions { enumerable, .. } = CreateOptions::new(NodeType::Directory);
    for (path, kind) in [("dir", NodeType::Directory), ("dir/file", NodeType::File)] {
        node(&connection, path, NodeOp::Create { kind, enumerable, class: None, location: None }, vec![]).await;
    }
    node(&connection, "value", NodeOp::Put { value: Raw(b"a value") }, vec![]).await;
    let meta = node(&connection, "dir/x", NodeOp::Parent, vec![]).await;
    let Ok(NodeReply::Dir(dir)) = NodeReply::decode(&meta) else { panic!("no folder") };
    let bytes = vec![Bytes::from(vec![7; 100_000])];
    let meta = node(&connection, "", NodeOp::BlockWrite { class: StorageClass::Dram }, bytes).await;
    let Ok(NodeReply::Block(block)) = NodeReply::decode(&meta) else { panic!("no block") };

    let mut mutator = Mutator::new(seeds(&bed, &version, dir.worker, dir, block));
    let (tally, before) = (Tally::begin("messages to a worker"), resident_bytes());
    while tally.goes_on() {
        let inputs: Vec<_> = (0..AT_ONCE).map(|_| mutator.input()).collect();
        let calls = inputs.iter().map(|input| {
            let payload = match mutator.roll(4) {
                0 => vec![Bytes::from(vec![1; mutator.roll(70_000)])],
                _ => Vec::new(),
            };
            let (connection, tally) = (&connection, &tally);
            async move {
                let asked = Instant::now();
                let call = tokio::time::timeout(PATIENCE, connection.call(input.clone().into(), payload)).await;
                let answer = call.unwrap_or_else(|_| tally.hang(format_args!("no answer within {PATIENCE:?} to {input:?}")));
                (answer.unwrap_or_else(|error| panic!("{input:?}: {error}")).meta, asked.elapsed())
            }
        });
        for (input, (answer, took)) in inputs.iter().zip(join_all(calls).await) {
            mutator.led_to(input, edge(input, &answer));
            tally.took(1, took, mutator.reached.len());
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < MEMORY_MAX, "{grown} bytes more");
        let notice = DataNotice::Unpin {
            pins: (0..100).map(|_| mutator.roll(1000) as u64).collect(),
            counts: vec![InPlaceCount { operation: OPERATION, segment: SegmentId(1), reads: u32::MAX, bytes: u64::MAX }],
        };
        connection.notify(encode(&notice)).unwrap();
        connection.notify(encode(&DataNotice::Ended { operation: OPERATION })).unwrap();
    }
    assert!(mutator.reached.len() > 100, "{:#?}", mutator.reached);

    assert_eq!(defects(), 0, "they are reported where they happened");
    // Who means no harm is served, with the right bytes.
    bed.s3.put("lake", "after", &data).unwrap();
    let honest = bed.client().await;
    let after = honest.version("after").await;
    for at in 0..9 {
        assert!(honest.read(&after, (at * MIB) as u64, MIB).await.unwrap() == data[at * MIB..(at + 1) * MIB]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_takes_any_frames() {
    assert_eq!(defects(), 0);
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", MIB);
    let socket = bed.folder.path().join("worker.sock");
    let queue = encode(&DataRequest::Queue);
    let frames = |kinds: &[FrameKind]| kinds.iter().flat_map(|kind| by_hand::frame(*kind, 1, &queue)).collect::<Vec<u8>>();
    use FrameKind::{Cancel, Notice, Request};
    let mut mended = frames(&[Request, Notice]);
    (mended[24], mended[20]) = (!mended[24], 7);
    by_hand::mend(&mut mended);
    assert_eq!(mended, frames(&[Request, Notice]), "what stands behind the checksums is reached");
    let mut mutator = Mutator::new(vec![
        frames(&[Request]),
        frames(&[Request, Cancel]),
        frames(&[Request, Notice, Request]),
        frames(&[Cancel, Cancel]),
        by_hand::frame(Request, 2, &encode(&DataRequest::Report)),
    ]);
    let (tally, before) = (Tally::begin("frames to a worker"), resident_bytes());
    while tally.goes_on() {
        let asked = Instant::now();
        let (mut stream, mut sent) = (by_hand::connect(&socket).await, Vec::new());
        for _ in 0..=mutator.roll(4) {
            let mut input = mutator.input();
            if mutator.roll(2) == 0 {
                by_hand::mend(&mut input);
            }
            tally.asks(&input);
            // The worker may have ended it already.
            let _ = stream.write_all(&input).await;
            sent.push(input);
        }
        if mutator.roll(2) == 0 {
            let answer = tokio::time::timeout(Duration::from_millis(5), by_hand::message_or_end(&mut stream)).await;
            // What comes first is for the first.
            mutator.led_to(&sent[0], by_hand::came_back(answer.ok().as_deref()));
        }
        tally.took(sent.len() as u64, asked.elapsed(), mutator.reached.len());
        assert!(resident_bytes().saturating_sub(before) < MEMORY_MAX);
    }
    assert!(mutator.reached.len() > 3, "{:#?}", mutator.reached);
    assert_eq!(defects(), 0, "they are reported where they happened");
    bed.client().await.version("a").await;
}

/// Requests that a coordinator understands.
fn control_seeds(bed: &Bed, version: &ObjectVersion) -> Vec<Vec<u8>> {
    let worker = WorkerId(77);
    let info = WorkerInfo::new(worker, HostId("host".into()), "127.0.0.1:9");
    let info = WorkerInfo { dram_bytes: 1 << 30, location: "rack".into(), ..info };
    let uses = vec![SegmentUse {
        version: version.clone(),
        index: 0,
        operations: 3,
        reads: 4,
        bytes: 5000,
        service: Duration::from_millis(3),
        peak: 1,
        held_bytes: 1 << 20,
    }];
    let window = WindowReport { window: 1 << 32, lasted: Duration::from_secs(60), uses, ..WindowReport::default() };
    let heartbeat = |window| Heartbeat {
        demand: vec![(bed.mount.id, 1000)],
        window,
        ended: vec![forebay_protocol::OrderEnd { segment: SegmentId::of(version, 0), hold: true, held_bytes: 1 << 20 }],
        fresh: vec![version.clone()],
        heard: Some(1),
        background: vec![(bed.mount.id, 1000)],
        ..Heartbeat::silent(worker)
    };
    let path = "/lake/a".parse().unwrap();
    let calls: [ControlCall; 18] = [
        MemberRequest::Register(info).into(),
        MemberRequest::Heartbeat(heartbeat(None)).into(),
        MemberRequest::Heartbeat(heartbeat(Some(window))).into(),
        MemberRequest::Leave(worker).into(),
        MemberRequest::Scheduler { serves: "127.0.0.1:1".into() }.into(),
        MemberRequest::PassRoot { from: worker, to: worker }.into(),
        MemberRequest::Credentials.into(),
        ControlRequest::View { have: 0 }.into(),
        ControlRequest::Tables.into(),
        ControlRequest::Budget { client: 7, mount: bed.mount.id }.into(),
        ControlRequest::Status.into(),
        ControlRequest::Routes { have: 0 }.into(),
        ControlRequest::Placement { limit: 100 }.into(),
        ControlRequest::Scheduler.into(),
        ControlRequest::WhoAmI.into(),
        AdminRequest::PinAdd { path }.into(),
        AdminRequest::Drain { worker, draining: true }.into(),
        AdminRequest::Tokens.into(),
    ];
    calls.iter().map(|call| encode(call).to_vec()).collect()
}

/// Whether a request has something done outside of the coordinator, or waits for news.
fn leads_outside(request: &[u8]) -> bool {
    matches!(
        decode::<ControlCall>(request),
        Ok(ControlCall::Administer(AdminRequest::MountAdd { .. } | AdminRequest::MountSet { .. })
            | ControlCall::Serve(MemberRequest::News(_)))
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_takes_any_message() {
    assert_eq!(defects(), 0);
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", MIB);
    let version = bed.client().await.version("a").await;
    let connection = Connection::connect(bed.node.coordinator_at(), &Security::default()).await.unwrap();
    let mut mutator = Mutator::new(control_seeds(&bed, &version));
    let (tally, before) = (Tally::begin("messages to a coordinator"), resident_bytes());
    while tally.goes_on() {
        let inputs: Vec<_> = (0..AT_ONCE).map(|_| mutator.input()).filter(|input| !leads_outside(input)).collect();
        let calls = inputs.iter().map(|input| {
            let (connection, tally) = (&connection, &tally);
            async move {
                let asked = Instant::now();
                let call = tokio::time::timeout(PATIENCE, connection.call(input.clone().into(), Vec::new())).await;
                let answer = call.unwrap_or_else(|_| tally.hang(format_args!("no answer within {PATIENCE:?} to {input:?}")));
                (answer.unwrap_or_else(|error| panic!("{input:?}: {error}")).meta, asked.elapsed())
            }
        });
        for (input, (answer, took)) in inputs.iter().zip(join_all(calls).await) {
            let about = &input[..input.len().min(2)];
            let edge = match decode::<ControlReply>(&answer).expect("a coordinator's answers can be read") {
                ControlReply::Failed { kind, message } => {
                    assert!(kind != ErrorKind::Internal, "{input:?}: {message}");
                    format!("{about:?} {kind:?} {}", shape(&message))
                }
                reply => format!("{about:?} {}", variant(format!("{reply:?}"))),
            };
            mutator.led_to(input, edge);
            tally.took(1, took, mutator.reached.len());
        }
        assert!(resident_bytes().saturating_sub(before) < MEMORY_MAX);
    }
    assert!(mutator.reached.len() > 20, "{:#?}", mutator.reached);
    assert_eq!(defects(), 0, "they are reported where they happened");
    let status = crate::bed::control(bed.node.coordinator_at(), ControlRequest::Status).await.unwrap();
    let ControlReply::Status(status) = status else { panic!("{status:?}") };
    assert!(!status.workers.is_empty());
}
