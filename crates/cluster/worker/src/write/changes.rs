//! Changes of objects, and who hears of them.

use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{DataRequest, PeerRequest, encode};
use forebay_runtime::{Defect, planted};
use forebay_types::{Error, ErrorKind, Key, MountId, ObjectInfo, Result, VersionTag, WorkerId};

use super::Writes;
use crate::cluster::Fuller;

#[derive(Default)]
pub(super) struct Overlap {
    count: usize,
    /// More than one was under way at a time, or others told of one, so that nobody knows here which came last.
    mixed: bool,
}

/// A write that is under way. However it ends, what was known of the object is not believed any more.
pub(super) struct Write {
    writes: Arc<Writes>,
    mount: MountId,
    key: Key,
    /// It is not under way any more.
    has_left: bool,
    /// Everyone has heard of it who has to.
    ended: bool,
    /// Workers that are to hear what the object is with the word that it is there.
    with_bytes: Option<(Vec<WorkerId>, Bytes)>,
}

impl Write {
    /// Before the first request that may change the object. `Retry` when it could not be acknowledged.
    pub(super) async fn begin(writes: &Arc<Writes>, mount: MountId, key: &Key) -> Result<Self> {
        writes.cluster.may_write().await.map_err(|error| error.context(key))?;
        let mut under_way = writes.under_way.lock();
        let overlap = under_way.entry((mount, key.clone())).or_default();
        overlap.count += 1;
        overlap.mixed |= overlap.count > 1;
        Ok(Self { writes: Arc::clone(writes), mount, key: key.clone(), has_left: false, ended: false, with_bytes: None })
    }

    /// Has some workers hear what the object is, if shared storage says that it has it.
    pub(super) fn with_bytes(mut self, to: Vec<WorkerId>, bytes: Bytes) -> Self {
        self.with_bytes = (!to.is_empty()).then_some((to, bytes));
        self
    }

    /// With shared storage's answer: the object as it is now, or none when it was deleted. All workers have heard of it
    /// before the writer does; `Retry` when that is not certain.
    pub(super) async fn end(mut self, result: Result<Option<ObjectInfo>>) -> Result<Option<ObjectInfo>> {
        let mixed = self.leave() && !planted(Defect::WritersOrder);
        match &result {
            Ok(Some(info)) if !mixed => {
                self.writes.catalogue.learn_written(info);
            }
            Ok(_) => self.writes.catalogue.forget(self.mount, &self.key, None),
            // Refused before anything happened.
            Err(error) if is_refusal(error) => {
                self.ended = true;
                if error.kind() == ErrorKind::Conflict {
                    self.doubt();
                }
                return result;
            }
            // It may have happened all the same.
            Err(_) => self.writes.catalogue.forget(self.mount, &self.key, None),
        }
        let info = result.as_ref().ok().and_then(Clone::clone);
        // Who goes away meanwhile has others told all the same.
        let told = match (info, self.with_bytes.take()) {
            (Some(info), Some((to, bytes))) => self.writes.tell_with_bytes(info, to, bytes).await,
            (info, _) => self.writes.tell_change(self.mount, &self.key, info).await,
        };
        self.ended = true;
        let info = result?;
        told.map_err(|error| error.context(&self.key))?;
        Ok(info)
    }

    /// A condition did not hold: what is known of the object may be old, here and elsewhere. Who looks again is to find what he was
    /// refused for; what is kept of that is kept on.
    fn doubt(&self) {
        let (writes, mount, key) = (Arc::clone(&self.writes), self.mount, self.key.clone());
        self.writes.catalogue.doubt(mount, &key);
        self.writes.background.spawn(async move {
            let now = match writes.origin.mounts.find(mount) {
                Some(door) => writes.catalogue.head(&door, &key).await.ok(),
                None => None,
            };
            if let Err(error) = writes.tell_change(mount, &key, now).await {
                tracing::warn!(%key, %error, "not all workers heard that an object is another one than was thought");
            }
        });
    }

    fn leave(&mut self) -> bool {
        self.has_left = true;
        let mut under_way = self.writes.under_way.lock();
        let name = (self.mount, self.key.clone());
        let overlap = under_way.get_mut(&name).expect("a write is in the table until it ends");
        assert!(overlap.count > 0, "a write ends once");
        overlap.count -= 1;
        let mixed = overlap.mixed;
        if overlap.count == 0 {
            under_way.remove(&name);
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
        if !self.has_left {
            self.leave();
        }
        self.writes.catalogue.forget(self.mount, &self.key, None);
        let (writes, mount, key) = (Arc::clone(&self.writes), self.mount, self.key.clone());
        self.writes.background.spawn(async move {
            if let Err(error) = writes.tell_change(mount, &key, None).await {
                tracing::warn!(%key, %error, "not all workers heard of a write whose writer went away");
            }
        });
    }
}

/// Whether nothing has happened. What was refused only when it was tried again may have happened before.
fn is_refusal(error: &Error) -> bool {
    !error.is_in_vain()
        && matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Denied | ErrorKind::Conflict | ErrorKind::NotFound)
}

impl Writes {
    /// Others tell that an object has changed, to this version if they know. A write of it that is under way here may have come before or after.
    pub(crate) fn note_change(&self, mount: MountId, key: &Key, now: Option<&VersionTag>) {
        if let Some(overlap) = self.under_way.lock().get_mut(&(mount, key.clone())) {
            overlap.mixed = true;
        }
        self.catalogue.forget(mount, key, now);
    }

    async fn tell_change(&self, mount: MountId, key: &Key, info: Option<ObjectInfo>) -> Result<()> {
        self.cluster.tell_everyone(mount, encode(&DataRequest::Changed { mount, key: key.clone(), info })).await
    }

    /// The same of an object that was not there before, where some workers hear what it is.
    async fn tell_with_bytes(&self, info: ObjectInfo, to: Vec<WorkerId>, payload: Bytes) -> Result<()> {
        let (mount, key) = (info.version.mount, info.version.key.clone());
        let fuller = Fuller { to, message: PeerRequest::Came { info: info.clone() }.encode(), payload };
        let changed = encode(&DataRequest::Changed { mount, key, info: Some(info) });
        self.cluster.tell_some_more(mount, changed, &fuller).await
    }

    /// Forgets versions and listings below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        for ((of, key), overlap) in self.under_way.lock().iter_mut() {
            overlap.mixed |= *of == mount && key.as_str().starts_with(prefix.as_str());
        }
        self.catalogue.refresh(mount, prefix);
    }

    /// Forgets all versions and listings: it may not have been told of changes.
    pub(crate) fn refresh_all(&self) {
        self.origin.mounts.all().iter().for_each(|door| self.refresh(door.mount.id, &Key::default()));
    }
}
