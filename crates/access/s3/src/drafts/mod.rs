//! Objects that come in parts, on mounts whose store has no such thing. Parts wait in temporary files of this machine, which
//! are gone with the process: an upload that is not completed leaves nothing. All of them together have one bound of bytes.

mod disk;
mod part;
mod share;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::time::{Duration, Instant};

use forebay_transport::some_descriptors;
use forebay_types::{Key, MountId};
use parking_lot::Mutex;

use crate::answer::now_ms;
use crate::dialect::{S3Error, S3Result};

use disk::{Disk, PARTS_MAX, Taken};
pub(crate) use part::{Part, join};
use share::{UPLOADS_MAX, may_begin};

/// After so long without a new part an upload counts as given up when room is needed.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);
/// Uploads that are remembered after they have become objects.
const DONE_MAX: usize = 1000;

/// The uploads that are under way, by their ids, and the disk that their parts take.
pub(crate) struct Drafts {
    uploads: Mutex<HashMap<String, Draft>>,
    done: Mutex<VecDeque<Done>>,
    disk: Disk,
}

/// An upload that has become an object: who asks for that again, as his answer was lost, is answered as the first time.
struct Done {
    id: String,
    object: (MountId, Key),
    /// Of the parts that were named.
    print: u64,
    etag: String,
}

