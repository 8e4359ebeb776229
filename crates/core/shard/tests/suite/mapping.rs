//! Which shard has a key, against a look at each key and each shard.

use std::ops::Bound;
use std::sync::Arc;

use forebay_shard::{Key, KeyMap, KeyRange, KeySample, KeyType, SPLIT_BYTES_MAX};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

fn key() -> impl Strategy<Value = Key> {
    vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..4).prop_map(Key::Bytes)
}

fn ranges(splits: impl IntoIterator<Item = Key>) -> KeyMap {
    KeyMap::Ranges(splits.into_iter().collect())
}

fn map() -> impl Strategy<Value = KeyMap> {
    btree_set(key(), 0..12).prop_map(ranges)
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn range() -> impl Strategy<Value = KeyRange> {
    (bound(), bound()).prop_map(|(from, to)| KeyRange { from, to })
}

/// Looks at one split point after the other.
fn looked_for(map: &KeyMap, key: &Key) -> usize {
    map.splits().unwrap().iter().filter(|split| *split <= key).count()
}

proptest! {
    #[test]
    fn a_key_is_in_the_one_shard_whose_range_has_it(map in map(), key in key()) {
        let shard = map.shard_of(&key);
        prop_assert_eq!(shard, looked_for(&map, &key));
        let has: Vec<usize> = (0..map.shards()).filter(|shard| map.range_of(*shard).contains(&key)).collect();
        prop_assert_eq!(has, [shard]);
    }

    #[test]
    fn who_asks_for_a_range_asks_all_shards_that_have_some_of_it(map in map(), range in range(), keys in vec(key(), 1..60)) {
        let meeting = map.meeting(&range);
        for key in keys.iter().filter(|key| range.contains(key)) {
            prop_assert!(meeting.contains(&map.shard_of(key)), "{:?}", key);
        }
        // Of the shards at the ends no more is asked than those that the ends are in.
        let of = |bound: &Bound<Key>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(map.shard_of(key)),
            Bound::Unbounded => None,
        };
        if !meeting.is_empty() {
            prop_assert!(of(&range.from).is_none_or(|first| first == meeting.start));
            prop_assert!(of(&range.to).is_none_or(|last| last + 1 >= meeting.end));
        }
        prop_assert_eq!(KeyMap::Hash(5).meeting(&range), if range.is_empty() { 0..0 } else { 0..5 });
        prop_assert!(!range.is_empty() || !keys.iter().any(|key| range.contains(key)));
    }

    #[test]
    fn ranges_together_have_the_keys_of_both(one in range(), other in range(), keys in vec(key(), 1..60)) {
        for key in keys {
            prop_assert_eq!(one.and(&other).contains(&key), one.contains(&key) && other.contains(&key));
            let Key::Bytes(bytes) = &key else { unreachable!() };
            for prefix in [&b""[..], &[255], &[0, 255], &[1, 254]] {
                prop_assert_eq!(KeyRange::beginning(prefix).contains(&key), bytes.starts_with(prefix));
            }
        }
    }

    #[test]
    fn a_key_comes_from_a_shard_that_is_named(before in map(), after in map(), keys in vec(key(), 1..60)) {
        for (before, after) in [(&before, &after), (&KeyMap::Hash(3), &after), (&before, &KeyMap::Hash(3))] {
            let cut = before.recut(after).unwrap();
            prop_assert_eq!(cut.len(), after.shards());
            for key in &keys {
                let from = &cut[after.shard_of(key)];
                prop_assert!(from.iter().any(|share| share.shard as usize == before.shard_of(key)), "{:?}", key);
            }
            prop_assert!(cut.iter().all(|from| from.is_sorted_by_key(|share| share.shard)));
            let mut went = vec![0.0f64; before.shards()];
            cut.iter().flatten().for_each(|share| went[share.shard as usize] += share.part);
            prop_assert!(went.iter().all(|part| (part - 1.0).abs() < 1e-9), "{:?}", went);
        }
    }

    #[test]
    fn split_points_of_a_sample_cut_its_keys(keys in btree_set(vec(0u8..3, 0..80), 1..200), count in 1usize..20) {
        let mut sample = KeySample::new(count);
        let keys: Vec<Key> = keys.into_iter().map(Key::Bytes).collect();
        keys.iter().for_each(|key| sample.push(key, 1));
        let map = KeyMap::Ranges(sample.splits(count));
        prop_assert!(map.shards() <= count);
        map.check(map.shards(), KeyType::Bytes).unwrap();
        // Each has a key, so none is made of nothing.
        let mut records = vec![0usize; map.shards()];
        keys.iter().for_each(|key| records[map.shard_of(key)] += 1);
        prop_assert!(records.iter().all(|records| *records > 0), "{:?}", records);
    }
}

