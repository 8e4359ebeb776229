//! What is said of a worker's tiers: where bytes are, how many, and how long the queue before them is.

use forebay_types::{
    Error, Key, MountId, ObjectVersion, PageRun, Result, SegmentId, VersionTag, check_object_bytes, segment_count,
};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::limits::{SEGMENTS_MAX, at_most};

/// Bytes of keys and tags in one order, about: less than a message may have.
const ORDER_BYTES_MAX: usize = 4 << 20;
/// Bytes of a part beside these, at most.
const PART_BYTES: usize = 32;

/// Consecutive bytes of the DRAM tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Offset in the tier's descriptor, in bytes.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// What a worker says about itself with each answer to a read, so that clients route by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// Reads under way at the worker when it answered, without this one.
    pub queue: u32,
    /// Version of the routing table that it knows; 0 for none.
    pub routes: u64,
}

/// What a worker holds of one segment, whole pages counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Bytes present in the DRAM tier.
    pub dram_bytes: u64,
    /// Bytes present in the disk tier.
    pub disk_bytes: u64,
    /// Bytes present in either.
    pub bytes: u64,
    /// Kept by the administrator.
    pub keep: bool,
}

impl Held {
    /// What both are together; kept where one of them is.
    pub fn and(self, other: Self) -> Self {
        Self {
            dram_bytes: self.dram_bytes.saturating_add(other.dram_bytes),
            disk_bytes: self.disk_bytes.saturating_add(other.disk_bytes),
            bytes: self.bytes.saturating_add(other.bytes),
            keep: self.keep || other.keep,
        }
    }
}

/// Pages that are in no tier of a worker any more, and such as have come into one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departed {
    /// What to ask for next.
    pub next: u64,
    /// Others left or came that are not among these: what counts is to be asked for.
    pub lost: bool,
    /// In the order in which they left; some may be back since.
    pub runs: Vec<(SegmentId, PageRun)>,
    /// In the order in which they came, from anywhere; some may have left since.
    #[serde(with = "crate::version::since_9")]
    pub came: Vec<(SegmentId, PageRun)>,
}

/// What is to become of segments of a mount's objects that are held. They are named by what they are of, not by their ids, which don't say of
/// which mount they are: so that the right to that one mount is enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierOrder {
    /// The mount.
    pub mount: MountId,
    /// What is done.
    pub what: TierDeed,
    /// With which segments.
    #[serde(deserialize_with = "at_most::<SEGMENTS_MAX, _, _>")]
    pub parts: Vec<VersionPart>,
}

/// What is done with what the tiers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TierDeed {
    /// It is dropped, kept or not.
    Free,
    /// It gets the administrator's pin.
    Keep,
    /// It loses that.
    LetGo,
}

/// Consecutive segments of one version of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionPart {
    /// The object.
    pub key: Key,
    /// Which version of it.
    pub tag: VersionTag,
    /// Its bytes, all of them.
    pub size: u64,
    /// The first segment, counted from 0.
    pub first: u32,
    /// So many.
    pub count: u32,
}

impl TierOrder {
    /// What is done with all segments of these versions, in as many orders as that takes.
    pub fn of_all(versions: &[ObjectVersion], what: TierDeed) -> Vec<Self> {
        let mut orders: Vec<Self> = Vec::new();
        // Of the last one.
        let (mut segments, mut bytes) = (0, 0);
        for ObjectVersion { mount, key, tag, size } in versions {
            let (mut first, all) = (0, segment_count(*size));
            let part_bytes = key.as_str().len() + tag.as_str().len() + PART_BYTES;
            while first < all {
                let is_full = segments >= SEGMENTS_MAX || bytes + part_bytes > ORDER_BYTES_MAX;
                if is_full || orders.last().is_none_or(|order| order.mount != *mount) {
                    orders.push(Self { mount: *mount, what, parts: Vec::new() });
                    (segments, bytes) = (0, 0);
                }
                let count = (all - first).min((SEGMENTS_MAX - segments) as u32);
                let part = VersionPart { key: key.clone(), tag: tag.clone(), size: *size, first, count };
                orders.last_mut().expect("there is the one that was just begun").parts.push(part);
                first += count;
                segments += count as usize;
                bytes += part_bytes;
            }
        }
        orders
    }

