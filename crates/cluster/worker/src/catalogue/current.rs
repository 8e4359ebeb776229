//! The current version of an object.

use std::sync::Arc;

use forebay_protocol::RangeSpec;
use forebay_shared_storage::{Class, Get, GetRange};
use forebay_types::{ErrorKind, Key, MountId, ObjectInfo, PAGE_BYTES, Result, SEGMENT_BYTES, Validate};

use super::Catalogue;
use crate::origin::{MountDoor, Priority, Source, Ticket};
use crate::segment::{Segment, first_part};

/// A suffix up to this is asked for as such; a longer one is worth asking for the size first.
const SUFFIX_MAX: u64 = 8 << 20;
/// Nothing starts past this.
const OBJECT_BYTES_MAX: u64 = 1 << 57;

/// How the current version is looked for.
#[derive(Clone, Copy)]
pub(crate) struct OpenedLatest {
    /// What is read of it next.
    pub(crate) range: RangeSpec,
    /// An object that nothing is known of is asked for whole, which tells its checksums.
    pub(crate) whole: bool,
    /// When shared storage is asked.
    pub(crate) rule: Validate,
}

impl Catalogue {
    /// The current version of an object, as fresh as the mount's rule wants it.
    pub(crate) async fn open(&self, mount: MountId, key: &Key) -> Result<ObjectInfo> {
        let door = self.origin.mount(mount).await?;
        self.versions.resolve(mount, key, self.rule(&door), self.head(&door, key)).await
    }

    /// The mount's rule, as strict as it has to be now.
    pub(crate) fn rule(&self, door: &MountDoor) -> Validate {
        self.cluster.hearing.rule(door.mount.options.validate)
    }

    /// What shared storage says of an object now.
    pub(crate) async fn head(&self, door: &Arc<MountDoor>, key: &Key) -> Result<ObjectInfo> {
        let asked = forebay_runtime::now();
        let (info, attributes) = door.storage()?.stat(key).await?;
        self.versions.learn_with(&info, Some(attributes), asked);
        Ok(info)
    }

    /// The current version. An object that nothing is known of is asked for its bytes at once, which tells the version too.
    pub(crate) async fn latest(
        &self,
        door: &Arc<MountDoor>,
        key: &Key,
        opened: OpenedLatest,
    ) -> Result<(ObjectInfo, Option<Ticket>)> {
        let OpenedLatest { range, whole, rule } = opened;
        let mut ticket = None;
        let info = self
            .versions
            .resolve(door.mount.id, key, rule, async {
                match first_get(range, whole).filter(|_| !self.has_some_of(door.mount.id, key, range)) {
                    Some(get) => self.get_latest(door, key, get, &mut ticket).await,
                    None => self.head(door, key).await,
                }
            })
            .await?;
        Ok((info, ticket))
    }

    /// Whether bytes of the version that was seen last are here, or on their way, so that asking whether it still stands costs less
    /// than asking for bytes again.
    fn has_some_of(&self, mount: MountId, key: &Key, range: RangeSpec) -> bool {
        let Some(info) = self.versions.last_seen(mount, key) else { return false };
        let Ok(bytes) = first_part(range, info.version.size) else { return false };
        let has_some = |id| self.origin.store.held(id).bytes > 0 || self.origin.flights.brings_some_of(id);
        Segment::holding(&info.version, bytes.start).is_ok_and(|segment| has_some(segment.id))
    }

    /// One GET for the version and the bytes.
    async fn get_latest(
        &self,
        door: &Arc<MountDoor>,
        key: &Key,
        range: GetRange,
        ticket: &mut Option<Ticket>,
    ) -> Result<ObjectInfo> {
        let asked = forebay_runtime::now();
        let storage = door.storage()?;
        door.check_queue(Priority::Demand, || true)?;
        let permit = door.admission.enter(u64::MAX, Priority::Demand, 0).await;
        let body = match storage.get(Get { key, range, if_match: None, class: Class::Demand }).await {
            Ok(body) => body,
            // The object ends before the range: the reader is told its size, and whether that is an error.
            Err(error) if error.kind() == ErrorKind::Invalid => return self.head(door, key).await,
            Err(error) => return Err(error),
        };
        let info = body.info.clone();
        // Known before the bytes are here, so that others join them.
        self.versions.learn_with(&info, Some(body.attributes.clone()), asked);
        if let Ok(segment) = Segment::holding(&info.version, body.range.start.min(info.version.size.saturating_sub(1)))
            && let Some(run) = segment.pages_within(body.range.clone())
        {
            let skip = segment.start + run.bytes().start - body.range.start;
            let wanted = self.origin.wanted(door, segment, Priority::Demand, false);
            *ticket = self.origin.flights.adopt(&wanted, run, Source::Open { body, skip, permit });
        }
        Ok(info)
    }
}

/// What to ask for when the version is not known: whole pages within one segment. None when the answer could not be used
/// for one.
fn first_get(range: RangeSpec, whole: bool) -> Option<GetRange> {
    let page = |at: u64| at / PAGE_BYTES * PAGE_BYTES;
    let segment_end = |at: u64| (at / SEGMENT_BYTES + 1) * SEGMENT_BYTES;
    match range {
        RangeSpec::Bounded { start, len } if len > 0 && start < OBJECT_BYTES_MAX => {
            let end = start.saturating_add(len).min(segment_end(start));
            Some(GetRange::Bounded(page(start)..end.next_multiple_of(PAGE_BYTES)))
        }
        RangeSpec::From { start: 0 } if whole => Some(GetRange::All),
        RangeSpec::From { start } if start < OBJECT_BYTES_MAX => Some(GetRange::Bounded(page(start)..segment_end(start))),
        // The object's size is not known, so neither is where a page begins: up to a page more holds the first one whole.
        RangeSpec::Suffix { len } if (1..=SUFFIX_MAX).contains(&len) => Some(GetRange::Suffix(len + PAGE_BYTES - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_request_is_whole_pages_of_one_segment() {
        let bounded = |start, len| first_get(RangeSpec::Bounded { start, len }, false);
        assert_eq!(bounded(0, 1), Some(GetRange::Bounded(0..4096)));
        assert_eq!(bounded(5000, 4000), Some(GetRange::Bounded(4096..12288)));
        assert_eq!(bounded(SEGMENT_BYTES - 1, 100), Some(GetRange::Bounded(SEGMENT_BYTES - 4096..SEGMENT_BYTES)));
        assert_eq!(bounded(u64::MAX, u64::MAX), None);
        assert_eq!(first_get(RangeSpec::Suffix { len: 8 }, false), Some(GetRange::Suffix(8 + 4095)));
    }
}
