//! The heads of objects that were read, as they are sent.

use std::num::NonZeroUsize;
use std::sync::Arc;

use forebay_client::Handed;
use forebay_types::{Attributes, Key, MountId, ObjectInfo, RouteKey};
use http::header::CONTENT_LENGTH;
use lru::LruCache;
use parking_lot::Mutex;

use super::body::AnswerBody;
use super::head::Head;
use crate::dialect::Query;

/// Objects whose heads are kept at most, and the longest that are.
const KEPT_MAX: usize = 16 << 10;
const HEAD_BYTES_MAX: usize = 2 << 10;
/// Locks, so that connections seldom wait for each other.
const SHARDS: usize = 16;

/// The headers that answers to reads of an object have in common, as they are sent. One is good for as long as the worker
/// hands out the very same version and attributes: it says what is current, not this.
pub(crate) struct Heads {
    shards: [Mutex<LruCache<(MountId, Key), Kept>>; SHARDS],
}

struct Kept {
    info: ObjectInfo,
    attributes: Arc<Attributes>,
    plain: Arc<[u8]>,
    /// With the checksums of the whole.
    complete: Arc<[u8]>,
}

impl Default for Heads {
    fn default() -> Self {
        let each = NonZeroUsize::new(KEPT_MAX / SHARDS).expect("not 0");
        Self { shards: std::array::from_fn(|_| Mutex::new(LruCache::new(each))) }
    }
}

impl Heads {
    /// The headers of an answer with this object, but for those that say how much of it comes. None for one that can't be
    /// said so, or not shortly.
    pub(crate) fn of(&self, handed: &Handed, complete: bool) -> Option<Arc<[u8]>> {
        let version = &handed.info.version;
        let shard = RouteKey::of(version.mount, &version.key, 0).0 as usize % SHARDS;
        let name = (version.mount, version.key.clone());
        let choose = |kept: &Kept| if complete { Arc::clone(&kept.complete) } else { Arc::clone(&kept.plain) };
        if let Some(kept) = self.shards[shard].lock().get(&name)
            && Arc::ptr_eq(&kept.attributes, &handed.attributes)
            && kept.info == handed.info
        {
            return Some(choose(kept));
        }
        let kept = Kept {
            info: handed.info.clone(),
            attributes: Arc::clone(&handed.attributes),
            plain: written(handed, false)?,
            complete: written(handed, true)?,
        };
        let chosen = choose(&kept);
        self.shards[shard].lock().put(name, kept);
        Some(chosen)
    }
}

fn written(handed: &Handed, checksums: bool) -> Option<Arc<[u8]>> {
    let head = Head { query: &Query::default(), info: &handed.info, attributes: &handed.attributes, range: None, checksums };
    let answer = head.answer(AnswerBody::empty()).ok()?;
    // A store that says what the gateway says itself is not in the way of it there.
    if ["connection", "date", "server", "x-amz-request-id"].iter().any(|name| answer.headers().contains_key(*name)) {
        return None;
    }
    let mut out = Vec::new();
    for (name, value) in answer.headers().iter().filter(|(name, _)| *name != CONTENT_LENGTH) {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    (out.len() <= HEAD_BYTES_MAX).then(|| out.into())
}
