//! Every kind of message in each version that is spoken: `golden/v8.txt` and so on have the bytes of its sample, which stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{NodeError, NodeErrorKind};
use forebay_protocol::{
    About, AdminRequest, AheadNeed, ClusterView, ControlCall, ControlReply, ControlRequest, DataNotice, DataReply, DataRequest,
    Departed, Heartbeat, Kind, MemberRequest, NodeCall, NodeOp, NodeReply, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, PeerCall,
    PeerOp, PeerRequest, ReadCounters, ShardClaim, ShardState, Shared, VariantNames, Warning, WorkerInfo, WorkerReport, decode,
    decode_from, encode, encode_for, node_reply_for, reply_for, request_for, speaking,
};
use forebay_types::{
    Error, ErrorKind, Mount, MountId, MountOptions, OperationId, PageRun, SegmentId, Standing, WorkerId, Young, hex,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{nodes, samples};

/// A kind of message, with its sample in the version that was spoken when this was made.
struct Row {
    name: String,
    since: u16,
    bytes: Vec<u8>,
    /// Whether bytes are read as the sample.
    reads: Reads,
}

type Reads = Box<dyn Fn(&[u8]) -> bool>;

/// Samples of one type, how they are written, and whether bytes are one of them.
fn of<T: Kind + Debug + 'static>(
    name: &str,
    samples: Vec<T>,
    write: impl Fn(&T) -> Bytes,
    reads: impl Fn(&[u8], &T) -> bool + Copy + 'static,
) -> Vec<Row> {
    let row = |sample: T| {
        let text = format!("{sample:?}");
        let kind = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let (name, since, bytes) = (format!("{name} {kind}"), sample.since(), write(&sample).to_vec());
        Row { name, since, bytes, reads: Box::new(move |bytes: &[u8]| reads(bytes, &sample)) }
    };
    samples.into_iter().map(row).collect()
}

/// The same of a type that is a message by itself.
fn messages<T>(name: &str, samples: Vec<T>) -> Vec<Row>
where
    T: Kind + Serialize + DeserializeOwned + PartialEq + Debug + 'static,
{
    of(name, samples, encode, |bytes, sample| decode::<T>(bytes).is_ok_and(|read| read == *sample))
}

/// The same of what is said to the coordinator.
fn calls<T: Kind + Into<ControlCall> + Clone + Debug + 'static>(who: &str, samples: Vec<T>) -> Vec<Row> {
    fn sent<T: Into<ControlCall> + Clone>(sample: &T) -> ControlCall {
        sample.clone().into()
    }
    let write = |sample: &T| encode(&sent(sample));
    let reads = |bytes: &[u8], sample: &T| decode::<ControlCall>(bytes).is_ok_and(|read| read == sent(sample));
    of(&format!("ControlCall {who}"), samples, write, reads)
}

/// All kinds that there are.
fn rows() -> Vec<Row> {
    let mut rows = messages("DataRequest", samples::requests());
    rows.extend(messages("DataReply", samples::replies()));
    rows.extend(messages("DataNotice", samples::notices()));
    rows.extend(of("PeerRequest", samples::peer_requests(), PeerRequest::encode, |bytes, sample| {
        PeerRequest::decode(bytes).is_some_and(|read| read.is_ok_and(|read| read == *sample))
    }));
    rows.extend(calls("Ask", samples::control_requests()));
    rows.extend(calls("Administer", samples::admin_requests()));
    rows.extend(calls("Serve", samples::member_requests()));
    rows.extend(messages("ControlReply", samples::control_replies()));
    rows.extend(of(
        "NodeOp",
        nodes::ops(),
        |op| nodes::call(op.clone()).encode(),
        |bytes, op| NodeCall::decode(bytes).is_some_and(|read| read.is_ok_and(|read| read == nodes::call(op.clone()))),
    ));
    rows.extend(of(
        "PeerOp",
        nodes::peer_ops(),
        |op| nodes::peer_call(op.clone()).encode(),
        |bytes, op| PeerCall::decode(bytes).is_some_and(|read| read.is_ok_and(|read| read == nodes::peer_call(op.clone()))),
    ));
    rows.extend(of(
        "NodeReply",
        nodes::replies(),
        |reply| reply.encode(),
        |bytes, reply| NodeReply::decode(bytes).is_ok_and(|read| read == *reply),
    ));
    rows
}

