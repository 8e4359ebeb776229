use std::time::Instant;

use forebay_protocol::DataRequest;
use forebay_types::{Key, MountId, ObjectInfo};

use crate::serving::Serving;

impl Serving {
    /// An object was written, or deleted when `info` is none: what is known of it and the listings that it is in are old.
    pub(crate) fn note_change(&self, mount: MountId, key: &Key, info: Option<&ObjectInfo>) {
        match info.filter(|info| info.version.mount == mount && info.version.key == *key) {
            Some(info) => self.versions.learn(info, Instant::now()),
            None => self.versions.learn_deleted(mount, key),
        }
        self.listings.forget_with(mount, key);
    }

    /// The same for a change that was made here: peers hear of it before the writer does.
    pub(crate) async fn tell_change(&self, mount: MountId, key: &Key, info: Option<&ObjectInfo>) {
        self.note_change(mount, key, info);
        let request = DataRequest::Changed { mount, key: key.clone(), info: info.cloned() };
        self.peers.tell(&self.others(), &request).await;
    }

    /// Forgets versions and listings below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        self.versions.refresh(mount, prefix);
        self.listings.refresh(mount, prefix);
    }
}
