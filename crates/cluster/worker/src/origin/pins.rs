//! What the administrator keeps in the tiers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_protocol::Pin;
use forebay_types::{Key, MountId, ObjectVersion, SegmentId, VersionTag};
use parking_lot::Mutex;

/// Versions of an object that are kept at most: the current one, and one that is read yet.
const VERSIONS_KEPT: usize = 2;

/// The administrator's pins: what is fetched below them is kept from the start. What was here before is kept at the
/// client's word. Each change gives the segments that are to be kept no longer.
#[derive(Default)]
pub(crate) struct Pins {
    pins: ArcSwap<Vec<Pin>>,
    /// What was fetched to be kept since the start: of each object the versions, the one that was fetched last behind the others.
    kept: Mutex<BTreeMap<(MountId, Key), Vec<Kept>>>,
}

struct Kept {
    tag: VersionTag,
    segments: BTreeSet<SegmentId>,
}

impl Pins {
    /// Takes over the pins of a view: of objects that a pin was for, and none is now, nothing is kept.
    pub(crate) fn set(&self, pins: Vec<Pin>) -> Vec<SegmentId> {
        let pins = Arc::new(pins);
        let before = self.pins.swap(Arc::clone(&pins));
        let mut gone = Vec::new();
        if before != pins {
            self.kept.lock().retain(|(mount, key), versions| {
                let stays = !is_below(&before, *mount, key) || is_below(&pins, *mount, key);
                if !stays {
                    gone.extend(segments_of(std::mem::take(versions)));
                }
                stays
            });
        }
        gone
    }

    /// Whether an object lies below a pin.
    pub(crate) fn keep(&self, mount: MountId, key: &Key) -> bool {
        is_below(&self.pins.load(), mount, key)
    }

    /// A segment of a version is fetched to be kept: versions from long before are not.
    pub(crate) fn note(&self, version: &ObjectVersion, segment: SegmentId) -> Vec<SegmentId> {
        let mut kept = self.kept.lock();
        let versions = kept.entry((version.mount, version.key.clone())).or_default();
        let mut this = match versions.iter().position(|kept| kept.tag == version.tag) {
            Some(at) => versions.remove(at),
            None => Kept { tag: version.tag.clone(), segments: BTreeSet::new() },
        };
        this.segments.insert(segment);
        versions.push(this);
        let more = versions.len().saturating_sub(VERSIONS_KEPT);
        debug_assert!(more <= 1, "versions come one at a time");
        segments_of(versions.drain(..more)).collect()
    }

    /// An object was written, and is this version `now` where that is known, or deleted: nothing else of it is kept that was fetched before.
    pub(crate) fn forget(&self, mount: MountId, key: &Key, now: Option<&VersionTag>) -> Vec<SegmentId> {
        let (mut kept, name) = (self.kept.lock(), (mount, key.clone()));
        let versions = kept.remove(&name).unwrap_or_default();
        let (stay, gone): (Vec<_>, Vec<_>) = versions.into_iter().partition(|version| Some(&version.tag) == now);
        debug_assert!(stay.len() <= 1, "a version is known once");
        if !stay.is_empty() {
            kept.insert(name, stay);
        }
        segments_of(gone).collect()
    }

    /// All that is to be kept, as far as is known here.
    pub(crate) fn noted(&self) -> BTreeSet<SegmentId> {
        self.kept.lock().values().flatten().flat_map(|version| version.segments.iter().copied()).collect()
    }
}

fn is_below(pins: &[Pin], mount: MountId, key: &Key) -> bool {
    pins.iter().any(|pin| pin.mount == mount && key.as_str().starts_with(pin.prefix.as_str()))
}

fn segments_of(versions: impl IntoIterator<Item = Kept>) -> impl Iterator<Item = SegmentId> {
    versions.into_iter().flat_map(|kept| kept.segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: MountId = MountId(1);

    fn version(key: &str, tag: &str) -> ObjectVersion {
        ObjectVersion { mount: MOUNT, key: Key::new(key).unwrap(), tag: VersionTag::etag(tag), size: 1 }
    }

    fn pins(prefixes: &[&str]) -> Vec<Pin> {
        prefixes.iter().map(|prefix| Pin { mount: MOUNT, prefix: Key::new(*prefix).unwrap() }).collect()
    }

    #[test]
    fn what_no_pin_is_for_any_more_is_kept_no_longer() {
        let kept = Pins::default();
        assert!(kept.set(pins(&["a/", "a/b/"])).is_empty());
        for (number, key) in [(1, "a/x"), (2, "a/b/y"), (3, "elsewhere")] {
            assert!(kept.note(&version(key, "\"1\""), SegmentId(number)).is_empty());
        }
        assert!(kept.set(pins(&["a/b/", "a/"])).is_empty(), "the same in another order");
        assert_eq!(kept.set(pins(&["a/b/"])), [SegmentId(1)]);
        assert_eq!(kept.set(Vec::new()), [SegmentId(2)], "what a client had kept without a pin stays");
        assert!(kept.set(pins(&["a/"])).is_empty() && kept.set(Vec::new()).is_empty());
    }

    #[test]
    fn old_versions_give_way_and_what_is_written_or_deleted_is_forgotten() {
        let kept = Pins::default();
        let note = |tag: &str, number| kept.note(&version("a", tag), SegmentId(number));
        assert!(note("\"1\"", 1).is_empty() && note("\"1\"", 2).is_empty() && note("\"2\"", 3).is_empty());
        assert!(note("\"1\"", 1).is_empty(), "it is read yet");
        assert_eq!(note("\"3\"", 4), [SegmentId(3)]);
        assert_eq!(note("\"4\"", 5), [SegmentId(1), SegmentId(2)]);
        let forget = |now: Option<&str>| kept.forget(MOUNT, &Key::new("a").unwrap(), now.map(VersionTag::etag).as_ref());
        assert_eq!(
            forget(Some("\"4\"")),
            [SegmentId(4)],
            "it may be fetched before it is told of, and written with the same bytes"
        );
        assert_eq!(kept.noted(), BTreeSet::from([SegmentId(5)]));
        assert_eq!(forget(None), [SegmentId(5)]);
        assert!(forget(None).is_empty() && kept.noted().is_empty());
    }
}