#[test]
fn ranges_have_about_as_many_bytes_each_whatever_the_order_of_the_keys() {
    let bytes = |key: u64| if key < 10_000 { 9 } else { 1 };
    let sampled = |keys: &mut dyn Iterator<Item = u64>| {
        let mut sample = KeySample::new(10);
        keys.for_each(|key| sample.push(&Key::U64(key), bytes(key)));
        sample.splits(10)
    };
    let splits = sampled(&mut (0..100_000u64));
    assert_eq!(splits, sampled(&mut (0..100_000u64).rev().chain(0..5_000)), "a key that comes again counts once");
    let map = KeyMap::Ranges(splits);
    assert_eq!(map.shards(), 10);
    let mut all = [0u64; 10];
    (0..100_000).for_each(|key| all[map.shard_of(&Key::U64(key))] += bytes(key));
    // 18,000 each: ten thousand keys of nine bytes, and ninety thousand of one.
    assert!(all.iter().all(|bytes| (9_000..30_000).contains(bytes)), "{all:?}");
}

#[test]
fn fewer_ranges_are_made_of_fewer_keys_and_a_key_alone_makes_one() {
    let mut sample = KeySample::new(8);
    assert_eq!(sample.splits(8).len(), 0);
    sample.push(&Key::from("one"), 1 << 40);
    assert_eq!(sample.splits(8).len(), 0);
    sample.push(&Key::from("only"), 1);
    assert_eq!(*sample.splits(8), [Key::from("onl")], "no more of it than tells it from the one before");
    let long = |end: &str| Key::Bytes([&[7; SPLIT_BYTES_MAX][..], end.as_bytes()].concat());
    let mut alike = KeySample::new(8);
    (0..50).for_each(|number| alike.push(&long(&number.to_string()), 1));
    assert_eq!(alike.splits(8).len(), 0, "they differ where split points have ended");
}

#[test]
fn what_are_no_split_points_is_refused() {
    let numbers = |all: &[u64]| ranges(all.iter().map(|number| Key::U64(*number)));
    numbers(&[3, 9]).check(3, KeyType::U64).unwrap();
    numbers(&[]).check(1, KeyType::U64).unwrap();
    KeyMap::Hash(9).check(9, KeyType::Bytes).unwrap();
    let long = |bytes| ranges([Key::Bytes(vec![1; bytes])]);
    long(SPLIT_BYTES_MAX).check(2, KeyType::Bytes).unwrap();
    let wrong = [
        (numbers(&[3, 9]), 2, KeyType::U64),
        (numbers(&[3, 9]), 3, KeyType::Bytes),
        (numbers(&[9, 3]), 3, KeyType::U64),
        (numbers(&[3, 3]), 3, KeyType::U64),
        (long(SPLIT_BYTES_MAX + 1), 2, KeyType::Bytes),
    ];
    for (map, shards, of) in wrong {
        assert!(map.check(shards, of).is_err(), "{map:?}");
    }
}

#[test]
fn hashes_spread_keys_over_shards() {
    let mut counts = [0; 7];
    (0..70_000u64).for_each(|key| counts[KeyMap::new(7, None).shard_of(&Key::U64(key))] += 1);
    assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    let splits: Arc<[Key]> = [Key::U64(5)].into();
    assert_eq!(KeyMap::new(2, Some(&splits)).shard_of(&Key::U64(5)), 1);
}
