//! Objects that come in parts, on mounts whose store has no such thing. Parts wait in temporary files of this machine, which
//! are gone with the process: an upload that is not completed leaves nothing.

mod part;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

use forebay_types::{Key, MountId};
use parking_lot::Mutex;

use crate::answer::now_ms;
use crate::dialect::{S3Error, S3Result};

pub(crate) use part::{Part, join};

/// Uploads at once.
const UPLOADS_MAX: usize = 1000;
/// After so long without a new part an upload counts as given up when room is needed.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);

/// The uploads that are under way, by their ids.
#[derive(Default)]
pub(crate) struct Drafts(Mutex<HashMap<String, Draft>>);

struct Draft {
    object: (MountId, Key),
    begun_ms: i64,
    used: Instant,
    parts: BTreeMap<u32, Part>,
    /// Somebody is making the object of it.
    completing: bool,
}

/// An upload as listings show it.
pub(crate) struct Shown {
    pub(crate) key: Key,
    pub(crate) begun_ms: i64,
    pub(crate) id: String,
}

impl Drafts {
    /// Begins one and gives its id. `SlowDown` when there are too many.
    pub(crate) fn begin(&self, object: (MountId, Key)) -> S3Result<String> {
        let mut drafts = self.0.lock();
        if drafts.len() >= UPLOADS_MAX {
            drafts.retain(|_, draft| draft.used.elapsed() < FORGOTTEN);
        }
        if drafts.len() >= UPLOADS_MAX {
            return Err(S3Error::slow_down());
        }
        let id = format!("{:032x}", forebay_runtime::random::<u128>());
        let (begun_ms, used) = (now_ms(), forebay_runtime::now());
        drafts.insert(id.clone(), Draft { object, begun_ms, used, parts: BTreeMap::new(), completing: false });
        Ok(id)
    }

    /// `NoSuchUpload` when this is none of that object.
    pub(crate) fn check(&self, object: (MountId, &Key), id: &str) -> S3Result<()> {
        self.with(object, id, |_| ())
    }

    /// Adds a part, in the place of the one of that number.
    pub(crate) fn put(&self, object: (MountId, &Key), id: &str, number: u32, part: Part) -> S3Result<()> {
        self.with(object, id, |draft| draft.parts.insert(number, part)).map(drop)
    }

    /// Up to `limit` parts after a number, and whether there are more.
    pub(crate) fn parts(
        &self,
        object: (MountId, &Key),
        id: &str,
        after: u32,
        limit: usize,
    ) -> S3Result<(Vec<(u32, Part)>, bool)> {
        let behind = |number: u32| (Bound::Excluded(number), Bound::Unbounded);
        self.with(object, id, |draft| {
            let parts: Vec<_> = draft.parts.range(behind(after)).take(limit).map(|(n, part)| (*n, part.clone())).collect();
            let last = parts.last().map_or(after, |(number, _)| *number);
            (parts, draft.parts.range(behind(last)).next().is_some())
        })
    }

    /// Chooses parts to make the object of, which nobody else does until what is given with them is dropped.
    /// `OperationAborted` when somebody does so already.
    pub(crate) fn complete(
        &self,
        object: (MountId, &Key),
        id: &str,
        choose: impl FnOnce(&BTreeMap<u32, Part>) -> S3Result<Vec<Part>>,
    ) -> S3Result<(Vec<Part>, Completing<'_>)> {
        let parts = self.with(object, id, |draft| {
            if draft.completing {
                return Err(S3Error::operation_aborted());
            }
            let parts = choose(&draft.parts)?;
            draft.completing = true;
            Ok(parts)
        })??;
        Ok((parts, Completing { drafts: self, id: id.to_string() }))
    }

    /// Gives up an upload, with its parts.
    pub(crate) fn abort(&self, object: (MountId, &Key), id: &str) -> S3Result<()> {
        self.check(object, id)?;
        self.0.lock().remove(id);
        Ok(())
    }

    /// The uploads to a mount whose keys begin with a prefix, by key and age.
    pub(crate) fn of(&self, mount: MountId, prefix: &str) -> Vec<Shown> {
        let drafts = self.0.lock();
        let of = |draft: &Draft| draft.object.0 == mount && draft.object.1.as_str().starts_with(prefix);
        let shown = drafts.iter().filter(|(_, draft)| of(draft));
        let mut shown: Vec<Shown> =
            shown.map(|(id, draft)| Shown { key: draft.object.1.clone(), begun_ms: draft.begun_ms, id: id.clone() }).collect();
        shown.sort_by(|a, b| (&a.key, a.begun_ms).cmp(&(&b.key, b.begun_ms)));
        shown
    }

    fn with<T>(&self, (mount, key): (MountId, &Key), id: &str, look: impl FnOnce(&mut Draft) -> T) -> S3Result<T> {
        let mut drafts = self.0.lock();
        let of = |draft: &&mut Draft| draft.object.0 == mount && draft.object.1 == *key;
        let draft = drafts.get_mut(id).filter(of).ok_or_else(S3Error::no_such_upload)?;
        draft.used = forebay_runtime::now();
        Ok(look(draft))
    }
}

/// A draft that is being completed, by nobody else until this is dropped.
pub(crate) struct Completing<'a> {
    drafts: &'a Drafts,
    id: String,
}

impl Completing<'_> {
    /// The object is there: nothing is left of the draft.
    pub(crate) fn done(self) {
        self.drafts.0.lock().remove(&self.id);
    }
}

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        // It is not there any more when it was completed.
        if let Some(draft) = self.drafts.0.lock().get_mut(&self.id) {
            draft.completing = false;
        }
    }
}
