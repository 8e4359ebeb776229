//! Objects in a folder: a file each under a name of its own, so that a key can be any text and an open file stays what
//! it was while the key is written anew; the index of keys is in memory, read from the files at the start. Or all of it in
//! memory alone.

mod draft;
mod fault;
mod listing;
mod place;
mod record;
mod uploads;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::UNIX_EPOCH;

use forebay_runtime::{system_time, unix_ms};
use parking_lot::Mutex;

pub(crate) use draft::Draft;
pub(crate) use fault::StoreError;
pub(crate) use listing::{Page, PageRequest};
pub(crate) use place::Opened;
use place::Place;
use record::Record;
use uploads::Part;
pub(crate) use uploads::Upload;

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) modified_ms: i64,
    pub(crate) content_type: Option<String>,
    place: Place,
}

pub(crate) struct Store {
    folder: PathBuf,
    next_id: AtomicU64,
    /// What is written has no files, and is gone with the server.
    in_memory: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    buckets: BTreeMap<String, Objects>,
    uploads: BTreeMap<String, Upload>,
}

type Objects = BTreeMap<String, Arc<Object>>;

impl Store {
    /// Reads the index from the files that are there and removes what unfinished writes left. What is written from then on is in files
    /// as well, or `in_memory`.
    pub(crate) fn open(folder: &Path, in_memory: bool) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder)?;
        let mut buckets = BTreeMap::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                buckets.insert(name, read_bucket(&entry.path())?);
            }
        }
        let started = system_time().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let state = Mutex::new(State { buckets, uploads: BTreeMap::new() });
        Ok(Self { folder: folder.into(), next_id: AtomicU64::new(started), in_memory, state })
    }

    pub(crate) fn create_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        let legal = (3..=63).contains(&bucket.len())
            && bucket.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'.')
            && !bucket.starts_with('.');
        if !legal {
            return Err(StoreError::BadBucketName(bucket.into()));
        }
        std::fs::create_dir_all(self.folder.join(bucket))?;
        self.state.lock().buckets.entry(bucket.into()).or_default();
        Ok(())
    }

    pub(crate) fn delete_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if !state.objects(bucket)?.is_empty() {
            return Err(StoreError::BucketNotEmpty(bucket.into()));
        }
        state.buckets.remove(bucket);
        std::fs::remove_dir_all(self.folder.join(bucket))?;
        Ok(())
    }

    pub(crate) fn buckets(&self) -> Vec<String> {
        self.state.lock().buckets.keys().cloned().collect()
    }

    pub(crate) fn has_bucket(&self, bucket: &str) -> Result<(), StoreError> {
        self.state.lock().objects(bucket).map(|_| ())
    }

    pub(crate) fn find(&self, bucket: &str, key: &str) -> Result<Arc<Object>, StoreError> {
        self.state.lock().objects(bucket)?.get(key).cloned().ok_or(StoreError::NoKey)
    }

    /// The object and its bytes: opened together, so that they belong to each other.
    pub(crate) fn open_object(&self, bucket: &str, key: &str) -> Result<(Arc<Object>, Opened), StoreError> {
        let mut state = self.state.lock();
        let object = state.objects(bucket)?.get(key).cloned().ok_or(StoreError::NoKey)?;
        let opened = object.place.open()?;
        Ok((object, opened))
    }

    pub(crate) fn list(&self, bucket: &str, request: &PageRequest) -> Result<Page, StoreError> {
        Ok(listing::page(self.state.lock().objects(bucket)?, request))
    }

    /// What an object or a part is written into.
    pub(crate) fn draft(&self, bucket: &str) -> Result<Draft, StoreError> {
        self.has_bucket(bucket)?;
        if self.in_memory {
            return Ok(Draft::in_memory());
        }
        Ok(Draft::create(self.new_path(bucket, "draft"))?)
    }

    /// Makes what was written the object, if `check` agrees to replace what is there now.
    pub(crate) fn commit(
        &self,
        draft: Draft,
        bucket: &str,
        key: &str,
        content_type: Option<String>,
        check: impl FnOnce(Option<&Object>) -> Result<(), StoreError>,
    ) -> Result<Arc<Object>, StoreError> {
        let etag = draft.etag();
        self.commit_as(draft, etag, bucket, key, content_type, check)
    }

    /// As [`Self::commit`], with a tag that isn't made of the bytes.
    pub(crate) fn commit_as(
        &self,
        draft: Draft,
        etag: String,
        bucket: &str,
        key: &str,
        content_type: Option<String>,
        check: impl FnOnce(Option<&Object>) -> Result<(), StoreError>,
    ) -> Result<Arc<Object>, StoreError> {
        let path = self.new_path(bucket, "object");
        let mut state = self.state.lock();
        let objects = state.objects(bucket)?;
        let old = objects.get(key).cloned();
        check(old.as_deref())?;
        let size = draft.size;
        let record = Record { key: key.into(), content_type, etag, modified_ms: unix_ms() as i64, size };
        let place = draft.keep(&record.encode(), &path)?;
        let object = Arc::new(object_of(record, place));
        objects.insert(key.into(), Arc::clone(&object));
        if let Some(old) = old {
            old.place.remove()?;
        }
        Ok(object)
    }

    /// Removes the object, if there is one.
    pub(crate) fn delete(&self, bucket: &str, key: &str) -> Result<(), StoreError> {
        if let Some(old) = self.state.lock().objects(bucket)?.remove(key) {
            old.place.remove()?;
        }
        Ok(())
    }

    pub(crate) fn begin_upload(&self, bucket: &str, key: &str, content_type: Option<String>) -> Result<String, StoreError> {
        let id = format!("upload-{:x}", self.next_id.fetch_add(1, Relaxed));
        let mut state = self.state.lock();
        state.objects(bucket)?;
        let upload = Upload { bucket: bucket.into(), key: key.into(), content_type, parts: BTreeMap::new() };
        state.uploads.insert(id.clone(), upload);
        Ok(id)
    }

    /// Keeps what was written as a part and returns its tag.
    pub(crate) fn put_part(&self, upload: &str, number: i32, draft: Draft) -> Result<String, StoreError> {
        let (etag, size) = (draft.etag(), draft.size);
        let mut state = self.state.lock();
        let upload = state.uploads.get_mut(upload).ok_or(StoreError::NoUpload)?;
        let path = self.new_path(&upload.bucket, "part");
        let place = draft.keep(&[], &path)?;
        if let Some(old) = upload.parts.insert(number, Part { place, size, etag: etag.clone() }) {
            old.place.remove()?;
        }
        Ok(etag)
    }

    /// Looks at an upload.
    pub(crate) fn with_upload<T>(
        &self,
        upload: &str,
        look: impl FnOnce(&Upload) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        look(self.state.lock().uploads.get(upload).ok_or(StoreError::NoUpload)?)
    }

    /// Uploads that are neither completed nor given up.
    pub(crate) fn uploads_open(&self) -> usize {
        self.state.lock().uploads.len()
    }

    /// Forgets an upload and removes its parts.
    pub(crate) fn end_upload(&self, upload: &str) -> Result<(), StoreError> {
        self.state.lock().uploads.remove(upload).ok_or(StoreError::NoUpload)?.remove_files();
        Ok(())
    }

    fn new_path(&self, bucket: &str, kind: &str) -> PathBuf {
        self.folder.join(bucket).join(format!("{kind}-{:016x}", self.next_id.fetch_add(1, Relaxed)))
    }
}

