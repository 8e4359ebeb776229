//! Uploads that shared storage has parts of, noted beside the tiers: what a process that was killed has left, the next one in its folder
//! gives up. Only who began an upload can end it, so that nobody else's is meant.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::PutCondition;
use forebay_shared_storage::Upload;
use forebay_types::{Key, Mount, ObjectInfo, Result, ResultExt, digest};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Writes;

/// Notes that a start takes up at most.
const LEFT_MAX: usize = 100_000;
/// Of a note: a URL, a key and an id.
const NOTE_BYTES_MAX: u64 = 64 << 10;
/// How long one upload is tried to be given up.
const ABORT_WITHIN: Duration = Duration::from_secs(30);

/// What is noted of an upload.
#[derive(Serialize, Deserialize)]
struct Note {
    /// Of the mount, which may have another number by then.
    url: String,
    endpoint: Option<String>,
    key: Key,
    upload: String,
}

/// Notes of uploads, a file each.
pub(crate) struct Notes {
    folder: PathBuf,
    /// Those of processes before this one.
    left: Mutex<Vec<PathBuf>>,
}

impl Notes {
    /// Keeps notes in `folder`; those that are there are what processes before this one left.
    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder).context(|| folder.display())?;
        let entries = std::fs::read_dir(&folder).context(|| folder.display())?.take(LEFT_MAX);
        let paths = entries.map(|entry| entry.context(|| folder.display()).map(|entry| entry.path()));
        let mut left = paths.collect::<Result<Vec<_>>>()?;
        left.sort();
        assert!(left.len() <= LEFT_MAX, "a start takes up {} notes of {LEFT_MAX}", left.len());
        Ok(Self { folder, left: Mutex::new(left) })
    }

    /// Notes an upload that has begun, at once: who waits for it may go away at each pause. One that can't be noted goes on all the same.
    pub(super) fn begun(&self, mount: &Mount, key: &Key, upload: Upload) -> NotedUpload {
        let noted = upload.id().map(|id| {
            let (url, endpoint) = (mount.url.clone(), mount.options.endpoint.clone());
            write(&self.folder, &Note { url, endpoint, key: key.clone(), upload: id.to_string() })
        });
        let note = match noted.transpose() {
            Ok(note) => note,
            Err(error) => {
                tracing::warn!(%key, %error, "an upload is not noted: what is left of it when this process is killed stays");
                None
            }
        };
        NotedUpload { upload, note }
    }
}

/// An upload with its note, which is there as long as shared storage may have parts of it.
pub(super) struct NotedUpload {
    upload: Upload,
    note: Option<PathBuf>,
}

impl NotedUpload {
    pub(super) fn part_bytes(&self) -> u64 {
        self.upload.part_bytes()
    }

    pub(super) async fn put_part(&self, part: u32, payload: Vec<Bytes>) -> Result<()> {
        self.upload.put_part(part, payload).await
    }

    pub(super) async fn commit(self, parts: u32, when: PutCondition) -> Result<ObjectInfo> {
        let (made, is_left) = self.upload.commit_or_left(parts, when).await;
        if let Some(note) = self.note.filter(|_| !is_left) {
            forget(&note);
        }
        made
    }

    pub(super) async fn abort(self) -> Result<()> {
        self.upload.abort().await?;
        if let Some(note) = self.note {
            forget(&note);
        }
        Ok(())
    }
}

impl Writes {
    /// Gives up what processes before this one have begun and not ended, one after the other in the background. What is of no mount now
    /// that may be written, or can't be given up, stays noted for the next start.
    pub(crate) fn give_up_left(self: &Arc<Self>) {
        let left = std::mem::take(&mut *self.notes.left.lock());
        if left.is_empty() {
            return;
        }
        let writes = Arc::clone(self);
        self.background.spawn(async move {
            for path in left {
                writes.give_up_noted(&path).await;
            }
        });
    }

    async fn give_up_noted(&self, path: &Path) {
        let note = match read(path) {
            Ok(note) => note,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "what is noted of an upload can't be read: it is removed");
                return forget(path);
            }
        };
        let doors = self.origin.mounts.all();
        let leads_there = |mount: &Mount| mount.url == note.url && mount.options.endpoint == note.endpoint;
        let Some(door) = doors.iter().find(|door| leads_there(&door.mount) && !door.mount.options.read_only) else {
            tracing::info!(url = %note.url, key = %note.key, "an upload that was left is of no mount now that may be written");
            return;
        };
        let given_up = async { door.storage()?.abort_upload(&note.key, &note.upload).await };
        match forebay_runtime::time::timeout(ABORT_WITHIN, given_up).await {
            Ok(Ok(())) => {
                forget(path);
                tracing::info!(key = %note.key, "an upload that was left is given up");
            }
            Ok(Err(error)) => tracing::warn!(key = %note.key, %error, "an upload that was left stays until the next start"),
            Err(_) => tracing::warn!(key = %note.key, "an upload that was left stays until the next start"),
        }
    }
}

/// Written aside and renamed: a kill leaves no half of a note. Two stores may give the same id, so that a note's name is made of all of it.
fn write(folder: &Path, note: &Note) -> io::Result<PathBuf> {
    let text = serde_json::to_vec(note)?;
    let path = folder.join(format!("{:032x}", digest(&[&text])));
    let draft = path.with_extension("new");
    debug_assert!(draft != path, "a note is whole or not there");
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, &path)?;
    Ok(path)
}

fn read(path: &Path) -> io::Result<Note> {
    if std::fs::metadata(path)?.len() > NOTE_BYTES_MAX {
        return Err(io::Error::other("it is longer than a note"));
    }
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn forget(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::debug!(path = %path.display(), %error, "the note of an upload is not removed");
    }
}