fn file_of(version: u16) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/suite/golden/v{version}.txt"))
}

fn golden(version: u16) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file_of(version)).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap());
    rows.map(|(name, bytes)| (name.to_owned(), bytes.to_owned())).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn messages_of_the_version_before_are_written_and_read_as_they_were() {
    for version in PROTOCOL_VERSION_OLDEST..PROTOCOL_VERSION {
        let mut golden = golden(version);
        speaking(version, || {
            for row in rows().into_iter().filter(|row| row.since <= version) {
                let was = golden.remove(&row.name).unwrap_or_else(|| panic!("{} is not in golden/v{version}.txt", row.name));
                assert_eq!(hex(&row.bytes), was, "{}: a peer of version {version} reads other bytes", row.name);
                assert!((row.reads)(&bytes_of(&was)), "{}: what a peer of version {version} writes is another one", row.name);
            }
        });
        assert!(golden.is_empty(), "kinds of version {version} that are gone: {:?}", golden.keys());
    }
}

#[test]
fn all_kinds_are_of_a_version_that_there_is_and_have_a_sample() {
    let counts = [
        (samples::requests().len(), DataRequest::VARIANTS.len()),
        (samples::replies().len(), DataReply::VARIANTS.len()),
        (samples::notices().len(), DataNotice::VARIANTS.len()),
        (samples::peer_requests().len(), PeerRequest::VARIANTS.len()),
        (samples::control_requests().len(), ControlRequest::VARIANTS.len()),
        (samples::admin_requests().len(), AdminRequest::VARIANTS.len()),
        (samples::member_requests().len(), MemberRequest::VARIANTS.len()),
        (samples::control_replies().len(), ControlReply::VARIANTS.len()),
        (nodes::ops().len(), NodeOp::VARIANTS.len()),
        (nodes::peer_ops().len(), PeerOp::VARIANTS.len()),
        (nodes::replies().len(), NodeReply::VARIANTS.len()),
    ];
    assert!(counts.iter().all(|(samples, kinds)| samples == kinds), "{counts:?}");
    let rows = rows();
    assert!(rows.iter().all(|row| (8..=PROTOCOL_VERSION).contains(&row.since) && (row.reads)(&row.bytes)));
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(names.len(), rows.len(), "a name a kind");
}

#[test]
#[ignore = "writes the file of this version, before the next one begins: make golden"]
fn the_file_of_this_version_is_written() {
    let rows: BTreeMap<_, _> = rows().into_iter().map(|row| (row.name, hex(&row.bytes))).collect();
    let mut text = format!(
        "# The kinds of messages of protocol version {PROTOCOL_VERSION}, each with the bytes of its sample: docs/specs/protocol.md#changes\n"
    );
    rows.iter().for_each(|(name, bytes)| writeln!(text, "{name} {bytes}").unwrap());
    fs::write(file_of(PROTOCOL_VERSION), text).unwrap();
}

#[test]
fn a_worker_says_what_it_speaks_to_who_knows_that_field() {
    let MemberRequest::Register(silent) = samples::member_requests().remove(0) else { panic!("a worker registers first") };
    let worker = WorkerInfo { protocol: PROTOCOL_VERSION, ..silent.clone() };
    assert_eq!(decode::<WorkerInfo>(&encode(&worker)).unwrap(), worker);
    assert_eq!(decode_from::<WorkerInfo>(8, &encode_for(8, &worker)).unwrap(), silent);
}

#[test]
fn a_rule_of_age_is_told_to_who_knows_it() {
    let AdminRequest::MountSet { name, options } = samples::admin_requests().remove(1) else { panic!("mounts are set second") };
    let set = |young| AdminRequest::MountSet { name: name.clone(), options: MountOptions { young, ..options.clone() } };
    let (silent, ruled) = (set(None), set(Some(Young { replicas: 2, lasts: Duration::from_secs(7 * 86_400) })));
    assert_eq!(decode::<AdminRequest>(&encode(&ruled)).unwrap(), ruled);
    assert_eq!(decode_from::<AdminRequest>(8, &encode_for(8, &ruled)).unwrap(), silent);
    assert_eq!((silent.since(), ruled.since()), (8, 9), "one that does not know it is not asked");
    let AdminRequest::MountSet { options, .. } = ruled else { unreachable!("it is one") };
    let mount = Mount { id: MountId(7), name, url: "file:///a".into(), options };
    let view = ClusterView { mounts: vec![mount.clone(), mount], ..ClusterView::default() };
    assert_eq!(decode::<ClusterView>(&encode(&view)).unwrap(), view, "and what stands behind it");
    let mut silent = view.clone();
    silent.mounts.iter_mut().for_each(|mount| mount.options.young = None);
    assert_eq!(decode_from::<ClusterView>(8, &encode_for(8, &view)).unwrap(), silent);
}

