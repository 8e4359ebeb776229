//! Messages about temporary nodes there and back.

use forebay_nodes::{
    Affinity, BlockRef, CallNumber, Condition, DirId, Location, NodeError, NodeErrorKind, NodeType, ROOT, Stat, StorageClass,
    Usage,
};
use forebay_protocol::{
    DataRequest, NODE_MESSAGE, NODE_NUMBERED_MESSAGE, NodeCall, NodeOp, NodeReply, PeerCall, PeerOp, Raw, Span, decode, encode,
    request_for,
};
use forebay_types::ErrorKind;
use proptest::prelude::*;

const DIR: DirId = DirId { worker: 3, number: 300 };
const BLOCK: BlockRef = BlockRef { worker: 2, number: 9, len: 130 };
const NUMBER: CallNumber = CallNumber { client: 300, slot: 5, turn: 7 };

fn rack1() -> Location {
    "rack1".parse().unwrap()
}

pub fn ops() -> Vec<NodeOp<'static>> {
    let value = Raw(b"v");
    let (blocks, class) = (|| vec![BLOCK], StorageClass::Dram);
    vec![
        NodeOp::Get,
        NodeOp::Put { value },
        NodeOp::PutBlocks { blocks: blocks() },
        NodeOp::Create { kind: NodeType::Table, enumerable: true, class: Some(StorageClass::Disk), location: Some(rack1()) },
        NodeOp::Stat,
        NodeOp::List { after: Some("a"), limit: 10_000 },
        NodeOp::Append { writer: 7, bytes: value },
        NodeOp::AppendBlocks { writer: 7, blocks: blocks() },
        NodeOp::Write { writer: 0, offset: 4, bytes: value },
        NodeOp::Read { offset: 5, bytes: 6 },
        NodeOp::Extents { offset: 5, bytes: 6 },
        NodeOp::Delete { recursive: true },
        NodeOp::Parent,
        NodeOp::Rename { dir: DIR, name: "b", inside: false },
        NodeOp::OpenWriter { writer: 7 },
        NodeOp::CloseWriter { writer: 7 },
        NodeOp::Lease { ttl_ms: Some(1000) },
        NodeOp::BlockWrite { class },
        NodeOp::BlockRead { block: BLOCK, start: 1, bytes: 2 },
        NodeOp::GetMany { names: vec!["a", "b"] },
        NodeOp::PutMany { values: vec![("a", value), ("b", Raw(b""))] },
        NodeOp::Prepare { bytes: 1 << 20, descriptor: true },
        NodeOp::Written { pin: 1 },
        NodeOp::Replace { name: "b", condition: Condition::Tag(1 << 100) },
        NodeOp::DeleteIf { condition: Condition::Absent },
        NodeOp::Usage,
        NodeOp::SetQuota { bytes: Some(300) },
        NodeOp::WasDone { number: NUMBER, within_ms: 300 },
    ]
}

pub fn peer_ops() -> Vec<PeerOp<'static>> {
    let (value, blocks) = (Raw(b"v"), || vec![BLOCK]);
    let affinity = Affinity { class: StorageClass::Dram, location: rack1() };
    vec![
        PeerOp::BlockFree { blocks: blocks() },
        PeerOp::BlockUnknown { blocks: blocks() },
        PeerOp::Adopt { kind: NodeType::Bag, affinity, parent: ROOT },
        PeerOp::RemoveNodes { recursive: false },
        PeerOp::Reparent { parent: DIR },
        PeerOp::Arrive { rename: 1 << 100, source: 3, name: "c", node: value },
        PeerOp::Settle { rename: 8, committed: true },
        PeerOp::Outcome { rename: 8 },
        PeerOp::Moved,
        PeerOp::Room,
        PeerOp::TakeOver { source: 3, carton: value },
        PeerOp::TakeOverNodes,
        PeerOp::TakeOverEnd,
        PeerOp::TakeOverDrop,
        PeerOp::TookOver { old: DIR, parent: ROOT },
        PeerOp::Relink { old: DIR, new: ROOT },
        PeerOp::BlocksOf { worker: 3, limit: 10 },
        PeerOp::BlocksMoved { moved: vec![(BLOCK, BLOCK)] },
        PeerOp::Nameless { containers: vec![DIR] },
        PeerOp::Missing { containers: vec![DIR] },
        PeerOp::WayUp { outer: DIR },
        PeerOp::BlockKeep { class: StorageClass::Disk },
        PeerOp::BlockClaim { claims: vec![(BLOCK, 1 << 100)] },
        PeerOp::BlockUnclaim { claims: vec![(BLOCK, 1 << 100)] },
    ]
}

