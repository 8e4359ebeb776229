//! Where objects are cut, and that ids and routes, which lie on disks and in every process, stay what they are.

use std::collections::HashSet;

use forebay_types::{
    Key, MountId, ObjectVersion, RouteKey, SEGMENT_BYTES, SegmentId, VersionTag, segment_bytes, segment_count, split_range,
};
use proptest::prelude::*;

fn version(mount: u64, key: &str, tag: &str, size: u64) -> ObjectVersion {
    ObjectVersion { mount: MountId(mount), key: Key::new(key).unwrap(), tag: VersionTag::etag(tag), size }
}

#[test]
fn versions_share_no_segment() {
    let versions = [
        version(1, "a", "\"1\"", 100),
        version(2, "a", "\"1\"", 100),
        version(1, "b", "\"1\"", 100),
        version(1, "a", "\"2\"", 100),
        version(1, "a", "\"1\"", 101),
        // The same bytes one after another, cut elsewhere.
        version(1, "a\"", "1\"", 100),
        version(1, "", "a\"1\"", 100),
    ];
    let ids: HashSet<_> = versions.iter().flat_map(|version| (0..10).map(|index| SegmentId::of(version, index))).collect();
    assert_eq!(ids.len(), versions.len() * 10);
}

/// Keys that were chosen so that XXH3-128 takes their versions for one: who may write below a mount finds as many as he likes.
#[test]
fn keys_that_xxh3_takes_for_one_have_segments_of_their_own() {
    let key = |first: &str, second: &str| format!("{}{first}{}{second}{}", "x".repeat(52), "x".repeat(120), "x".repeat(112));
    let keys = [key("bbbb0aaa", "cbbbK-t_"), key("cbbb0aaa", "bbbbK-t_")];
    let [one, other] = keys.each_ref().map(|key| {
        let numbers = [7u64.to_le_bytes(), 300u64.to_le_bytes()].concat();
        let parts = [numbers.as_slice(), &0u32.to_le_bytes(), &300u64.to_le_bytes(), key.as_bytes(), b"\"e1\""];
        (xxhash_rust::xxh3::xxh3_128(&parts.concat()), SegmentId::of(&version(7, key, "\"e1\"", 300), 0))
    });
    assert_eq!(one.0, other.0, "mount, size, index, length of the key, key and tag");
    assert_ne!(one.1, other.1);
}

/// Ids name what lies on disks, and routes are computed by every process on its own: neither may ever change.
#[test]
fn ids_and_routes_stay_as_they_are() {
    let version = version(7, "sales/2024.parquet", "\"9bb58f26192e4ba00f01e2e7b136bbd8\"", 123_456_789);
    assert_eq!(SegmentId::of(&version, 0).to_string(), "a143af99f5fcd83ce29bb7b82470c91d");
    assert_eq!(SegmentId::of(&version, 1).to_string(), "dc4c0d05771683844b5e7944fcc478dd");
    assert_eq!(SegmentId::of(&version, 0).packed().to_string(), "cd399bc69a9a875dbdffd2db4b14ac79");
    assert_eq!(RouteKey::of(version.mount, &version.key, 0).0, 0xff7e_774c_a6c8_757d);
    assert_eq!(RouteKey::of(version.mount, &version.key, 1).0, 0xbf58_33f0_aa89_94a8);
    assert_eq!(RouteKey::of_listing(version.mount).0, 0xee5e_7a73_d787_7489);
}

#[test]
fn files_have_tags_that_no_etag_is() {
    let tag = VersionTag::file(255, 4096, 1_700_000_000_000_000_001, 1_700_000_000_000_000_002);
    assert_eq!(tag.as_str(), "mff-1000-17979cfe362a0001-17979cfe362a0002");
    assert_eq!(VersionTag::modified(4096, 1_700_000_000_000_000_000).as_str(), "m0-1000-17979cfe362a0000");
}

#[test]
fn an_empty_object_has_no_segments() {
    assert_eq!(segment_count(0), 0);
    assert_eq!(segment_bytes(0, 0), 0);
    assert_eq!(split_range(0..0).count(), 0);
    assert_eq!(split_range(5..5).count(), 0);
}

#[test]
fn segments_end_with_their_object() {
    assert_eq!(segment_count(SEGMENT_BYTES), 1);
    assert_eq!(segment_count(SEGMENT_BYTES + 1), 2);
    assert_eq!(segment_bytes(SEGMENT_BYTES + 1, 0), SEGMENT_BYTES);
    assert_eq!(segment_bytes(SEGMENT_BYTES + 1, 1), 1);
    assert_eq!(segment_bytes(SEGMENT_BYTES + 1, 2), 0);
}

proptest! {
    #[test]
    fn a_split_is_the_range_again(start in 0..SEGMENT_BYTES * 5, len in 0..SEGMENT_BYTES * 5) {
        let mut at = start;
        for piece in split_range(start..start + len) {
            prop_assert_eq!(piece.object_range().start, at);
            prop_assert!(piece.len > 0);
            prop_assert!(u64::from(piece.start) + u64::from(piece.len) <= SEGMENT_BYTES);
            at = piece.object_range().end;
        }
        prop_assert_eq!(at, start + len);
    }

    #[test]
    fn segments_add_up_to_their_object(size in 0..SEGMENT_BYTES * 20) {
        let count = segment_count(size);
        prop_assert_eq!((0..count).map(|index| segment_bytes(size, index)).sum::<u64>(), size);
        prop_assert!((0..count).all(|index| segment_bytes(size, index) > 0));
    }
}
