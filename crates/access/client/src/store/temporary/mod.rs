//! Temporary nodes as objects of a store: `tmp/KEY` is the file or value `/tmp/KEY`, at the version that was looked at.
//!
//! Owns: where the bytes of objects lie, each at the version that was looked at last, and what a store is told of nodes: versions,
//! conditions, errors.
//!
//! Never does: give bytes of another version than was asked for, or take a container for an object.
//!
//! Start with [`Temporary::open`] and [`Temporary::read`].

mod listing;
mod upload;

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_nodes::{Condition, NodeError, NodeErrorKind, NodeResult, NodeType};
use forebay_protocol::{PutCondition, RangeSpec};
use forebay_types::{Error, ErrorKind, ForebayPath, Key, MountId, ObjectInfo, ObjectVersion, Result, ResultExt};
use lru::LruCache;
use parking_lot::Mutex;

use crate::nodes::{NODE_VALUE_BYTES_MAX, NodeDraft, NodeSnapshot, Nodes, node_etag, node_tag};

pub(super) use listing::{folder, list};
pub(super) use upload::TemporaryUpload;

/// Objects of which it is kept where their bytes are.
const KNOWN_MAX: usize = 1024;
/// How often an object is looked at that is replaced while it is read.
const LOOKS_MAX: usize = 8;

/// Temporary nodes as one store reads and writes them. Nothing of their bytes is kept but small ones that came with what was looked at.
#[derive(Clone)]
pub(crate) struct Temporary {
    nodes: Nodes,
    /// Where the bytes of objects are, each at the version that was looked at last.
    known: Arc<Mutex<LruCache<Key, Arc<Known>>>>,
}

/// An object at one version.
struct Known {
    tag: u128,
    snapshot: NodeSnapshot,
}

impl Temporary {
    pub(crate) fn new(nodes: Nodes) -> Self {
        // Bounded by hand: most stores never see any, and room for all would be made at once.
        Self { nodes, known: Arc::new(Mutex::new(LruCache::unbounded())) }
    }