pub fn replies() -> Vec<NodeReply<'static>> {
    let stat = Stat { kind: NodeType::File, bytes: 5, enumerable: true, class: StorageClass::Dram, location: rack1() };
    vec![
        NodeReply::Failed(NodeError::new(NodeErrorKind::NotEmpty, "no")),
        NodeReply::Elsewhere { dir: DIR, rest: 4 },
        NodeReply::Stale { moves: 2 },
        NodeReply::Done,
        NodeReply::Length(300),
        NodeReply::Bytes(Raw(b"v")),
        NodeReply::Stat(Some(stat)),
        NodeReply::Listed { entries: vec![("a", NodeType::KeyValue, 1), ("b", NodeType::Directory, 0)], last: false },
        NodeReply::Extents { serial: 1, len: 140, skip: 3, blocks: vec![BLOCK], tail: Raw(b"0123456789") },
        NodeReply::Block(BLOCK),
        NodeReply::Blocks(vec![BLOCK]),
        NodeReply::Dir(DIR),
        NodeReply::Outcome(true),
        NodeReply::Values(vec![Ok(Some(Raw(b"v"))), Ok(None), Err(NodeError::new(NodeErrorKind::NotFound, "no"))]),
        NodeReply::Refused(vec![(1, NodeError::new(NodeErrorKind::NoSpace, "no"))]),
        NodeReply::InPlace { pin: 1, span: Span { offset: 2, len: 3 } },
        NodeReply::Room { names: 1, blocks: 2, has_disk: true },
        NodeReply::Place { pin: 1, span: Span { offset: 2, len: 3 } },
        NodeReply::BlocksOf(vec![(BLOCK, rack1()), (BLOCK, Location::default())]),
        NodeReply::Dirs(vec![DIR]),
        NodeReply::Usage(Usage { bytes: 5, quota: Some(300) }),
    ]
}

