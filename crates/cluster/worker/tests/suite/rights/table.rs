//! The rows: each request, and what it takes.

use std::collections::BTreeSet;

use forebay_nodes::{Affinity, BlockRef, CallNumber, Condition, DirId, NodeType, ROOT, StorageClass};
use forebay_protocol::*;
use forebay_transport::Credential;
use forebay_types::{
    FormId, Grant, HostId, Key, MountId, MountName, MountOptions, ObjectInfo, ObjectVersion, OperationId, PageRun, Role, Scope,
    SegmentId, Standing, VersionTag, WorkerId,
};

use super::takes::Takes;

pub const LAKE: MountId = MountId(1);

pub fn key() -> Key {
    Key::new("k").unwrap()
}

pub fn version() -> ObjectVersion {
    ObjectVersion { mount: LAKE, key: key(), tag: VersionTag::etag("\"none\""), size: 10 }
}

/// The requests of a table, none of whose kinds is left out: one that is added wants not only its row, but to be asked for.
pub fn of_every_kind<T: VariantNames>(requests: Vec<T>) -> Vec<T>
where
    for<'a> &'a T: Into<&'static str>,
{
    let asked: BTreeSet<&str> = requests.iter().map(Into::into).collect();
    let kinds: BTreeSet<&str> = T::VARIANTS.iter().copied().collect();
    let missing: Vec<_> = kinds.difference(&asked).collect();
    assert!(missing.is_empty(), "kinds that nobody asks for: {missing:?}");
    assert_eq!(asked, kinds);
    requests
}

