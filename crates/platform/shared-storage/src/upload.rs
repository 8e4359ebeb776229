//! Objects too large to be held in memory, in numbered parts of one length.

use bytes::Bytes;
use forebay_runtime::deadline;
use forebay_trace::{Kind, Span};
use forebay_types::{ObjectInfo, Result};

use crate::backend::Parts;
use crate::counters::measured;
use crate::request::PutCondition;

/// An object that is being written in parts. Until [`Self::commit`] nobody sees anything of it.
///
/// Dropping it leaves the parts in shared storage, where they cost money: [`Self::abort`] what isn't committed.
pub struct Upload(Box<dyn Parts>);

impl Upload {
    /// Most parts of an upload.
    pub const PARTS_MAX: u32 = 10_000;

    pub(crate) fn new(parts: Box<dyn Parts>) -> Self {
        Self(parts)
    }

    /// By which [`Storage::abort_upload`](crate::Storage::abort_upload) gives it up when its process has died; none where the storage has
    /// no such ids.
    pub fn id(&self) -> Option<&str> {
        self.0.id()
    }

    /// Bytes of every part but the last, which may have fewer.
    pub fn part_bytes(&self) -> u64 {
        self.0.part_bytes()
    }

    /// Writes the part of this place, counted from 0. Parts may come in any order, several at once; one that is written
    /// again counts as it was written last. `Invalid` from [`Self::PARTS_MAX`] on.
    pub async fn put_part(&self, index: u32, payload: Vec<Bytes>) -> Result<()> {
        let mut span = Span::below(forebay_trace::current(), "storage put part", Kind::Client);
        span.set("forebay.part", || u64::from(index));
        measured("put", self.0.put(index, payload)).await.inspect_err(|error| span.fail(error))
    }

    /// Makes the parts `0..parts` the object. `Invalid` when one of them is missing, `Conflict` when the condition does
    /// not hold. When it fails the parts are removed as far as possible.
    pub async fn commit(self, parts: u32, condition: PutCondition) -> Result<ObjectInfo> {
        self.commit_or_left(parts, condition).await.0
    }

    /// The same; with whether parts may be left in shared storage, because it failed and they could not be removed.
    pub async fn commit_or_left(self, parts: u32, condition: PutCondition) -> (Result<ObjectInfo>, bool) {
        let mut span = Span::below(forebay_trace::current(), "storage commit upload", Kind::Client);
        let committed = measured("put", self.0.commit(parts, &condition)).await.inspect_err(|error| span.fail(error));
        let mut is_left = false;
        if let Err(error) = &committed
            // Parts that stay cost money, whoever waits.
            && let Err(left) = deadline::regardless(self.0.abort()).await
        {
            is_left = true;
            tracing::warn!(%error, %left, "parts of a failed upload may be left in shared storage");
        }
        (committed, is_left)
    }

    /// Removes the parts.
    pub async fn abort(self) -> Result<()> {
        deadline::regardless(self.0.abort()).await
    }
}

forebay_types::shown!(Upload);
