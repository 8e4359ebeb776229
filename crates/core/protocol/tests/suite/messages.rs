//! Messages there and back, and the numbers that their variants keep.

use std::fmt::Debug;

use forebay_nodes::{BlockRef, ROOT};
use forebay_protocol::{
    AdminRequest, ControlCall, ControlReply, DataNotice, DataReply, DataRequest, NodeCall, NodeOp, PINS_MAX, PeerCall, PeerOp,
    PutCondition, RUNS_MAX, RangeSpec, SEGMENTS_MAX, WantedRows, decode, encode,
};
use forebay_types::{
    Error, ErrorKind, Key, MountId, ObjectVersion, OperationId, PageRun, RowTest, SegmentId, Standing, VersionTag,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};

use crate::samples;

/// Reads back what was written, and nothing that is shorter or longer.
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) {
    let bytes = encode(message);
    assert_eq!(&decode::<T>(&bytes).unwrap(), message);
    for cut in 0..bytes.len() {
        let error = decode::<T>(&bytes[..cut]).expect_err("a part of a message is none");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    let error = decode::<T>(&[&bytes[..], &[0]].concat()).expect_err("nothing comes after a message");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn every_message_is_read_back_as_written() {
    samples::requests().iter().for_each(check);
    samples::replies().iter().for_each(check);
    samples::notices().iter().for_each(check);
    samples::control_requests().into_iter().map(ControlCall::from).for_each(|call| check(&call));
    samples::admin_requests().into_iter().map(ControlCall::from).for_each(|call| check(&call));
    samples::member_requests().into_iter().map(ControlCall::from).for_each(|call| check(&call));
    samples::peer_requests().iter().for_each(check);
    samples::control_replies().iter().for_each(check);
}

/// The samples have every variant, in order: a postcard message begins with its variant's number.
#[test]
fn every_variant_keeps_its_number() {
    fn numbers<T: Serialize>(messages: &[T]) -> Vec<u8> {
        messages.iter().map(|message| encode(message)[0]).collect()
    }
    assert_eq!(numbers(&samples::requests()), (0..34).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::replies()), (0..32).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::notices()), [0, 1]);
    assert_eq!(numbers(&samples::peer_requests()), (0..11).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::control_requests()), (0..11).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::admin_requests()), (0..9).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::member_requests()), (0..7).collect::<Vec<u8>>());
    assert_eq!(numbers(&samples::control_replies()), (0..16).collect::<Vec<u8>>());
    assert!(decode::<DataRequest>(&[34]).is_err() && decode::<DataReply>(&[31]).is_err());
    assert!(decode::<ControlCall>(&[3]).is_err() && decode::<ControlReply>(&[16]).is_err());
}

#[test]
fn errors_cross_the_wire_with_kind_and_message() {
    let error = Error::not_found("/lake/x: no such object").context("read");
    let expected = ("read: /lake/x: no such object".to_string(), ErrorKind::NotFound);
    let DataReply::Failed { kind, message } = DataReply::failed(&error) else { panic!("a failure") };
    assert_eq!((message, kind), expected);
    let ControlReply::Failed { kind, message } = ControlReply::failed(&error) else { panic!("a failure") };
    assert_eq!((message, kind), expected);
}

#[test]
fn keys_and_names_in_messages_are_checked() {
    let good = encode(&DataRequest::Open { mount: MountId(7), key: samples::key("ab") });
    let bad = [&good[..good.len() - 1], &[0]].concat();
    assert_eq!(decode::<DataRequest>(&bad).unwrap_err().kind(), ErrorKind::Invalid);
    // `lake` as `LAKE`, which is no mount's name.
    let good = encode(&ControlCall::from(AdminRequest::MountRemove { name: "lake".parse().unwrap() }));
    assert_eq!(decode::<ControlCall>(&good.to_ascii_uppercase()).unwrap_err().kind(), ErrorKind::Invalid);
}

fn key() -> impl Strategy<Value = Key> {
    "[^\\x00]{0,80}".prop_map(|key| Key::new(key).unwrap())
}

fn version() -> impl Strategy<Value = ObjectVersion> {
    (any::<u64>(), key(), ".{0,40}", any::<u64>()).prop_map(|(mount, key, tag, size)| ObjectVersion {
        mount: MountId(mount),
        key,
        tag: VersionTag::etag(&tag),
        size,
    })
}

fn range() -> impl Strategy<Value = RangeSpec> {
    prop_oneof![
        any::<(u64, u64)>().prop_map(|(start, len)| RangeSpec::Bounded { start, len }),
        any::<u64>().prop_map(|start| RangeSpec::From { start }),
        any::<u64>().prop_map(|len| RangeSpec::Suffix { len }),
    ]
}