    /// What is there now.
    pub(super) async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        let known = self.look(path).await?;
        Ok(info(path, known.snapshot.len(), known.tag))
    }

    /// Bytes of what is there now, and which they are.
    pub(super) async fn read_latest(&self, path: &ForebayPath, range: RangeSpec) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        let mut looks = 1;
        loop {
            let info = self.open(path).await?;
            let range = range.within(info.version.size).context(|| path.to_string())?;
            match self.read(path, &info.version, range.clone()).await {
                Err(error) if error.kind() == ErrorKind::Conflict && looks < LOOKS_MAX => looks += 1,
                read => return read.map(|bytes| (info, range, bytes)),
            }
        }
    }

    /// Bytes of one version: `Conflict` where there is another one by now, or none.
    pub(super) async fn read(&self, path: &ForebayPath, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        let known = if let Some(known) = self.known(path, version) { known } else { self.find(path, version).await? };
        if range.start > range.end || range.end > known.snapshot.len() {
            let (len, Range { start, end }) = (known.snapshot.len(), range);
            return Err(Error::invalid(format!("{path}: it has {len} bytes, the range is {start}..{end}")));
        }
        match bytes_of(&known.snapshot, range).await {
            Err(error) if error.kind == NodeErrorKind::DataLost => {
                // Blocks are given up when an object is replaced, and lie elsewhere once a worker was drained: those are other versions.
                self.find(path, version).await?;
                Err(told(path, error))
            }
            read => read.map_err(|error| told(path, error)),
        }
    }

    /// Writes an object, and the folders on the way to it; it replaces what was there at once, whole.
    pub(super) async fn put(&self, path: &ForebayPath, value: Bytes, condition: PutCondition) -> Result<ObjectInfo> {
        let kind = if value.len() <= NODE_VALUE_BYTES_MAX { NodeType::KeyValue } else { NodeType::File };
        let mut draft = match self.draft(path, kind).await {
            // A bag holds files alone, a table values.
            Err(error) if error.kind == NodeErrorKind::WrongType => {
                let other = if kind == NodeType::File { NodeType::KeyValue } else { NodeType::File };
                self.draft(path, other).await
            }
            draft => draft,
        }
        .map_err(|error| told(path, error))?;
        draft.write(value).await.map_err(|error| told(path, error))?;
        self.place(path, draft, condition).await
    }

    /// A file that takes its place when it is whole.
    pub(super) async fn file(&self, path: &ForebayPath) -> Result<NodeDraft> {
        self.draft(path, NodeType::File).await.map_err(|error| told(path, error))
    }

    /// Adds bytes to it.
    pub(super) async fn add(&self, path: &ForebayPath, draft: &mut NodeDraft, bytes: Bytes) -> Result<()> {
        draft.write(bytes).await.map_err(|error| told(path, error))
    }

    /// What was added is kept for however long no more comes.
    pub(super) async fn settle(&self, path: &ForebayPath, draft: &mut NodeDraft) -> Result<()> {
        draft.settle().await.map_err(|error| told(path, error))
    }

    /// What was drafted takes its place.
    pub(super) async fn place(&self, path: &ForebayPath, mut draft: NodeDraft, condition: PutCondition) -> Result<ObjectInfo> {
        let condition = match condition {
            PutCondition::Any => Condition::Any,
            PutCondition::Absent => Condition::Absent,
            PutCondition::Version(etag) => match node_tag(&etag) {
                Some(tag) => Condition::Tag(tag),
                None => return Err(Error::conflict(format!("{path}: it has another ETag"))),
            },
        };
        let placed = async {
            let (bytes, tag) = draft.finish().await?;
            draft.take_place(condition).await?;
            Ok::<_, NodeError>(info(path, bytes, tag))
        };
        let placed = placed.await;
        if placed.is_err() {
            draft.discard().await;
        }
        placed.map_err(|error| told(path, error))
    }

    /// Deletes a file or value; one that is not there is no error.
    pub(super) async fn delete(&self, path: &ForebayPath) -> Result<()> {
        let node = path.to_string();
        let deleted = match self.nodes.stat(&node).await {
            Ok(Some(stat)) if !stat.kind.is_container() => self.nodes.delete(&node, false).await,
            stat => stat.map(drop),
        };
        match deleted {
            Err(error) if error.kind != NodeErrorKind::NotFound => Err(told(path, error)),
            _ => Ok(()),
        }
    }

    async fn draft(&self, path: &ForebayPath, kind: NodeType) -> NodeResult<NodeDraft> {
        debug_assert!(path.mount().is_temporary(), "{path} is below a mount");
        let node = path.to_string();
        self.nodes.make_folders(&node).await?;
        self.nodes.draft(&node, kind).await
    }

    fn known(&self, path: &ForebayPath, version: &ObjectVersion) -> Option<Arc<Known>> {
        let tag = node_tag(&version.tag)?;
        self.known.lock().get(path.key()).filter(|known| known.tag == tag).cloned()
    }

    /// The version, if it is still there.
    async fn find(&self, path: &ForebayPath, version: &ObjectVersion) -> Result<Arc<Known>> {
        match self.look(path).await {
            Ok(known) if node_tag(&version.tag) == Some(known.tag) => Ok(known),
            Ok(_) => Err(Error::conflict(format!("{path}: it was replaced while it was read: read it again"))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::conflict(format!("{path}: it was deleted while it was read")))
            }
            Err(error) => Err(error),
        }
    }

    /// Where the bytes of what is there now are.
    async fn look(&self, path: &ForebayPath) -> Result<Arc<Known>> {
        debug_assert!(path.mount().is_temporary(), "{path} is below a mount");
        let snapshot = match self.nodes.snapshot(&path.to_string()).await {
            // Folders are no objects, and nothing is below one.
            Err(error) if matches!(error.kind, NodeErrorKind::WrongType | NodeErrorKind::NotContainer) => {
                return Err(Error::not_found(error.message));
            }
            snapshot => snapshot.map_err(|error| told(path, error))?,
        };
        let known = Arc::new(Known { tag: snapshot.tag(), snapshot });
        let mut all = self.known.lock();
        all.put(path.key().clone(), Arc::clone(&known));
        if all.len() > KNOWN_MAX {
            all.pop_lru();
        }
        Ok(known)
    }
}

/// What is told of an object. Nodes have no times.
fn info(path: &ForebayPath, size: u64, tag: u128) -> ObjectInfo {
    let version = ObjectVersion { mount: MountId::TEMPORARY, key: path.key().clone(), tag: node_etag(tag), size };
    ObjectInfo { version, modified_ms: 0 }
}

/// An error of a node, which names it.
fn told(path: &ForebayPath, error: NodeError) -> Error {
    let path = path.to_string();
    if error.message.contains(&path) { error.into() } else { Error::from(error).context(path) }
}

/// A range of an object, without a copy where it lies together.
async fn bytes_of(snapshot: &NodeSnapshot, range: Range<u64>) -> NodeResult<Bytes> {
    let bytes = range.end - range.start;
    let mut reader = snapshot.read(range)?;
    let first = reader.next().await?.unwrap_or_default();
    if first.len() as u64 == bytes {
        return Ok(first);
    }
    let mut all = BytesMut::with_capacity(bytes as usize);
    all.extend_from_slice(&first);
    while let Some(next) = reader.next().await? {
        all.extend_from_slice(&next);
    }
    assert_eq!(all.len() as u64, bytes, "a range of what was looked at is read whole, or not at all");
    Ok(all.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_path_once() {
        let path = ForebayPath::parse_any("/tmp/a/b").unwrap();
        for message in ["worker 3, which had it, is gone", "/tmp/a/b: worker 3, which had it, is gone"] {
            let error = told(&path, NodeError::new(NodeErrorKind::DataLost, message));
            assert_eq!((error.kind(), error.message().matches("/tmp/a/b").count()), (ErrorKind::DataLost, 1));
        }
    }
}
