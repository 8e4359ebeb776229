use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use forebay_protocol::DataRequest;
use forebay_types::{Error, ErrorKind, Key, MountId, ObjectInfo, Result};
use parking_lot::Mutex;

use crate::serving::Serving;

/// Writes that are under way, by name.
#[derive(Default)]
pub(crate) struct Writes(Mutex<HashMap<(MountId, Key), Overlap>>);

#[derive(Default)]
struct Overlap {
    count: usize,
    /// More than one was under way at a time, so that nobody knows here which came last.
    mixed: bool,
}

/// A write that is under way. However it ends, what was known of the object is not believed any more.
pub(crate) struct Write {
    serving: Arc<Serving>,
    mount: MountId,
    key: Key,
    ended: bool,
}

impl Write {
    /// Before the first request that may change the object.
    pub(crate) fn begin(serving: &Arc<Serving>, mount: MountId, key: &Key) -> Self {
        let mut writes = serving.writes.0.lock();
        let overlap = writes.entry((mount, key.clone())).or_default();
        overlap.count += 1;
        overlap.mixed |= overlap.count > 1;
        Self { serving: Arc::clone(serving), mount, key: key.clone(), ended: false }
    }

    /// With shared storage's answer: the object as it is now, or none when it was deleted. Peers hear of it before the
    /// writer does.
    pub(crate) async fn end(mut self, result: Result<Option<ObjectInfo>>) -> Result<Option<ObjectInfo>> {
        self.ended = true;
        let mixed = self.leave();
        match &result {
            Ok(Some(info)) if !mixed => {
                self.serving.versions.learn(info, Instant::now());
                self.serving.listings.forget_with(self.mount, &self.key);
            }
            Ok(_) => self.serving.note_change(self.mount, &self.key),
            // Refused before anything happened.
            Err(error) if is_refusal(error) => return result,
            // It may have happened all the same.
            Err(_) => self.serving.note_change(self.mount, &self.key),
        }
        let info = result.as_ref().ok().and_then(Clone::clone);
        self.serving.tell_peers(self.mount, &self.key, info).await;
        result
    }

    fn leave(&self) -> bool {
        let mut writes = self.serving.writes.0.lock();
        let name = (self.mount, self.key.clone());
        let overlap = writes.get_mut(&name).expect("a write is in the table until it ends");
        overlap.count -= 1;
        let mixed = overlap.mixed;
        if overlap.count == 0 {
            writes.remove(&name);
        }
        mixed
    }
}

impl Drop for Write {
    /// The writer went away in the middle: shared storage may have the object all the same.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.leave();
        self.serving.note_change(self.mount, &self.key);
        let (serving, mount, key) = (Arc::clone(&self.serving), self.mount, self.key.clone());
        self.serving.later(async move { serving.tell_peers(mount, &key, None).await });
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Conflict | ErrorKind::NotFound)
}

impl Serving {
    /// An object has changed: what is known of it, and the listings that it is in, are old. The next open asks; an answer
    /// from before this moment does not count.
    pub(crate) fn note_change(&self, mount: MountId, key: &Key) {
        self.versions.unlearn(mount, key);
        self.listings.forget_with(mount, key);
    }

    async fn tell_peers(&self, mount: MountId, key: &Key, info: Option<ObjectInfo>) {
        let request = DataRequest::Changed { mount, key: key.clone(), info };
        self.peers.tell(&self.others(), &request).await;
    }

    /// Forgets versions and listings below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        self.versions.refresh(mount, prefix);
        self.listings.refresh(mount, prefix);
    }

    /// Forgets all versions and listings: it may not have been told of changes.
    pub(crate) fn refresh_all(&self) {
        self.mounts.all().iter().for_each(|door| self.refresh(door.mount.id, &Key::default()));
    }
}