pub fn of_client(request: &ControlRequest) -> Takes {
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

pub fn client_requests() -> Vec<ControlRequest> {
    let table = TableDefinition { name: "t".into(), statement: "s".into() };
    of_every_kind(vec![
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
    ])
}

pub fn of_administrator(request: &AdminRequest) -> Takes {
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
pub fn admin_requests() -> Vec<AdminRequest> {
    let keys = Credential::owner("a secret of these tests").unwrap().keys();
    let nothing = Grant { scope: Scope::Only { mounts: vec![], temporary: false }, ..Grant::everywhere(Role::Read) };
    of_every_kind(vec![
        AdminRequest::MountAdd { name: name("lake"), url: "file:///none".into(), options: MountOptions::default() },
        AdminRequest::MountSet {
            name: name("lake"),
            options: MountOptions { endpoint: Some("none".into()), ..MountOptions::default() },
        },
        // Of a mount that is not there, which who administers `lake` may administer too.
        AdminRequest::MountRemove { name: name("gone") },
        AdminRequest::PinAdd { path: "/lake/x".parse().unwrap() },
        AdminRequest::PinRemove { path: "/lake/none".parse().unwrap() },
        AdminRequest::Drain { worker: WorkerId(1), draining: true },
        AdminRequest::TokenAdd { name: "none".into(), grant: nothing, keys },
        AdminRequest::TokenRemove { name: "none".into() },
        AdminRequest::Tokens,
    ])
}

pub fn member_requests() -> Vec<MemberRequest> {
    // At no address, which is told to whoever may say so.
    let nowhere = WorkerInfo::new(WorkerId(7), HostId("none".into()), "none");
    of_every_kind(vec![
        MemberRequest::Register(nowhere),
        MemberRequest::Leave(WorkerId(1)),
        MemberRequest::News(WorkerId(1)),
        MemberRequest::PassRoot { from: WorkerId(1), to: WorkerId(2) },
        MemberRequest::Scheduler { serves: "127.0.0.1:1".into() },
        MemberRequest::Credentials,
        MemberRequest::Heartbeat(Heartbeat::silent(WorkerId(1))),
    ])
}

pub fn of_data(request: &DataRequest) -> Takes {
    match request {
        DataRequest::Attach => Takes::ReadingAll,
        DataRequest::Open { .. }
        | DataRequest::List { .. }
        | DataRequest::Read { .. }
        | DataRequest::ReadLatest { .. }
        | DataRequest::ReadObject { .. }
        | DataRequest::ReadCell { .. }
        | DataRequest::SelectRows(_)
        | DataRequest::Stat { .. }
        | DataRequest::Refresh { .. }
        | DataRequest::AskShard { .. }
        | DataRequest::GetRecords(_)
        | DataRequest::Shards { .. }
        | DataRequest::Prefetch { keep: false, .. } => Takes::Reading,
        DataRequest::Prefetch { keep: true, .. } | DataRequest::TierOrder(_) => Takes::Administering,
        DataRequest::Put { .. }
        | DataRequest::PutBegin { .. }
        | DataRequest::Delete { .. }
        | DataRequest::Changed { .. }
        | DataRequest::ChangeShard { .. }
        | DataRequest::MergeShard { .. } => Takes::Writing,
        DataRequest::PutPart { .. } | DataRequest::PutCommit { .. } | DataRequest::PutAbort { .. } => Takes::WritingOn,
        DataRequest::Drafts { call, .. } => match call {
            DraftCall::Open { .. } => Takes::Writing,
            DraftCall::Begin { .. } => Takes::Serving,
            DraftCall::End => Takes::WritingOn,
        },
        DataRequest::Free { .. } | DataRequest::Keep { .. } | DataRequest::Accesses(_) => Takes::AdministeringAll,
        DataRequest::Held { .. }
        | DataRequest::Present { .. }
        | DataRequest::Departed { .. }
        | DataRequest::Report
        | DataRequest::Queue
        | DataRequest::Ring => Takes::Anything,
    }
}

pub fn dataset() -> DatasetId {
    DatasetId { mount: LAKE, folder: Key::new("t.shards").unwrap(), manifest: 1, tag: 1 }
}

pub fn data_requests() -> Vec<DataRequest> {
    let (operation, mount, range, in_place) = (OperationId(1), LAKE, RangeSpec::From { start: 0 }, false);
    let prefetch = |keep| {
        let (ranges, standing) = (vec![(0, 10)], Standing::default());
        DataRequest::Prefetch { operation, version: version(), ranges, keep, urgent: false, hold_ms: 10, standing }
    };
    let segments = || vec![SegmentId(1)];
    let drafts = |call| DataRequest::Drafts { operation, call };
    of_every_kind(vec![
        DataRequest::Attach,
        DataRequest::Open { mount, key: key() },
        DataRequest::List { mount, prefix: Key::new("").unwrap(), folders: false, after: None, limit: 1 },
        DataRequest::Read { operation, version: version(), start: 0, len: 1, in_place },
        DataRequest::ReadLatest { operation, mount, key: key(), range, in_place },
        DataRequest::ReadObject { operation, mount, key: key(), range, first: 1, complete: false, in_place },
        DataRequest::ReadCell { operation, version: version(), form: None, row_group: 0, column: 0, in_place },
        DataRequest::SelectRows(crate::cells::rows_of(operation, &version(), &[0], vec![])),
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
        DataRequest::ChangeShard { dataset: dataset(), shard: 0, call: 1, within_ms: 100, after: None },
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
        // Before any are open, so that nothing begins.
        drafts(DraftCall::Begin { mount, key: key() }),
        drafts(DraftCall::Open { mount, below: key() }),
        drafts(DraftCall::End),
        DataRequest::Free { segments: segments() },
        DataRequest::Keep { segments: segments(), keep: true },
        DataRequest::TierOrder(TierOrder::of_all(&[version()], TierDeed::Free).remove(0)),
        DataRequest::Held { segments: segments() },
        DataRequest::Present { runs: vec![(SegmentId(1), PageRun { start: 0, len: 1 })] },
        DataRequest::Departed { since: 0, within_ms: 1 },
        DataRequest::Accesses(WantedAccesses { since: 0, one_in: 1, within_ms: 1 }),
        DataRequest::Report,
        DataRequest::Queue,
        DataRequest::Ring,
    ])
}

pub fn of_node(op: &NodeOp<'_>) -> Takes {
    match op {
        NodeOp::Get
        | NodeOp::GetMany { .. }
        | NodeOp::Stat
        | NodeOp::Usage
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
        | NodeOp::SetQuota { .. }
        | NodeOp::WasDone { .. }
        | NodeOp::BlockWrite { .. }
        | NodeOp::Prepare { descriptor: false, .. }
        | NodeOp::Written { .. } => Takes::WritingTmp,
        NodeOp::Prepare { descriptor: true, .. } => Takes::WritingAll,
    }
}

pub const BLOCK: BlockRef = BlockRef { worker: 1, number: 1, len: 1 };

pub fn node_ops() -> Vec<NodeOp<'static>> {
    of_every_kind(vec![
        NodeOp::Get,
        NodeOp::GetMany { names: vec!["k"] },
        NodeOp::Stat,
        NodeOp::Usage,
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
        NodeOp::SetQuota { bytes: None },
        NodeOp::WasDone { number: CallNumber { client: 1, slot: 2, turn: 3 }, within_ms: 1 },
        NodeOp::BlockWrite { class: StorageClass::Dram },
        NodeOp::Prepare { bytes: 1, descriptor: false },
        NodeOp::Prepare { bytes: 1, descriptor: true },
        NodeOp::Written { pin: 999 },
    ])
}

/// What workers say to each other, which nobody else may: of a container that there is not.
pub fn peer_ops() -> Vec<PeerOp<'static>> {
    let none = DirId { worker: 1, number: 999 };
    let affinity = Affinity { class: StorageClass::Dram, location: forebay_nodes::Location::default() };
    of_every_kind(vec![
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
        PeerOp::BlockKeep { class: StorageClass::Dram },
        PeerOp::BlockClaim { claims: vec![] },
        PeerOp::BlockUnclaim { claims: vec![] },
    ])
}

/// The same about what is cached.
pub fn peer_requests() -> Vec<PeerRequest> {
    of_every_kind(vec![
        PeerRequest::Copy { segment: SegmentId(1), start: 0, pages: 1 },
        PeerRequest::Form { form: FormId(1) },
        PeerRequest::Coming { mount: LAKE, key: key(), records: vec![1] },
        PeerRequest::Missed { asker: WorkerId(1), segment: SegmentId(1), start: 0, pages: 1 },
        PeerRequest::ShardHeld { shard: 1 },
        PeerRequest::ShardPart { shard: 1, file: 0, start: 0, bytes: 1 },
        PeerRequest::ClaimBegin { claim: 1, writer: WorkerId(1), mount: LAKE, key: key() },
        PeerRequest::ClaimKeep { claim: 1, number: 1 },
        PeerRequest::ClaimKept { claim: 1, from: 1, close: true, mount: LAKE, key: key() },
        PeerRequest::ClaimEnd { claim: 1, mount: LAKE, key: key() },
        PeerRequest::Came { info: ObjectInfo { version: version(), modified_ms: 1 } },
    ])
}

pub fn name(name: &str) -> MountName {
    name.parse().unwrap()
}

pub fn of_notice(notice: &DataNotice) -> Takes {
    match notice {
        DataNotice::Unpin { .. } | DataNotice::Ended { .. } => Takes::Anything,
    }
}