pub fn peer_call(op: PeerOp<'_>) -> PeerCall<'_> {
    PeerCall { from: DIR, path: "t/k", op }
}

pub fn call(op: NodeOp<'_>) -> NodeCall<'_> {
    NodeCall { from: DIR, moves: 5, path: "t/k", op, number: None }
}

/// Bytes of a call before its operation: the mark, `from`, `moves` and `path`.
const BEFORE: &str = "6e 03 ac 02 05 03 74 2f 6b";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_read_is_what_was_written() {
    for op in ops() {
        let call = call(op);
        assert_eq!(NodeCall::decode(&call.encode()).unwrap().unwrap(), call);
    }
    for op in peer_ops() {
        let call = peer_call(op);
        assert_eq!(PeerCall::decode(&call.encode()).unwrap().unwrap(), call);
        assert!(NodeCall::decode(&call.encode()).is_none());
    }
    for reply in replies() {
        assert_eq!(NodeReply::decode(&reply.encode()).unwrap(), reply);
    }
}

#[test]
fn variants_keep_their_numbers() {
    let before = BEFORE.split(' ').count();
    let numbers: Vec<u8> = ops().into_iter().map(|op| call(op).encode()[before]).collect();
    assert_eq!(numbers, (0..28).collect::<Vec<u8>>());
    let numbers: Vec<u8> = peer_ops().into_iter().map(|op| peer_call(op).encode()[before - 1]).collect();
    assert_eq!(numbers, (0..24).collect::<Vec<u8>>());
    let numbers: Vec<u8> = replies().iter().map(|reply| reply.encode()[0]).collect();
    assert_eq!(numbers, (0..21).collect::<Vec<u8>>());
    assert!(NodeReply::decode(&[21]).is_err());
}

#[test]
fn golden_bytes() {
    let golden = |op, expected: &str| assert_eq!(hex(&call(op).encode()), format!("{BEFORE} {expected}"));
    golden(NodeOp::Get, "00");
    golden(NodeOp::Put { value: Raw(b"vw") }, "01 02 76 77");
    golden(NodeOp::PutBlocks { blocks: vec![BLOCK] }, "02 01 02 09 82 01");
    golden(NodeOp::Create { kind: NodeType::KeyValue, enumerable: true, class: None, location: None }, "03 01 01 00 00");
    let free = NodeOp::Create { kind: NodeType::File, enumerable: false, class: None, location: Some(Location::default()) };
    golden(free, "03 00 00 00 01 00");
    let adopt =
        PeerOp::Adopt { kind: NodeType::Bag, affinity: Affinity { class: StorageClass::Disk, location: rack1() }, parent: ROOT };
    assert_eq!(hex(&peer_call(adopt).encode()), "6d 03 ac 02 03 74 2f 6b 02 04 01 05 72 61 63 6b 31 00 00");
    golden(NodeOp::List { after: None, limit: 1000 }, "05 00 e8 07");
    golden(NodeOp::Rename { dir: DIR, name: "b", inside: false }, "0d 03 ac 02 01 62 00");
    golden(NodeOp::GetMany { names: vec!["a", "b"] }, "13 02 01 61 01 62");
    golden(NodeOp::PutMany { values: vec![("a", Raw(b"vw"))] }, "14 01 01 61 02 76 77");
    golden(NodeOp::Prepare { bytes: 300, descriptor: true }, "15 ac 02 01");
    golden(NodeOp::Replace { name: "b", condition: Condition::Absent }, "17 01 62 01");
    golden(NodeOp::DeleteIf { condition: Condition::Tag(300) }, "18 02 ac 02");
    golden(NodeOp::Usage, "19");
    golden(NodeOp::SetQuota { bytes: Some(300) }, "1a 01 ac 02");
    golden(NodeOp::SetQuota { bytes: None }, "1a 00");
    golden(NodeOp::WasDone { number: NUMBER, within_ms: 300 }, "1b ac 02 05 07 ac 02");
    let golden = |reply: NodeReply<'_>, expected: &str| assert_eq!(hex(&reply.encode()), expected);
    golden(NodeReply::Failed(NodeError::new(NodeErrorKind::DataLost, "no")), "00 07 02 6e 6f");
    golden(NodeReply::Failed(NodeError::new(NodeErrorKind::Denied, "no")), "00 0b 02 6e 6f");
    golden(NodeReply::Bytes(Raw(b"vw")), "05 02 76 77");
    let stat =
        Stat { kind: NodeType::Bag, bytes: 300, enumerable: true, class: StorageClass::Disk, location: Location::default() };
    golden(NodeReply::Stat(Some(stat)), "06 01 04 ac 02 01 01 00");
    golden(NodeReply::Listed { entries: vec![("a", NodeType::Bag, 300)], last: true }, "07 01 01 61 04 ac 02 01");
    golden(NodeReply::Usage(Usage { bytes: 300, quota: Some(5) }), "14 ac 02 01 05");
    let refused = NodeError::new(NodeErrorKind::NotFound, "no");
    golden(NodeReply::Values(vec![Ok(Some(Raw(b"v"))), Ok(None), Err(refused)]), "0d 03 00 01 01 76 00 00 01 00 02 6e 6f");
}

#[test]
fn no_other_request_begins_like_a_call() {
    for first in [NODE_MESSAGE, NODE_NUMBERED_MESSAGE] {
        assert!(decode::<DataRequest>(&[first, 0, 0, 0, 0]).is_err());
    }
    assert!(NodeCall::decode(&[0]).is_none() && NodeCall::decode(&[]).is_none());
}

#[test]
fn a_number_stands_before_a_call_that_takes_effect_once() {
    let plain = call(NodeOp::Put { value: Raw(b"vw") });
    let numbered = NodeCall { number: Some(NUMBER), ..plain.clone() };
    let said = numbered.encode();
    let number = "2c 01 00 00 00 00 00 00 05 00 00 00 07 00 00 00 00 00 00 00";
    assert_eq!(hex(&said), format!("6f {number} {} 01 02 76 77", BEFORE.strip_prefix("6e ").unwrap()));
    assert_eq!(NodeCall::decode(&said).unwrap().unwrap(), numbered);
    assert_eq!(numbered.encode_for(8), plain.encode(), "one of before knows none");
    assert_eq!(request_for(8, said.clone()).unwrap(), plain.encode());
    assert_eq!(request_for(9, said.clone()).unwrap(), said);
    assert_eq!(NodeCall::without_number(&said), NodeCall::without_number(&plain.encode()), "what it says is the same");
    let of_another_kind = [&said[..21], NodeCall::without_number(&call(NodeOp::Parent).encode())].concat();
    for bytes in [&of_another_kind[..], &said[..20], &said[..said.len() - 1], &[NODE_NUMBERED_MESSAGE][..]] {
        assert_eq!(NodeCall::decode(bytes).unwrap().unwrap_err().kind(), ErrorKind::Invalid);
        assert!(NodeCall::without_number(bytes).len() < bytes.len());
    }
}

#[test]
fn labels_that_are_none_are_refused() {
    for label in ["\n".to_string(), "x".repeat(256)] {
        let bytes = [&[NODE_MESSAGE, 0, 0, 0, 1, b'k', 3, 0, 0, 0, 1][..], &encode(&label)].concat();
        assert_eq!(NodeCall::decode(&bytes).unwrap().unwrap_err().kind(), ErrorKind::Invalid, "{label:?}");
    }
}

#[test]
fn messages_with_bytes_behind_them_or_cut_short_are_refused() {
    let whole = call(NodeOp::Parent).encode();
    for bytes in [[&whole[..], &[0]].concat(), whole[..whole.len() - 1].to_vec(), vec![NODE_MESSAGE]] {
        assert_eq!(NodeCall::decode(&bytes).unwrap().unwrap_err().kind(), ErrorKind::Invalid);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0u8..32) {
        let bytes = [&[NODE_MESSAGE, 3, 3, 0, 1, b'k', number], &bytes[..]].concat();
        if let Some(Ok(call)) = NodeCall::decode(&bytes) {
            let again = call.encode();
            prop_assert_eq!(NodeCall::decode(&again).unwrap().unwrap(), call);
        }
        if let Ok(reply) = NodeReply::decode(&bytes[6..]) {
            let again = reply.encode();
            prop_assert_eq!(NodeReply::decode(&again).unwrap(), reply);
        }
    }
}