impl State {
    fn objects(&mut self, bucket: &str) -> Result<&mut Objects, StoreError> {
        self.buckets.get_mut(bucket).ok_or_else(|| StoreError::NoBucket(bucket.into()))
    }
}

fn object_of(record: Record, place: Place) -> Object {
    let Record { key: _, content_type, etag, modified_ms, size } = record;
    Object { size, etag, modified_ms, content_type, place }
}

fn read_bucket(folder: &Path) -> Result<Objects, StoreError> {
    let mut objects = Objects::new();
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    // Names grow with time: the last file of a key is the one that counts.
    paths.sort();
    for path in paths {
        let named = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"object-"));
        match if named { Record::read(&File::open(&path)?)? } else { None } {
            Some(record) => {
                let key = record.key.clone();
                if let Some(old) = objects.insert(key, Arc::new(object_of(record, Place::File(path)))) {
                    old.place.remove()?;
                }
            }
            None => std::fs::remove_file(&path)?,
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(store: &Store, key: &str, data: &[u8]) -> Arc<Object> {
        let mut draft = store.draft("lake").unwrap();
        draft.write(data).unwrap();
        store.commit(draft, "lake", key, Some("text/plain".into()), |_| Ok(())).unwrap()
    }

    #[test]
    fn objects_outlive_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new);
        {
            let store = Store::open(folder.path(), false).unwrap();
            store.create_bucket("lake").unwrap();
            old = write(&store, "a//b/", b"old");
            new = write(&store, "a//b/", b"newer");
            write(&store, "gone", b"x");
            store.delete("lake", "gone").unwrap();
            // As a crash leaves it.
            std::mem::forget(store.draft("lake").unwrap());
        }
        assert_ne!(old.etag, new.etag);
        let store = Store::open(folder.path(), false).unwrap();
        let (object, opened) = store.open_object("lake", "a//b/").unwrap();
        let known = |object: &Object| (object.size, object.etag.clone(), object.modified_ms, object.content_type.clone());
        assert_eq!(known(&object), known(&new));
        assert_eq!(opened.read(0, 5).unwrap(), "newer");
        assert_eq!(std::fs::read_dir(folder.path().join("lake")).unwrap().count(), 1);
        assert!(matches!(store.find("lake", "gone"), Err(StoreError::NoKey)));
    }

    #[test]
    fn an_open_object_stays_what_it_was() {
        for in_memory in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), in_memory).unwrap();
            store.create_bucket("lake").unwrap();
            write(&store, "x", b"old");
            let (_, opened) = store.open_object("lake", "x").unwrap();
            write(&store, "x", b"new");
            assert_eq!(opened.read(0, 3).unwrap(), "old");
            assert_eq!(opened.read(1, 1).unwrap(), "l");
            let mut copy = store.draft("lake").unwrap();
            copy.copy(&opened, 2).unwrap();
            store.commit_as(copy, "tag".into(), "lake", "copy", None, |_| Ok(())).unwrap();
            let (object, copied) = store.open_object("lake", "copy").unwrap();
            assert_eq!((object.size, copied.read(0, 2).unwrap()), (2, "ol".into()));
            let files = std::fs::read_dir(folder.path().join("lake")).unwrap().count();
            assert_eq!(files, if in_memory { 0 } else { 2 });
        }
    }
}
