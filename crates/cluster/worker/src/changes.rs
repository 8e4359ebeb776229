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
    /// More than one was under way at a time, or others told of one, so that nobody knows here which came last.
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
    /// Before the first request that may change the object. `Retry` when it could not be acknowledged.
    pub(crate) async fn begin(serving: &Arc<Serving>, mount: MountId, key: &Key) -> Result<Self> {
        serving.may_write().await.map_err(|error| error.context(key))?;
        let mut writes = serving.writes.0.lock();
        let overlap = writes.entry((mount, key.clone())).or_default();
        overlap.count += 1;
        overlap.mixed |= overlap.count > 1;
        Ok(Self { serving: Arc::clone(serving), mount, key: key.clone(), ended: false })
    }

    /// With shared storage's answer: the object as it is now, or none when it was deleted. All workers have heard of it
    /// before the writer does; `Retry` when that is not certain.
    pub(crate) async fn end(mut self, result: Result<Option<ObjectInfo>>) -> Result<Option<ObjectInfo>> {
        self.ended = true;
        let mixed = self.leave();
        match &result {
            Ok(Some(info)) if !mixed => {
                self.serving.versions.learn(info, Instant::now());
                self.serving.listings.forget_with(self.mount, &self.key);
            }
            Ok(_) => self.serving.forget(self.mount, &self.key),
            // Refused before anything happened.
            Err(error) if is_refusal(error) => return result,
            // It may have happened all the same.
            Err(_) => self.serving.forget(self.mount, &self.key),
        }
        let info = result.as_ref().ok().and_then(Clone::clone);
        let told = self.serving.tell_change(self.mount, &self.key, info).await;
        let info = result?;
        told.map_err(|error| error.context(&self.key))?;
        Ok(info)
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
        self.serving.forget(self.mount, &self.key);
        let (serving, mount, key) = (Arc::clone(&self.serving), self.mount, self.key.clone());
        self.serving.later(async move {
            if let Err(error) = serving.tell_change(mount, &key, None).await {
                tracing::warn!(%key, %error, "not all workers heard of a write whose writer went away");
            }
        });
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Conflict | ErrorKind::NotFound)
}

impl Serving {
    /// Others tell that an object has changed. A write of it that is under way here may have come before or after.
    pub(crate) fn note_change(&self, mount: MountId, key: &Key) {
        if let Some(overlap) = self.writes.0.lock().get_mut(&(mount, key.clone())) {
            overlap.mixed = true;
        }
        self.forget(mount, key);
    }

    /// What is known of an object, and the listings that it is in, are old. The next open asks; an answer from before this
    /// moment does not count.
    fn forget(&self, mount: MountId, key: &Key) {
        self.versions.unlearn(mount, key);
        self.listings.forget_with(mount, key);
    }

    async fn tell_change(&self, mount: MountId, key: &Key, info: Option<ObjectInfo>) -> Result<()> {
        self.tell_everyone(mount, &DataRequest::Changed { mount, key: key.clone(), info }).await
    }

    /// Forgets versions and listings below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        for ((of, key), overlap) in self.writes.0.lock().iter_mut() {
            overlap.mixed |= *of == mount && key.as_str().starts_with(prefix.as_str());
        }
        self.versions.refresh(mount, prefix);
        self.listings.refresh(mount, prefix);
    }

    /// Forgets all versions and listings: it may not have been told of changes.
    pub(crate) fn refresh_all(&self) {
        self.mounts.all().iter().for_each(|door| self.refresh(door.mount.id, &Key::default()));
    }
}
