//! One read of one object, as the trait wants it.

use std::ops::Range;

use bytes::Bytes;
use forebay_protocol::RangeSpec;
use forebay_types::{Error, ForebayPath, ObjectInfo, OperationId, SEGMENT_BYTES};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, Result};

use super::errors::{STORE, to_store_error};
use super::paths::{from_store, meta};
use super::versions::Versions;

/// Bytes of one piece of a stream, and pieces under way at once.
const PIECE_BYTES: u64 = 16 << 20;
const PIECES_AT_ONCE: usize = 2;
/// Ranges of one call under way at once.
const RANGES_AT_ONCE: usize = 64;

/// One read of one object.
pub(super) struct Getter<V> {
    versions: V,
    location: Path,
    path: ForebayPath,
    operation: OperationId,
}

impl<V: Versions> Getter<V> {
    pub(super) fn new(versions: V, location: Path) -> Result<Self> {
        let path = from_store(&location)?;
        let operation = versions.operation();
        Ok(Self { versions, location, path, operation })
    }

    /// Answers a get. An object that nobody has opened is read with one request: its version comes with its bytes.
    pub(super) async fn get(self, options: GetOptions) -> Result<GetResult> {
        if options.version.is_some() {
            return Err(object_store::Error::NotSupported { source: "versions of a store are not kept: use its ETag".into() });
        }
        let conditional = options.if_match.is_some()
            || options.if_none_match.is_some()
            || options.if_modified_since.is_some()
            || options.if_unmodified_since.is_some();
        let pinned = match self.versions.pinned(&self.path) {
            None if options.head || conditional => Some(self.open().await?),
            pinned => pinned,
        };
        let (info, first) = if let Some(info) = pinned { (info, None) } else { self.first(options.range.as_ref()).await? };
        let meta = meta(self.location.clone(), &info);
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| to_store_error(self.location.as_ref(), Error::invalid(format!("{}: {error}", self.path))))?,
            None => 0..meta.size,
        };
        let payload = if options.head { stream::empty().boxed() } else { self.pieces(info, range.clone(), first) };
        Ok(GetResult { payload: GetResultPayload::Stream(payload), meta, range, attributes: Default::default() })
    }

    /// All these ranges of one version.
    pub(super) async fn ranges(self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(first) = ranges.first() else { return Ok(Vec::new()) };
        let mut have = None;
        let info = match self.versions.pinned(&self.path) {
            Some(info) => info,
            None => {
                let (info, read) = self.first(Some(&GetRange::Bounded(first.clone()))).await?;
                // Later reads of this call may not see another version.
                have = read.filter(|(range, _)| range.start == first.start && range.end == first.end.min(info.version.size));
                info
            }
        };
        // Owned ranges and one future type: a stream of futures that borrow their item would not be `Send` enough.
        let reads: Vec<_> = ranges
            .iter()
            .cloned()
            .enumerate()
            .map(|(ix, range)| self.range(&info, range, have.as_ref().filter(|_| ix == 0)))
            .collect();
        stream::iter(reads).buffered(RANGES_AT_ONCE).try_collect().await
    }

    /// One range, cut off at the object's end, unless it was read with the version.
    async fn range(&self, info: &ObjectInfo, range: Range<u64>, have: Option<&(Range<u64>, Bytes)>) -> Result<Bytes> {
        if let Some((_, bytes)) = have {
            return Ok(bytes.clone());
        }
        let size = info.version.size;
        if range.start > range.end || (range.start >= size && !range.is_empty()) {
            let (path, start, end) = (&self.path, range.start, range.end);
            return Err(self.error(Error::invalid(format!("{path}: the object has {size} bytes, the range is {start}..{end}"))));
        }
        self.read(info, range.start..range.end.min(size)).await
    }

    /// The whole object, in pieces of at most so many bytes.
    pub(super) async fn stream(self, piece_bytes: u64) -> Result<BoxStream<'static, Result<Bytes>>> {
        let info = if let Some(info) = self.versions.pinned(&self.path) { info } else { self.open().await? };
        let range = 0..info.version.size;
        Ok(self.pieces_of(info, range, piece_bytes))
    }

    async fn open(&self) -> Result<ObjectInfo> {
        let info = self.versions.objects().open(&self.path).await.map_err(|error| self.error(error))?;
        Ok(self.versions.seen(&self.path, info))
    }

    /// Reads the first piece of a range, and with it which version counts; the bytes only if they are of that one.
    async fn first(&self, range: Option<&GetRange>) -> Result<(ObjectInfo, Option<(Range<u64>, Bytes)>)> {
        let range = match range {
            None => RangeSpec::Bounded { start: 0, len: PIECE_BYTES },
            Some(GetRange::Bounded(range)) => {
                let len = range.end.saturating_sub(range.start).min(PIECE_BYTES);
                RangeSpec::Bounded { start: range.start, len }
            }
            Some(GetRange::Offset(start)) => RangeSpec::Bounded { start: *start, len: PIECE_BYTES },
            Some(GetRange::Suffix(len)) => RangeSpec::Suffix { len: *len },
        };
        let read = self.versions.objects().read_latest(self.operation, &self.path, range).await;
        let (info, range, bytes) = read.map_err(|error| self.error(error))?;
        let counts = self.versions.seen(&self.path, info.clone());
        let same = counts.version == info.version;
        Ok((counts, same.then_some((range, bytes))))
    }

    /// The pieces of a range, the first of which may have been read.
    fn pieces(
        self,
        info: ObjectInfo,
        range: Range<u64>,
        first: Option<(Range<u64>, Bytes)>,
    ) -> BoxStream<'static, Result<Bytes>> {
        match first.filter(|(read, _)| read.start == range.start && read.end <= range.end) {
            Some((read, bytes)) => {
                let rest = self.pieces_of(info, read.end..range.end, PIECE_BYTES);
                let first = (!bytes.is_empty()).then_some(Ok(bytes));
                stream::iter(first).chain(rest).boxed()
            }
            None => self.pieces_of(info, range, PIECE_BYTES),
        }
    }

    fn pieces_of(self, info: ObjectInfo, range: Range<u64>, piece_bytes: u64) -> BoxStream<'static, Result<Bytes>> {
        let getter = std::sync::Arc::new(self);
        let info = std::sync::Arc::new(info);
        stream::iter(cut(range, piece_bytes))
            .map(move |piece| {
                let (getter, info) = (getter.clone(), info.clone());
                async move { getter.read(&info, piece).await }
            })
            .buffered(PIECES_AT_ONCE)
            .boxed()
    }

    async fn read(&self, info: &ObjectInfo, range: Range<u64>) -> Result<Bytes> {
        let read = self.versions.objects().read(self.operation, &self.path, &info.version, range).await;
        read.map_err(|error| self.error(error))
    }

    fn error(&self, error: Error) -> object_store::Error {
        to_store_error(self.location.as_ref(), error)
    }
}

/// Cuts a range into pieces that end at borders of pieces, and thus at those of segments too.
fn cut(range: Range<u64>, piece_bytes: u64) -> impl Iterator<Item = Range<u64>> + Send {
    debug_assert!(SEGMENT_BYTES.is_multiple_of(piece_bytes), "{STORE}: pieces don't fit segments");
    let mut at = range.start;
    std::iter::from_fn(move || {
        (at < range.end).then(|| {
            let piece = at..((at / piece_bytes + 1) * piece_bytes).min(range.end);
            at = piece.end;
            piece
        })
    })
}
