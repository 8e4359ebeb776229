//! What is known and old.

use std::time::Instant;

use forebay_types::{Key, MountId, ObjectInfo, SEGMENT_BYTES, SegmentId, VersionTag};

use super::Catalogue;

/// Segments of a version that are looked for at most: of a longer one the rest is forgotten with time.
const SEGMENTS_MAX: u64 = 16;

impl Catalogue {
    /// What is known of an object, and the listings that it is in, are old. The next open asks; an answer from before this
    /// moment does not count. Only what is said to be its version `now` is kept on.
    pub(crate) fn forget(&self, mount: MountId, key: &Key, now: Option<&VersionTag>) {
        self.doubt(mount, key);
        self.origin.forget_kept(mount, key, now);
    }

    /// What is known of an object, and the listings that it is in, may be old: the next open asks. What is kept of it is kept on.
    pub(crate) fn doubt(&self, mount: MountId, key: &Key) {
        self.versions.unlearn(mount, key);
        self.listings.forget_with(mount, key);
    }

    /// Who has pages of versions that have not been the current ones for a while need not be known.
    pub(crate) fn forget_outdated(&self) {
        for version in self.versions.take_outdated(forebay_runtime::now()) {
            let segments = version.size.div_ceil(SEGMENT_BYTES).min(SEGMENTS_MAX) as u32;
            let ids = (0..segments).map(|index| SegmentId::of(&version, index));
            ids.for_each(|segment| self.cluster.whereabouts.forget_segment(segment));
        }
    }

    /// An object was written here, and this is it.
    pub(crate) fn learn_written(&self, info: &ObjectInfo) {
        let version = &info.version;
        self.versions.learn(info, forebay_runtime::now());
        self.listings.forget_with(version.mount, &version.key);
        self.origin.forget_kept(version.mount, &version.key, Some(&version.tag));
    }

    /// A complete listing of a mount was begun at `listed`: what was not in it is not there.
    pub(crate) fn forget_older(&self, mount: MountId, listed: Instant) {
        self.versions.forget_older(mount, listed);
    }

    /// Any listing of a mount may be old.
    pub(crate) fn forget_listings(&self, mount: MountId) {
        self.listings.forget_mount(mount);
    }

    /// Forgets versions and listings below `prefix`.
    pub(crate) fn refresh(&self, mount: MountId, prefix: &Key) {
        self.versions.refresh(mount, prefix);
        self.listings.refresh(mount, prefix);
    }

    /// Forgets a mount that was removed.
    pub(crate) fn forget_mount(&self, mount: MountId) {
        self.versions.forget_mount(mount);
        self.listings.forget_mount(mount);
    }
}