struct Draft {
    object: (MountId, Key),
    /// Who has begun it.
    by: String,
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
    /// None yet, whose parts may take so many bytes of disk together.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let disk = Disk::new(bytes_max, some_descriptors(PARTS_MAX));
        Self { uploads: Mutex::default(), done: Mutex::default(), disk }
    }

    /// Begins one for who asks, and gives its id. `SlowDown` when there are too many, or too many of his.
    pub(crate) fn begin(&self, by: String, object: (MountId, Key)) -> S3Result<String> {
        let own = |drafts: &HashMap<String, Draft>| drafts.values().filter(|draft| draft.by == by).count();
        let is_full = |drafts: &HashMap<String, Draft>| !may_begin(own(drafts), drafts.len());
        if is_full(&self.uploads.lock()) {
            self.forget(FORGOTTEN);
        }
        let mut drafts = self.uploads.lock();
        if is_full(&drafts) {
            let own = own(&drafts);
            let message = format!(
                "{own} uploads in parts of yours are not completed, and of {UPLOADS_MAX} in all no more are left for you: \
                 complete or abort some, or try again later."
            );
            return Err(S3Error::slow_down().saying(message));
        }
        let id = format!("{:032x}", forebay_runtime::random::<u128>());
        let (begun_ms, used) = (now_ms(), forebay_runtime::now());
        drafts.insert(id.clone(), Draft { object, by, begun_ms, used, parts: BTreeMap::new(), completing: false });
        assert!(drafts.len() <= UPLOADS_MAX, "{} uploads are open", drafts.len());
        Ok(id)
    }

    /// `NoSuchUpload` when this is none of that object.
    pub(crate) fn check(&self, object: (MountId, &Key), id: &str) -> S3Result<()> {
        self.with(object, id, |_| ())
    }

    /// Room for a part of this number, before any of it comes. `EntityTooLarge` when its upload with it is more than all parts may take,
    /// `SlowDown` when those that wait leave too little.
    pub(crate) fn room(&self, object: (MountId, &Key), id: &str, number: u32, bytes: u64) -> S3Result<Taken> {
        let bytes_max = self.disk.bytes_max;
        let others = |draft: &mut Draft| {
            let others = draft.parts.iter().filter(|(other, _)| **other != number);
            others.map(|(_, part)| part.bytes).sum::<u64>()
        };
        if self.with(object, id, others)?.checked_add(bytes).is_none_or(|upload| upload > bytes_max) {
            let message = format!("Parts may take {bytes_max} bytes of the gateway's disk (s3-upload-disk), and these are more.");
            return Err(S3Error::entity_too_large().saying(message));
        }
        if let Some(taken) = self.disk.take(bytes) {
            return Ok(taken);
        }
        self.forget(FORGOTTEN);
        self.disk.take(bytes).ok_or_else(|| {
            tracing::warn!(
                bytes,
                bytes_max,
                "parts of uploads that wait leave no room for another: complete or abort some, or set s3-upload-disk or LimitNOFILE to more"
            );
            S3Error::slow_down()
                .saying("Parts of uploads that are not completed have the gateway's disk (s3-upload-disk). Try again later.")
        })
    }

    /// Lets go uploads that got no part for so long, but for those that are being completed.
    fn forget(&self, idle: Duration) {
        let is_given_up = |draft: &Draft| !draft.completing && draft.used.elapsed() >= idle;
        let gone: Vec<_> = self.uploads.lock().extract_if(|_, draft| is_given_up(draft)).collect();
        // Files go behind the lock that all others take: there may be gigabytes of them.
        drop(gone);
    }

    /// Adds a part, in the place of the one of that number.
    pub(crate) fn put(&self, object: (MountId, &Key), id: &str, number: u32, part: Part) -> S3Result<()> {
        let added = |draft: &mut Draft| {
            draft.used = forebay_runtime::now();
            draft.parts.insert(number, part)
        };
        self.with(object, id, added).map(drop)
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

    /// The ETag of what an upload has become, if it was completed with these parts.
    pub(crate) fn completed(&self, (mount, key): (MountId, &Key), id: &str, named: &[(u32, String)]) -> Option<String> {
        let done = self.done.lock();
        let is_it = |done: &&Done| done.id == id && done.object.0 == mount && done.object.1 == *key && done.print == print(named);
        done.iter().find(is_it).map(|done| done.etag.clone())
    }

    pub(crate) fn abort(&self, object: (MountId, &Key), id: &str) -> S3Result<()> {
        self.check(object, id)?;
        let gone = self.uploads.lock().remove(id);
        // Behind the lock, as there.
        drop(gone);
        Ok(())
    }

    /// Uploads that are here; of parts that wait or are still read how many, and their bytes.
    pub(crate) fn held(&self) -> (usize, (usize, u64)) {
        (self.uploads.lock().len(), self.disk.taken())
    }

    /// The uploads to a mount whose keys begin with a prefix, by key and age.
    pub(crate) fn of(&self, mount: MountId, prefix: &str) -> Vec<Shown> {
        let drafts = self.uploads.lock();
        let of = |draft: &Draft| draft.object.0 == mount && draft.object.1.as_str().starts_with(prefix);
        let shown = drafts.iter().filter(|(_, draft)| of(draft));
        let mut shown: Vec<Shown> =
            shown.map(|(id, draft)| Shown { key: draft.object.1.clone(), begun_ms: draft.begun_ms, id: id.clone() }).collect();
        shown.sort_by(|a, b| (&a.key, a.begun_ms).cmp(&(&b.key, b.begun_ms)));
        shown
    }

    fn with<T>(&self, (mount, key): (MountId, &Key), id: &str, look: impl FnOnce(&mut Draft) -> T) -> S3Result<T> {
        let mut drafts = self.uploads.lock();
        let of = |draft: &&mut Draft| draft.object.0 == mount && draft.object.1 == *key;
        let draft = drafts.get_mut(id).filter(of).ok_or_else(S3Error::no_such_upload)?;
        Ok(look(draft))
    }
}

/// A draft that is being completed, by nobody else until this is dropped.
pub(crate) struct Completing<'a> {
    drafts: &'a Drafts,
    id: String,
}

impl Completing<'_> {
    /// The object is there, of the parts that were named: nothing is left of the draft.
    pub(crate) fn done(self, named: &[(u32, String)], etag: &str) {
        let object = self.drafts.uploads.lock().get(&self.id).map(|draft| draft.object.clone());
        if let Some(object) = object {
            let mut done = self.drafts.done.lock();
            if done.len() >= DONE_MAX {
                done.pop_front();
            }
            done.push_back(Done { id: self.id.clone(), object, print: print(named), etag: etag.to_string() });
        }
        // Not before it is remembered: who asks meanwhile finds one or the other.
        let gone = self.drafts.uploads.lock().remove(&self.id);
        debug_assert!(gone.as_ref().is_none_or(|draft| draft.completing), "who ends an upload has begun to");
        drop(gone);
    }
}

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        // It is not there any more when it was completed.
        if let Some(draft) = self.drafts.uploads.lock().get_mut(&self.id) {
            debug_assert!(draft.completing, "an upload is completed by one at a time");
            draft.completing = false;
        }
    }
}

