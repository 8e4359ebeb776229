//! Connections by hand, which keep to the protocol no longer than they like.

use std::path::Path;

use forebay_fuzz::shape;
use forebay_nodes::{Affinity, BlockRef, DirId, NodeType, StorageClass};
use forebay_protocol::{
    DataReply, DataRequest, DatasetId, FRAME_HEADER_BYTES, FrameHeader, FrameKind, PROTOCOL_VERSION, PeerOp, PeerRequest, Raw,
    WantedRecords, decode,
};
use forebay_types::{FormId, Key, MountId, ObjectInfo, ObjectVersion, SegmentId, VersionTag, WorkerId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A connection that has passed the handshake.
pub async fn connect(socket: &Path) -> UnixStream {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(&frame(FrameKind::Hello, 0, &[&[0], [7; 32].as_slice(), &[0]].concat())).await.unwrap();
    message(&mut stream).await;
    stream.write_all(&frame(FrameKind::Hello, 0, &[2, 0])).await.unwrap();
    message(&mut stream).await;
    stream
}

/// A frame without payload.
pub fn frame(kind: FrameKind, tag: u64, meta: &[u8]) -> Vec<u8> {
    let mut header = FrameHeader {
        meta_len: meta.len() as u32,
        payload_len: 0,
        tag,
        kind,
        descriptors: 0,
        version: PROTOCOL_VERSION,
        payload_crc: 0,
        crc: 0,
    };
    header.crc = forebay_types::crc32c_append(forebay_types::crc32c(&header.covered()), meta);
    [&header.to_bytes(), meta].concat()
}

/// Gives frames the checksums that are right of them, as far as their lengths lead, so that the rest is looked at.
pub fn mend(frames: &mut [u8]) {
    let mut at = 0;
    while frames.len() - at >= FRAME_HEADER_BYTES {
        let (payload_crc, crc, meta) = (at + 20, at + 24, at + FRAME_HEADER_BYTES);
        let number = |at: usize| u32::from_le_bytes(frames[at..at + 4].try_into().unwrap()) as usize;
        let payload = meta.saturating_add(number(at)).min(frames.len());
        let end = payload.saturating_add(number(at + 4)).min(frames.len());
        let sum = forebay_types::crc32c(&frames[payload..end]);
        frames[payload_crc..crc].copy_from_slice(&sum.to_le_bytes());
        let sum = forebay_types::crc32c_append(forebay_types::crc32c(&frames[at..crc]), &frames[meta..payload]);
        frames[crc..meta].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
}

/// What came back for frames, in short; none where nothing came.
pub fn came_back(answer: Option<&[u8]>) -> String {
    let Some(bytes) = answer else { return "silence".into() };
    let Some((header, rest)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return if bytes.is_empty() { "the end".into() } else { "a part of a frame".into() };
    };
    let Ok(header) = FrameHeader::from_bytes(header) else { return "a frame of another version".into() };
    let meta = rest.get(..header.meta_len as usize).unwrap_or_default();
    let said = match decode::<DataReply>(meta) {
        Ok(DataReply::Failed { kind, message }) => format!("{kind:?} {}", shape(&message)),
        Ok(reply) => format!("{reply:?}").chars().take_while(char::is_ascii_alphanumeric).collect(),
        Err(_) => "something else".into(),
    };
    format!("{:?} {said}", header.kind)
}

/// The message of the next frame.
pub async fn message(stream: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; FRAME_HEADER_BYTES];
    stream.read_exact(&mut header).await.unwrap();
    let header = FrameHeader::from_bytes(&header).unwrap();
    let mut rest = vec![0; (header.meta_len + header.payload_len) as usize];
    stream.read_exact(&mut rest).await.unwrap();
    rest.truncate(header.meta_len as usize);
    rest
}

/// The bytes that come next; none at the end.
pub async fn message_or_end(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let read = stream.read(&mut bytes).await.unwrap_or(0);
    bytes.truncate(read);
    bytes
}

/// Questions to a shard of a dataset that is not there.
pub fn of_shards(mount: MountId, folder: &Key) -> [DataRequest; 5] {
    let dataset = DatasetId { mount, folder: folder.clone(), manifest: 1, tag: 1 };
    let merge = DataRequest::MergeShard { dataset: dataset.clone(), shard: 0, within_ms: 100 };
    let change = DataRequest::ChangeShard { dataset: dataset.clone(), shard: 0, call: 1, within_ms: 100, after: None };
    let ask = DataRequest::AskShard { dataset: dataset.clone(), shard: 0, within_ms: 100 };
    let (attributes, versioned) = (vec![0, 1], true);
    let wanted = WantedRecords { dataset: dataset.clone(), shard: 0, within_ms: 100, attributes, versioned };
    [ask, DataRequest::GetRecords(wanted), DataRequest::Shards { dataset }, change, merge]
}

/// What workers ask each other about what is cached, and about the logs of shards.
pub fn of_workers(segment: SegmentId, mount: MountId) -> [PeerRequest; 11] {
    let key = || Key::new("x/log/0123456789abcdef/0001-0000000001").unwrap();
    let (shard, claim) = (7, 7);
    // As nothing comes with it where it is tried by its bytes alone.
    let version = ObjectVersion { mount, key: key(), tag: VersionTag::etag("\"e1\""), size: 0 };
    let info = ObjectInfo { version, modified_ms: 1 };
    [
        PeerRequest::Copy { segment, start: 0, pages: 300 },
        PeerRequest::Form { form: FormId(7) },
        PeerRequest::Coming { mount, key: key(), records: vec![1, u64::MAX] },
        PeerRequest::Missed { asker: WorkerId(1), segment, start: 0, pages: 300 },
        PeerRequest::ShardHeld { shard },
        PeerRequest::ShardPart { shard, file: 0, start: 0, bytes: 1 << 20 },
        PeerRequest::ClaimBegin { claim, writer: WorkerId(77), mount, key: key() },
        PeerRequest::ClaimKeep { claim, number: 2 },
        PeerRequest::ClaimKept { claim, from: 2, close: false, mount, key: key() },
        PeerRequest::ClaimEnd { claim, mount, key: key() },
        PeerRequest::Came { info },
    ]
}

/// What workers ask each other about temporary nodes.
pub fn of_peers(worker: u64, dir: DirId, block: BlockRef) -> Vec<PeerOp<'static>> {
    let affinity = Affinity { class: StorageClass::Dram, location: Default::default() };
    let value = Raw(b"some bytes");
    vec![
        PeerOp::BlockFree { blocks: vec![block] },
        PeerOp::BlockUnknown { blocks: vec![block] },
        PeerOp::Adopt { kind: NodeType::Table, affinity, parent: dir },
        PeerOp::RemoveNodes { recursive: false },
        PeerOp::Reparent { parent: dir },
        PeerOp::Arrive { rename: 5, source: worker, name: "come", node: value },
        PeerOp::Settle { rename: 5, committed: true },
        PeerOp::Outcome { rename: 5 },
        PeerOp::Room,
        PeerOp::TakeOver { source: worker, carton: value },
        PeerOp::TakeOverNodes,
        PeerOp::TakeOverEnd,
        PeerOp::TakeOverDrop,
        PeerOp::TookOver { old: dir, parent: dir },
        PeerOp::Relink { old: dir, new: dir },
        PeerOp::WayUp { outer: dir },
        PeerOp::BlocksOf { worker, limit: 100 },
        PeerOp::BlocksMoved { moved: vec![(block, block)] },
    ]
}