fn request() -> impl Strategy<Value = DataRequest> {
    let operation = any::<u64>().prop_map(OperationId);
    let mount = any::<u64>().prop_map(MountId);
    let condition = prop_oneof![
        Just(PutCondition::Any),
        Just(PutCondition::Absent),
        ".{0,40}".prop_map(|tag| PutCondition::Version(VersionTag::etag(&tag)))
    ];
    prop_oneof![
        (operation.clone(), version(), any::<u64>(), any::<u32>(), any::<bool>()).prop_map(
            |(operation, version, start, len, in_place)| DataRequest::Read { operation, version, start, len, in_place }
        ),
        (operation.clone(), mount.clone(), key(), range(), any::<bool>()).prop_map(|(operation, mount, key, range, in_place)| {
            DataRequest::ReadLatest { operation, mount, key, range, in_place }
        }),
        (
            operation,
            version(),
            prop::collection::vec(any::<(u64, u32)>(), 0..20),
            any::<(bool, bool)>(),
            any::<(u32, i32, u64)>()
        )
            .prop_map(|(operation, version, ranges, (keep, urgent), (hold_ms, priority, began_ms))| {
                let standing = Standing { priority, began_ms };
                DataRequest::Prefetch { operation, version, ranges, keep, urgent, hold_ms, standing }
            }),
        (mount.clone(), key(), any::<bool>(), prop::option::of(key()), any::<u32>())
            .prop_map(|(mount, prefix, folders, after, limit)| DataRequest::List { mount, prefix, folders, after, limit }),
        (mount, key(), condition).prop_map(|(mount, key, condition)| DataRequest::Put { mount, key, condition }),
    ]
}

proptest! {
    #[test]
    fn requests_are_read_back_as_written(request in request()) {
        prop_assert_eq!(decode::<DataRequest>(&encode(&request)).unwrap(), request);
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0u8..20) {
        let bytes = [&[number], &bytes[..]].concat();
        // What is read may be written in fewer bytes (numbers have several forms), but says the same.
        if let Ok(message) = decode::<DataRequest>(&bytes) {
            prop_assert_eq!(decode::<DataRequest>(&encode(&message)).unwrap(), message);
        }
        if let Ok(message) = decode::<DataReply>(&bytes) {
            prop_assert_eq!(decode::<DataReply>(&encode(&message)).unwrap(), message);
        }
        if let Ok(message) = decode::<DataNotice>(&bytes) {
            prop_assert_eq!(decode::<DataNotice>(&encode(&message)).unwrap(), message);
        }
        if let Ok(message) = decode::<ControlCall>(&bytes) {
            prop_assert_eq!(decode::<ControlCall>(&encode(&message)).unwrap(), message);
        }
        if let Ok(message) = decode::<ControlReply>(&bytes) {
            prop_assert_eq!(decode::<ControlReply>(&encode(&message)).unwrap(), message);
        }
    }
}

/// Whether a worker takes such a message.
fn is_taken(request: &DataRequest) -> bool {
    decode::<DataRequest>(&encode(request)).is_ok()
}

#[test]
fn lists_longer_than_a_message_may_have_are_refused() {
    let segments = |more| vec![SegmentId(7); SEGMENTS_MAX + more];
    assert!(is_taken(&DataRequest::Free { segments: segments(0) }));
    assert!(!is_taken(&DataRequest::Free { segments: segments(1) }));
    assert!(!is_taken(&DataRequest::Keep { segments: segments(1), keep: true }));
    assert!(!is_taken(&DataRequest::Held { segments: segments(1) }));
    let runs = |count| DataRequest::Present { runs: vec![(SegmentId(7), PageRun::new(0, 1)); count] };
    assert!(is_taken(&runs(RUNS_MAX)) && !is_taken(&runs(RUNS_MAX + 1)));
    let rows = |count| {
        let one_of = RowTest::OneOf { column: 0, values: vec![Vec::new(); count], negated: false };
        DataRequest::SelectRows(WantedRows { tests: vec![one_of], ..samples::wanted_rows() })
    };
    assert!(is_taken(&rows(256)) && !is_taken(&rows(257)));
    let notice = |count| encode(&DataNotice::Unpin { pins: vec![1; count], counts: Vec::new() });
    assert!(decode::<DataNotice>(&notice(PINS_MAX)).is_ok() && decode::<DataNotice>(&notice(PINS_MAX + 1)).is_err());
    // A list that says that it is longer than its message takes no memory for it.
    let mut said = encode(&DataRequest::Free { segments: Vec::new() }).to_vec();
    said.pop();
    said.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(decode::<DataRequest>(&said).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn blocks_and_pages_that_can_not_be_are_refused() {
    for (start, len) in [(0, 0), (16_384, 1), (1, 16_384), (u32::MAX, 2)] {
        assert!(!is_taken(&DataRequest::Present { runs: vec![(SegmentId(7), PageRun { start, len })] }), "{start}+{len}");
    }
    assert!(is_taken(&DataRequest::Present { runs: vec![(SegmentId(7), PageRun { start: 0, len: 16_384 })] }));
    let is_taken = |op: NodeOp<'_>| {
        let message = NodeCall { from: ROOT, moves: 0, path: "x", op, number: None }.encode();
        NodeCall::decode(&message).unwrap().is_ok()
    };
    let block = |len| BlockRef { worker: 1, number: 2, len };
    assert!(is_taken(NodeOp::PutBlocks { blocks: vec![block(1), block(1 << 20)] }));
    for len in [0, (1 << 20) + 1, u32::MAX] {
        assert!(!is_taken(NodeOp::PutBlocks { blocks: vec![block(1), block(len)] }));
        assert!(!is_taken(NodeOp::BlockRead { block: block(len), start: 100 << 20, bytes: 1 }));
        let moved = PeerCall { from: ROOT, path: "", op: PeerOp::BlocksMoved { moved: vec![(block(1), block(len))] } };
        assert!(PeerCall::decode(&moved.encode()).unwrap().is_err());
    }
}
