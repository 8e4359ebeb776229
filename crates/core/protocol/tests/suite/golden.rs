//! Bytes that every build of these protocol versions must write and read, as docs/specs/protocol.md shows them.

use std::fmt::Debug;

use forebay_protocol::*;
use forebay_types::*;
use serde::{Serialize, de::DeserializeOwned};

use crate::samples::{form, key, tier_order, version, wanted_rows};

fn golden<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: T, hex: &str) {
    let bytes: Vec<u8> = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let written: Vec<String> = encode(&message).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written.join(" "), hex.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(decode::<T>(&bytes).unwrap(), message);
}

#[test]
fn a_header() {
    let header = FrameHeader {
        meta_len: 0x0102_0304,
        payload_len: 0x0102_0304,
        tag: 0x0102_0304_0506_0708,
        kind: FrameKind::Reply,
        descriptors: 1,
        version: 8,
        payload_crc: 0x0a0b_0c0d,
        crc: 0xa1b2_c3d4,
    };
    let expected = [
        0x04, 0x03, 0x02, 0x01, 0x04, 0x03, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 1, 1, 8, 0, 0x0d, 0x0c,
        0x0b, 0x0a, 0xd4, 0xc3, 0xb2, 0xa1,
    ];
    assert_eq!(header.to_bytes(), expected);
}

#[test]
fn requests() {
    golden(DataRequest::Attach, "00");
    golden(DataRequest::Open { mount: MountId(300), key: key("a/b") }, "01 ac 02 03 61 2f 62");
    golden(
        DataRequest::Read { operation: OperationId(9), version: version(), start: 128, len: 16, in_place: true },
        "03 09 07 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 80 01 10 01",
    );
    golden(
        DataRequest::List { mount: MountId(7), prefix: key("p/"), folders: false, after: None, limit: 1000 },
        "02 07 02 70 2f 00 00 e8 07",
    );
    let wanted = WantedAccesses { since: 300, one_in: 2, within_ms: 1_000 };
    golden(DataRequest::Accesses(wanted), "1f ac 02 02 e8 07");
    let drafts = |call| DataRequest::Drafts { operation: OperationId(9), call };
    golden(drafts(DraftCall::Open { mount: MountId(7), below: key("x/") }), "20 09 00 07 02 78 2f");
    golden(drafts(DraftCall::Begin { mount: MountId(7), key: key("x/a") }), "20 09 01 07 03 78 2f 61");
    golden(drafts(DraftCall::End), "20 09 02");
    golden(DataRequest::TierOrder(tier_order()), "21 07 02 01 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 00 01");
    let cell = |form| DataRequest::ReadCell {
        operation: OperationId(9),
        version: version(),
        form,
        row_group: 3,
        column: 200,
        in_place: true,
    };
    golden(cell(None), "16 09 07 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 00 03 c8 01 01");
    golden(
        cell(Some(form().into())),
        "16 09 07 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 01 00 01 3b 22 01 5c 00 00 00 02 01 00 03 c8 01 01",
    );
    golden(
        DataRequest::SelectRows(wanted_rows()),
        "1e 09 07 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 00 03 02 00 c8 01 03 00 00 03 02 05 00 01 \
         01 02 01 61 00 00 03 01 ac 02 80 80 40 80 80 80 01 01 ac 02 01 ac 02",
    );
    assert_eq!(&PeerRequest::Form { form: FormId(130) }.encode()[..], [b'p', 1, 0x82, 1]);
    assert_eq!(&PeerRequest::ShardHeld { shard: 130 }.encode()[..], [b'p', 4, 0x82, 1]);
    let part = PeerRequest::ShardPart { shard: 130, file: 2, start: 300, bytes: 129 };
    assert_eq!(&part.encode()[..], [b'p', 5, 0x82, 1, 2, 0xac, 2, 0x81, 1]);
    let begin = PeerRequest::ClaimBegin { claim: 130, writer: WorkerId(2), mount: MountId(300), key: key("a") };
    assert_eq!(&begin.encode()[..], [b'p', 6, 0x82, 1, 2, 0xac, 2, 1, 0x61]);
    assert_eq!(&PeerRequest::ClaimKeep { claim: 1, number: 300 }.encode()[..], [b'p', 7, 1, 0xac, 2]);
    let kept = PeerRequest::ClaimKept { claim: 1, from: 300, close: true, mount: MountId(300), key: key("a") };
    assert_eq!(&kept.encode()[..], [b'p', 8, 1, 0xac, 2, 1, 0xac, 2, 1, 0x61]);
    let end = PeerRequest::ClaimEnd { claim: 130, mount: MountId(300), key: key("a") };
    assert_eq!(&end.encode()[..], [b'p', 9, 0x82, 1, 0xac, 2, 1, 0x61]);
    let came = PeerRequest::Came { info: ObjectInfo { version: version(), modified_ms: -1 } };
    let bytes = [b'p', 10, 7, 5, b'a', b'/', b'/', b'b', b' ', 4, b'"', b'e', b'1', b'"', 0xac, 2, 1];
    assert_eq!(&came.encode()[..], bytes);
}