    /// The segments. `Invalid` when they are more than one message may name, or none that there can be.
    pub fn segments(&self) -> Result<Vec<SegmentId>> {
        let count: u64 = self.parts.iter().map(|part| u64::from(part.count)).sum();
        if count > SEGMENTS_MAX as u64 {
            return Err(Error::invalid(format!("{count} segments at once are more than {SEGMENTS_MAX}: send several orders")));
        }
        let mut ids = Vec::with_capacity(count as usize);
        for VersionPart { key, tag, size, first, count } in &self.parts {
            check_object_bytes(*size)?;
            let end = first.checked_add(*count).filter(|end| *end <= segment_count(*size));
            let end =
                end.ok_or_else(|| Error::invalid(format!("{key}: {size} bytes have no {count} segments from {first} on")))?;
            let version = ObjectVersion { mount: self.mount, key: key.clone(), tag: tag.clone(), size: *size };
            ids.extend((*first..end).map(|index| SegmentId::of(&version, index)));
        }
        assert_eq!(ids.len() as u64, count, "each segment that a part counts is named");
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::SEGMENT_BYTES;

    use super::*;

    fn version(mount: u64, key: &str, size: u64) -> ObjectVersion {
        ObjectVersion { mount: MountId(mount), key: Key::new(key).unwrap(), tag: VersionTag::etag("\"e\""), size }
    }

    #[test]
    fn orders_name_each_segment_of_all_versions_once() {
        let most = SEGMENTS_MAX as u64;
        let versions = [
            version(1, "small", 10),
            version(1, "empty", 0),
            version(1, "large", 2 * most * SEGMENT_BYTES),
            version(2, "x", SEGMENT_BYTES + 1),
            version(1, "last", 10),
        ];
        let orders = TierOrder::of_all(&versions, TierDeed::Keep);
        let mounts: Vec<_> = orders.iter().map(|order| order.mount.0).collect();
        assert_eq!(mounts, [1, 1, 1, 2, 1]);
        let named: Vec<_> = orders.iter().flat_map(|order| order.segments().unwrap()).collect();
        let all = versions.iter().flat_map(|version| (0..segment_count(version.size)).map(move |at| SegmentId::of(version, at)));
        assert_eq!(named, all.collect::<Vec<_>>());
        let long: Vec<_> = (0..9_000).map(|at| version(1, &format!("{at}{}", "k".repeat(1_000)), 1)).collect();
        let orders = TierOrder::of_all(&long, TierDeed::Free);
        assert_eq!(orders.iter().map(|order| order.parts.len()).sum::<usize>(), 9_000);
        assert!(orders.iter().all(|order| crate::encode(order).len() < ORDER_BYTES_MAX), "each fits in a message");
    }

    #[test]
    fn what_no_object_has_is_refused() {
        let part = |size, first, count| {
            let (key, tag) = (Key::new("k").unwrap(), VersionTag::etag("\"e\""));
            TierOrder { mount: MountId(1), what: TierDeed::Free, parts: vec![VersionPart { key, tag, size, first, count }; 2] }
        };
        assert_eq!(part(SEGMENT_BYTES, 0, 1).segments().unwrap().len(), 2);
        for order in [part(SEGMENT_BYTES, 1, 1), part(10, 0, 2), part(u64::MAX, 0, 1), part(1 << 50, u32::MAX, 2), part(0, 0, 1)]
        {
            assert!(order.segments().is_err(), "{order:?}");
        }
        let many = part(1 << 50, 0, SEGMENTS_MAX as u32 / 2 + 1).segments().unwrap_err();
        assert!(many.message().contains("send several"), "{many}");
    }
}