fn print(named: &[(u32, String)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    named.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::StreamExt;

    use super::*;
    use crate::body::{BodyError, Pieces, body_of};

    const KEY: &str = "a/b";

    fn key() -> Key {
        Key::new(KEY).unwrap()
    }

    /// Begins an upload with one part of so many bytes.
    async fn with_part(drafts: &Drafts, bytes: usize) -> String {
        let id = drafts.begin("anybody".into(), (MountId(1), key())).unwrap();
        add_part(drafts, &id, 1, bytes).await;
        id
    }

    async fn add_part(drafts: &Drafts, id: &str, number: u32, bytes: usize) {
        let (pieces, length) = body_of(Bytes::from(vec![7; bytes]));
        let room = drafts.room((MountId(1), &key()), id, number, length).unwrap();
        drafts.put((MountId(1), &key()), id, number, Part::receive(pieces, length, room).await.unwrap()).unwrap();
    }

    /// What a part is refused with that a new upload begins with.
    fn refusal(drafts: &Drafts, bytes: u64) -> &'static str {
        let id = drafts.begin("anybody".into(), (MountId(1), key())).unwrap();
        let refused = refusal_of(drafts, &id, 1, bytes);
        drafts.abort((MountId(1), &key()), &id).unwrap();
        refused
    }

    fn refusal_of(drafts: &Drafts, id: &str, number: u32, bytes: u64) -> &'static str {
        drafts.room((MountId(1), &key()), id, number, bytes).err().map_or("", |error| error.code)
    }

    #[tokio::test]
    async fn an_upload_that_is_larger_than_the_disk_is_told_so_and_not_to_come_again() {
        let drafts = Drafts::new(1000);
        let id = with_part(&drafts, 600).await;
        assert_eq!((refusal_of(&drafts, &id, 2, 400), refusal_of(&drafts, &id, 2, 401)), ("", "EntityTooLarge"));
        assert_eq!(refusal_of(&drafts, &id, 1, 1000), "SlowDown", "the part that it is to replace is there until then");
        assert_eq!(refusal_of(&drafts, &id, 2, u64::MAX), "EntityTooLarge");
        let other = with_part(&drafts, 300).await;
        assert_eq!(refusal_of(&drafts, &id, 2, 400), "SlowDown", "the others' parts go away");
        assert_eq!(refusal_of(&drafts, &"0".repeat(32), 1, 1), "NoSuchUpload");
        add_part(&drafts, &other, 2, 100).await;
        assert_eq!(refusal_of(&drafts, &other, 3, 601), "EntityTooLarge");
        assert_eq!(drafts.held(), (2, (3, 1000)));
    }

    #[tokio::test]
    async fn only_a_part_keeps_an_upload_from_being_forgotten() {
        let drafts = Drafts::new(1000);
        let id = with_part(&drafts, 600).await;
        let used = || drafts.uploads.lock()[&id].used;
        let first = used();
        forebay_runtime::time::sleep(Duration::from_millis(2)).await;
        drafts.check((MountId(1), &key()), &id).unwrap();
        assert_eq!(refusal_of(&drafts, &id, 2, 1), "");
        assert_eq!(used(), first, "who only asks again and again has given nothing");
        add_part(&drafts, &id, 2, 1).await;
        assert!(used() > first);
    }

    #[tokio::test]
    async fn parts_of_all_uploads_have_one_bound_and_give_it_back_however_they_end() {
        let drafts = Drafts::new(1000);
        let place = key();
        let first = with_part(&drafts, 600).await;
        let second = with_part(&drafts, 400).await;
        assert_eq!((refusal(&drafts, 1), refusal(&drafts, 1001)), ("SlowDown", "EntityTooLarge"));
        drafts.abort((MountId(1), &place), &first).unwrap();
        assert_eq!((refusal(&drafts, 600), refusal(&drafts, 601)), ("", "SlowDown"));
        let choose = |parts: &BTreeMap<u32, Part>| Ok(parts.values().cloned().collect());
        let (parts, completing) = drafts.complete((MountId(1), &place), &second, choose).unwrap();
        completing.done(&[], "\"tag\"");
        assert_eq!(refusal(&drafts, 601), "SlowDown", "its bytes are still read");
        drop(parts);
        assert!(drafts.disk.is_free());
        with_part(&drafts, 1000).await;
        drafts.forget(FORGOTTEN);
        assert_eq!(refusal(&drafts, 1), "SlowDown", "it is not forgotten yet");
        drafts.forget(Duration::ZERO);
        assert!(drafts.disk.is_free());
    }

    #[tokio::test]
    async fn others_go_on_while_the_files_of_an_upload_go() {
        let drafts = Drafts::new(1000);
        let (gone, other) = (with_part(&drafts, 600).await, with_part(&drafts, 1).await);
        let slow = drafts.disk.hold();
        std::thread::scope(|scope| {
            scope.spawn(|| drafts.abort((MountId(1), &key()), &gone).unwrap());
            let look = || drafts.uploads.try_lock_for(Duration::from_millis(1));
            let began = forebay_runtime::now();
            while look().is_none_or(|uploads| uploads.contains_key(&gone)) {
                assert!(began.elapsed() < Duration::from_secs(10), "all others wait for its files");
            }
            drafts.check((MountId(1), &key()), &other).unwrap();
            drop(slow);
        });
    }

    #[tokio::test]
    async fn what_was_completed_is_known_for_a_while() {
        let drafts = Drafts::new(1000);
        let choose = |parts: &BTreeMap<u32, Part>| Ok(parts.values().cloned().collect());
        let named = |number: u32| [(number, "tag".to_string())];
        let mut first = None;
        for _ in 0..=DONE_MAX {
            let id = with_part(&drafts, 1).await;
            let (_, completing) = drafts.complete((MountId(1), &key()), &id, choose).unwrap();
            assert_eq!(drafts.completed((MountId(1), &key()), &id, &named(1)), None, "not yet");
            drafts.forget(Duration::ZERO);
            completing.done(&named(1), &id);
            assert_eq!(drafts.completed((MountId(1), &key()), &id, &named(1)).as_deref(), Some(id.as_str()));
            assert_eq!(drafts.completed((MountId(2), &key()), &id, &named(1)), None, "of another mount");
            assert_eq!(drafts.completed((MountId(1), &Key::new("a").unwrap()), &id, &named(1)), None, "of another object");
            assert_eq!(drafts.completed((MountId(1), &key()), &id, &named(2)), None, "of other parts");
            first = first.or(Some(id));
        }
        assert_eq!(drafts.completed((MountId(1), &key()), &first.unwrap(), &named(1)), None, "one makes room for another");
        assert_eq!(drafts.done.lock().len(), DONE_MAX);
    }

    #[tokio::test]
    async fn a_part_that_does_not_come_whole_leaves_nothing() {
        let drafts = Drafts::new(1000);
        let id = drafts.begin("anybody".into(), (MountId(1), key())).unwrap();
        let room = || drafts.room((MountId(1), &key()), &id, 1, 8).unwrap();
        let broken: Vec<Result<Bytes, BodyError>> = vec![Ok(Bytes::from_static(b"half")), Err("the connection ended".into())];
        let pieces: Pieces = futures::stream::iter(broken).boxed();
        assert!(Part::receive(pieces, 8, room()).await.is_err());
        assert!(drafts.disk.is_free());
        // Nor does one whose upload is gone meanwhile.
        let part = Part::receive(body_of(Bytes::from_static(b"all of 8")).0, 8, room()).await.unwrap();
        drafts.abort((MountId(1), &key()), &id).unwrap();
        assert!(drafts.put((MountId(1), &key()), &id, 1, part).is_err());
        assert!(drafts.disk.is_free());
    }
}
