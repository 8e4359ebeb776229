//! One of every message.

mod control;

use forebay_protocol::*;
use forebay_types::*;

pub use control::*;

pub fn key(key: &str) -> Key {
    Key::new(key).unwrap()
}

pub fn version() -> ObjectVersion {
    ObjectVersion { mount: MountId(7), key: key("a//b "), tag: VersionTag::etag("\"e1\""), size: 300 }
}

pub fn info() -> ObjectInfo {
    ObjectInfo { version: version(), modified_ms: -1 }
}

/// Of samples, whose bytes stay what they are however ids come to be.
pub const SEGMENT: SegmentId = SegmentId(0x6a6d_df2e_0567_0b6f_9424_7b41_8ac9_4c75);

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
    let (mount, operation, segment) = (MountId(7), OperationId(9), SEGMENT);
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
        DataRequest::ChangeShard { dataset: dataset(), shard: 3, call: u128::MAX, within_ms: 30_000, after: None },
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
        DataRequest::Drafts { operation, call: DraftCall::Open { mount, below: key("x/") } },
        DataRequest::TierOrder(tier_order()),
    ]
}

pub fn tier_order() -> TierOrder {
    let ObjectVersion { mount, key, tag, size } = version();
    TierOrder { mount, what: TierDeed::LetGo, parts: vec![VersionPart { key, tag, size, first: 0, count: 1 }] }
}

/// Of two columns those rows whose first is 5 or less and whose second is one of two texts.
pub fn wanted_rows() -> WantedRows {
    let few = RowTest::Compare { column: 0, by: Comparison::AtMost, value: vec![5, 0] };
    let tests = vec![few, RowTest::OneOf { column: 1, values: vec![b"a".to_vec(), vec![]], negated: false }, RowTest::And];
    let (operation, form, limit) = (OperationId(9), None, Some(300));
    let (row_group, columns, bytes_max, raw_bytes) = (3, vec![0, 200], 1 << 20, 2 << 20);
    let (link_bytes_per_sec, within_us, version) = (Some(300), Some(300), version());
    WantedRows { operation, version, form, row_group, columns, tests, limit, bytes_max, raw_bytes, link_bytes_per_sec, within_us }
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
        DataReply::Shard { queue: 300, steps: 0 },
        DataReply::Shards(vec![shard_state()]),
        DataReply::ShardChanged { version: 1 << 40 },
        DataReply::Shared(Shared {
            runs: vec![(0, 3)],
            sums: vec![7; 3],
            holds: true,
            elsewhere: Some(WorkerId(1)),
            also: [None; 2],
            coming: false,
        }),
        DataReply::Departed(Departed {
            next: 1 << 40,
            lost: true,
            runs: vec![(SEGMENT, PageRun::new(3, 300))],
            came: Vec::new(),
        }),
        DataReply::ShardHeld(Some(ShardHeld { bytes: 1 << 40, queue: 3 })),
        DataReply::Selected(SelectedRows { rows: 300, fits: true, hint, packed: Some(300) }),
        DataReply::Accesses(Accesses { next: 1 << 40, lost: 300, made: vec![] }),
        DataReply::Busy { after_ms: 300, message: "/lake: later".into() },
        DataReply::Kept(Some(Kept { end: 1 << 40, is_closed: true, bytes: vec![1, 300] })),
        DataReply::InVain { message: "/lake/a: 9 tries".into() },
        DataReply::Elsewhere { kind: ErrorKind::Invalid, message: "/lake/a: no room".into() },
    ]
}

pub fn dataset() -> DatasetId {
    DatasetId { mount: MountId(7), folder: key("orders.shards"), manifest: 2, tag: 9 }
}

pub fn shard_state() -> ShardState {
    ShardState {
        shard: 3,
        bytes: 1 << 30,
        size_milli: 900,
        is_changing: true,
        answered: 5,
        queue: 2,
        why: "nothing to change".into(),
        claim: None,
        calls_per_min: 0,
    }
}

pub fn notices() -> Vec<DataNotice> {
    let count = InPlaceCount { operation: OperationId(9), segment: SEGMENT, reads: 4, bytes: 5 };
    vec![DataNotice::Unpin { pins: vec![1, u64::MAX], counts: vec![count] }, DataNotice::Ended { operation: OperationId(9) }]
}

pub fn attributes() -> Attributes {
    Attributes { headers: vec![("x-amz-meta-a".into(), b"caf\xe9".to_vec())], complete: true }
}