#[test]
fn what_fills_the_disk_tier_and_what_reads_took_is_told_to_who_knows_those_fields() {
    let silent = samples::report();
    let told = WorkerReport {
        disk_form_bytes: 300,
        layer_bytes: 5,
        storage_reads: 6,
        storage_read_us: 70_000,
        tier_read_us: 8,
        mount_reads: vec![(MountId(7), ReadCounters { reads: 300, tier_read_us: 8, ..ReadCounters::default() })],
        form_room_bytes: 300,
        form_saves_ps: 9,
        block_saves_ps: 10,
        ..silent.clone()
    };
    let pair = |report: &WorkerReport| (report.clone(), 7u8);
    assert_eq!(decode::<(WorkerReport, u8)>(&encode(&pair(&told))).unwrap(), pair(&told));
    assert_eq!(
        decode_from::<(WorkerReport, u8)>(8, &encode_for(8, &pair(&told))).unwrap(),
        pair(&silent),
        "and what stands behind it"
    );
}

#[test]
fn background_work_is_told_to_who_knows_that_field() {
    let MemberRequest::Heartbeat(silent) = samples::member_requests().remove(1) else { panic!("a heartbeat comes second") };
    let beat = Heartbeat { background: vec![(MountId(7), 300), (MountId(9), 5)], ..silent.clone() };
    assert_eq!(decode::<Heartbeat>(&encode(&beat)).unwrap(), beat);
    assert_eq!(decode_from::<Heartbeat>(8, &encode_for(8, &beat)).unwrap(), silent);
    let said = |version| {
        let call = ControlCall::from(MemberRequest::Heartbeat(beat.clone())).for_version(version);
        match decode_from(version, &encode_for(version, &call)).unwrap() {
            ControlCall::Serve(MemberRequest::Heartbeat(heard)) => (heard.demand, heard.background),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(said(9), (silent.demand.clone(), beat.background.clone()));
    // One of before takes it for demand, as it does its own.
    assert_eq!(said(8), (vec![(MountId(7), 50_000_300), (MountId(9), 5)], Vec::new()));
}

#[test]
fn what_is_brought_ahead_is_told_by_plan_to_who_knows_that_field() {
    let MemberRequest::Heartbeat(silent) = samples::member_requests().remove(1) else { panic!("a heartbeat comes second") };
    let turn = |operation| Standing { priority: -1, began_ms: 5 }.turn(OperationId(operation), 0);
    let ahead = |mount, operation| AheadNeed { mount: MountId(mount), turn: turn(operation), bytes_per_sec: 300 };
    let beat = Heartbeat { ahead: vec![ahead(7, 1), ahead(7, 2), ahead(9, 1)], ..silent.clone() };
    assert_eq!(decode::<Heartbeat>(&encode(&beat)).unwrap(), beat);
    assert_eq!(decode_from::<Heartbeat>(8, &encode_for(8, &beat)).unwrap(), silent);
    let ControlCall::Serve(MemberRequest::Heartbeat(heard)) = ControlCall::from(MemberRequest::Heartbeat(beat)).for_version(8)
    else {
        panic!("it is a heartbeat")
    };
    assert_eq!((heard.demand, heard.ahead), (vec![(MountId(7), 50_000_600), (MountId(9), 300)], Vec::new()));
}

#[test]
fn where_a_plan_stands_is_told_to_who_knows_that_field() {
    let Some(DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, .. }) =
        samples::requests().into_iter().find(|request| matches!(request, DataRequest::Prefetch { .. }))
    else {
        panic!("there is a sample of each")
    };
    let of = |standing| {
        let (version, ranges) = (version.clone(), ranges.clone());
        DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, standing }
    };
    let told = of(Standing { priority: 3, began_ms: 1 << 40 });
    assert_eq!(decode::<DataRequest>(&encode(&told)).unwrap(), told);
    assert_eq!(decode_from::<DataRequest>(8, &encode_for(8, &told)).unwrap(), of(Standing::default()));
}