#[test]
fn replies() {
    golden(DataReply::Failed { kind: ErrorKind::Conflict, message: "no".into() }, "00 01 02 6e 6f");
    let hint = Hint { queue: 2, routes: 129 };
    golden(DataReply::Read { in_place: None, hint }, "04 00 02 81 01");
    golden(DataReply::Busy { after_ms: 300, message: "a".into() }, "1c ac 02 01 61");
    golden(DataReply::Selected(SelectedRows { rows: 300, fits: true, hint, packed: None }), "1a ac 02 01 02 81 01 00");
    golden(DataReply::Selected(SelectedRows { rows: 300, fits: true, hint, packed: Some(300) }), "1a ac 02 01 02 81 01 01 ac 02");
    golden(DataReply::Read { in_place: Some((5, Span { offset: 4096, len: 300 })), hint }, "04 01 05 80 20 ac 02 02 81 01");
    golden(DataReply::Queue(hint), "0f 02 81 01");
    golden(DataReply::Kept(None), "1d 00");
    golden(DataReply::InVain { message: "a".into() }, "1e 01 61");
    golden(DataReply::Elsewhere { kind: ErrorKind::Invalid, message: "a".into() }, "1f 02 01 61");
    golden(DataReply::Kept(Some(Kept { end: 300, is_closed: true, bytes: vec![129] })), "1d 01 ac 02 01 01 81 01");
    golden(DataReply::Copied { runs: vec![(0, 1), (300, 1)], sums: vec![1, 300] }, "0e 02 00 01 ac 02 01 02 01 ac 02");
    golden(DataReply::Present(vec![true, false]), "10 02 01 00");
    golden(DataReply::Form(None), "12 00");
    golden(DataReply::Heard { view: 130 }, "13 82 01");
    golden(DataReply::Shard { queue: 300, steps: 129 }, "14 ac 02 81 01");
    golden(DataReply::ShardHeld(Some(ShardHeld { bytes: 300, queue: 2 })), "19 01 ac 02 02");
    let made = AccessMade {
        ago: std::time::Duration::from_secs(1),
        operation: Some(OperationId(9)),
        mount: MountId(7),
        key: key("a"),
        start: 128,
        bytes: 16,
        times: 2,
        way: AccessWay::InPlace,
    };
    golden(
        DataReply::Accesses(Accesses { next: 300, lost: 1, made: vec![made] }),
        "1b ac 02 01 01 01 00 01 09 07 01 61 80 01 10 02 01",
    );
    golden(
        DataReply::Info(ObjectInfo { version: version(), modified_ms: -1 }),
        "02 07 05 61 2f 2f 62 20 04 22 65 31 22 ac 02 01",
    );
}

#[test]
fn control() {
    golden(ControlCall::from(ControlRequest::View { have: 3 }), "00 00 03");
    golden(ControlCall::from(AdminRequest::PinAdd { path: "/lake/d/".parse().unwrap() }), "01 03 04 6c 61 6b 65 02 64 2f");
    golden(ControlCall::from(MemberRequest::Scheduler { serves: "h:1".into() }), "02 05 03 68 3a 31");
    golden(Grant::everywhere(Role::Write), "01 00 00");
    golden(
        Grant {
            role: Role::Read,
            scope: Scope::Only { mounts: vec!["lake".parse().unwrap()], temporary: true },
            expires: Some(300),
        },
        "00 01 01 04 6c 61 6b 65 01 01 ac 02",
    );
    golden(ControlReply::Unchanged, "02");
    golden(ControlReply::Scheduler(None), "0b 00");
    golden(ControlRequest::Unheard { mount: MountId(7), worker: WorkerId(5), number: None }, "0a 07 05 00");
    golden(ControlReply::Unheard { number: 130 }, "0f 82 01");
    golden(
        ControlReply::Beat {
            view: None,
            shares: vec![],
            lease: std::time::Duration::from_millis(5001),
            window: 3,
            orders: vec![Order::Drop { segment: SegmentId(130) }],
            routes: 4,
            credentials: 5,
            hears: Some(130),
            settled: 131,
        },
        "03 00 00 05 c0 84 3d 03 01 01 82 01 04 05 01 82 01 83 01",
    );
    let route = Route { key: RouteKey(7), holders: vec![(WorkerId(1), 80), (WorkerId(2), 20)] };
    golden(ControlReply::Routes(RoutesDelta { version: 9, base: 8, routes: vec![route] }), "09 09 08 01 07 02 01 50 02 14");
}