#[test]
fn what_came_is_told_to_who_knows_that_field() {
    let run = |segment| (SegmentId(segment), PageRun::new(3, 300));
    let silent = Departed { next: 7, lost: false, runs: vec![run(1)], came: Vec::new() };
    let told = DataReply::Departed(Departed { came: vec![run(2), run(3)], ..silent.clone() });
    assert_eq!(decode::<DataReply>(&encode(&told)).unwrap(), told);
    assert_eq!(decode_from::<DataReply>(8, &reply_for(8, encode(&told))).unwrap(), DataReply::Departed(silent));
}

#[test]
fn who_else_has_pages_and_that_they_are_coming_is_told_to_who_knows_those_fields() {
    let (runs, sums, elsewhere) = (vec![(3, 300)], vec![7; 300], Some(WorkerId(1)));
    let silent = Shared { runs, sums, holds: true, elsewhere, also: [None; 2], coming: false };
    let told = DataReply::Shared(Shared { also: [Some(WorkerId(2)), None], coming: true, ..silent.clone() });
    assert_eq!(decode::<DataReply>(&encode(&told)).unwrap(), told);
    assert_eq!(decode_from::<DataReply>(8, &reply_for(8, encode(&told))).unwrap(), DataReply::Shared(silent));
}

#[test]
fn the_steps_of_a_call_are_told_to_who_knows_that_field() {
    let told = DataReply::Shard { queue: 300, steps: 129 };
    assert_eq!(decode::<DataReply>(&encode(&told)).unwrap(), told);
    assert_eq!(decode_from::<DataReply>(8, &reply_for(8, encode(&told))).unwrap(), DataReply::Shard { queue: 300, steps: 0 });
}

#[test]
fn who_writes_a_shard_alone_is_told_to_who_knows_that_field() {
    let (writer, second) = (WorkerId(1), WorkerId(2));
    let claim = ShardClaim { writer, second, held_ms: 300, behind_objects: 3, behind_bytes: 1 << 20, behind_ms: 5 };
    let of = |claim, calls_per_min| {
        DataReply::Shards(vec![ShardState { claim, calls_per_min, ..samples::shard_state() }, samples::shard_state()])
    };
    let told = of(Some(claim), 300);
    assert_eq!(decode::<DataReply>(&encode(&told)).unwrap(), told, "and what stands behind it");
    assert_eq!(decode_from::<DataReply>(8, &reply_for(8, encode(&told))).unwrap(), of(None, 0));
}

#[test]
fn when_to_ask_again_is_told_to_who_knows_that_kind() {
    let busy = Error::retry("/lake: later").after(Duration::from_millis(300));
    let told = |version| decode_from::<DataReply>(version, &reply_for(version, encode(&DataReply::failed(&busy)))).unwrap();
    let heard = told(9).or_error().unwrap_err();
    assert_eq!((heard.kind(), heard.message(), heard.retry_after()), (ErrorKind::Retry, busy.message(), busy.retry_after()));
    let heard = told(8).or_error().unwrap_err();
    assert_eq!((heard.kind(), heard.message(), heard.retry_after()), (ErrorKind::Retry, busy.message(), None));
    let long = DataReply::failed(&busy.after(Duration::from_secs(1 << 40))).or_error().unwrap_err();
    assert_eq!(long.retry_after(), Some(Duration::from_secs(10)));
    let at_once = DataReply::Busy { after_ms: 0, message: String::new() }.or_error().unwrap_err();
    assert_eq!(at_once.retry_after(), Some(Duration::from_millis(10)));
    assert!(DataReply::Done.or_error().is_ok());
}

#[test]
fn that_somebody_may_not_is_told_of_temporary_data_to_who_knows_that_kind() {
    let refused = |kind| NodeReply::Failed(NodeError::new(kind, "that takes the right to write there"));
    let told = |version, kind| node_reply_for(version, refused(kind).encode());
    assert_eq!(told(9, NodeErrorKind::Denied), refused(NodeErrorKind::Denied).encode());
    assert_eq!(told(8, NodeErrorKind::Denied), refused(NodeErrorKind::Invalid).encode());
    for reply in nodes::replies() {
        assert_eq!(node_reply_for(8, reply.encode()), reply.encode(), "all else has the same bytes");
    }
}

#[test]
fn what_a_warning_is_about_is_told_to_who_knows_that_field() {
    let warnings = vec![
        Warning::of_mount(&"lake".parse().unwrap(), "/lake/x: no answer"),
        Warning::of_worker("mount secret: is what a disk is called".into()),
    ];
    let told = WorkerReport { warnings, ..samples::report() };
    assert_eq!(decode::<WorkerReport>(&encode(&told)).unwrap(), told, "and what stands behind it");
    let mut silent = told.clone();
    silent.warnings.iter_mut().for_each(|warning| warning.about = About::Unsaid);
    assert_eq!(decode_from::<WorkerReport>(8, &encode_for(8, &told)).unwrap(), silent);
    let seen = |report: &WorkerReport, name: &str| {
        report.warnings.iter().map(|warning| warning.is_for(|mount| mount.as_str() == name)).collect::<Vec<_>>()
    };
    assert_eq!((seen(&told, "lake"), seen(&told, "secret")), (vec![true, true], vec![false, true]));
    assert_eq!(seen(&silent, "lake"), [false, false], "who does not say what it is about shows it to nobody who may not see all");
}

#[test]
fn that_something_was_tried_in_vain_is_told_to_who_knows_that_kind() {
    let in_vain = Error::retry("/lake/a: 9 tries").in_vain().context("worker 1");
    let told = |version| decode_from::<DataReply>(version, &reply_for(version, encode(&DataReply::failed(&in_vain)))).unwrap();
    let heard = |version| told(version).or_error().unwrap_err();
    assert!([8, 9].into_iter().all(|version| heard(version).kind() == ErrorKind::Retry));
    assert!([8, 9].into_iter().all(|version| heard(version).message() == in_vain.message()));
    assert!(heard(9).is_in_vain() && !heard(8).is_in_vain());
    let words = Error::retry("gave up after 9 tries, and did not answer within 30 s");
    assert!(!DataReply::failed(&words).or_error().unwrap_err().is_in_vain(), "nobody reads words");
}

#[test]
fn what_was_there_before_a_call_was_asked_for_is_told_to_who_knows_that_field() {
    let of = |after| DataRequest::ChangeShard { dataset: samples::dataset(), shard: 3, call: 7, within_ms: 9, after };
    assert_eq!(decode::<DataRequest>(&encode(&of(Some(300)))).unwrap(), of(Some(300)));
    assert_eq!(decode_from::<DataRequest>(8, &encode_for(8, &of(Some(300)))).unwrap(), of(None));
}

#[test]
fn that_another_worker_may_do_it_is_told_to_who_knows_that_kind() {
    let no_room = Error::invalid("the shard takes 2 GiB").here_alone().context("/lake/orders.shards");
    let told = |version| decode_from::<DataReply>(version, &reply_for(version, encode(&DataReply::failed(&no_room)))).unwrap();
    let heard = |version| told(version).or_error().unwrap_err();
    assert!([8, 9].into_iter().all(|version| heard(version).kind() == ErrorKind::Invalid));
    assert!([8, 9].into_iter().all(|version| heard(version).message() == no_room.message()));
    assert!(heard(9).is_here_alone() && !heard(8).is_here_alone());
    assert!(!DataReply::failed(&Error::invalid("no such column")).or_error().unwrap_err().is_here_alone());
}

#[test]
fn what_is_said_to_several_is_written_for_each() {
    for version in [PROTOCOL_VERSION_OLDEST, PROTOCOL_VERSION] {
        for request in samples::peer_requests() {
            match request_for(version, request.encode()) {
                Ok(written) => assert_eq!(written, speaking(version, || request.encode())),
                Err(error) => assert!(request.since() > version && error.message().contains("unsupported"), "{error}"),
            }
        }
        for request in samples::requests() {
            match request_for(version, encode(&request)) {
                Ok(written) => assert_eq!(written, encode_for(version, &request)),
                Err(error) => assert!(request.since() > version && error.message().contains("unsupported"), "{error}"),
            }
        }
        for call in [nodes::call(NodeOp::Get).encode(), nodes::peer_call(PeerOp::Moved).encode()] {
            assert_eq!(request_for(version, call.clone()).unwrap(), call);
        }
        for reply in samples::replies() {
            assert_eq!(reply_for(version, encode(&reply)), encode_for(version, &reply.for_version(version)));
        }
    }
}
