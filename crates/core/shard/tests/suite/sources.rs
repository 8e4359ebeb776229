//! What a dataset holds that follows objects, against one that is made anew of them after each change.

use std::collections::{BTreeMap, BTreeSet};

use forebay_shard::{Key, LeftKeys, SourceChanges, SourceVersion, is_like, plan_sources};
use proptest::prelude::*;

/// An object: its version, which says its keys and values as an ETag does, and the keys.
type Object = (u32, BTreeSet<u64>);

/// A source as it was read.
#[derive(Clone, Debug)]
struct Read {
    path: u8,
    /// None where reading it was cut short.
    version: Option<u32>,
    keys: Vec<Key>,
}

#[derive(Default)]
struct Followed {
    sources: Vec<Read>,
    /// Which object, at which version, the record of a key is of.
    records: BTreeMap<Key, (u8, u32)>,
}

fn version(path: u8, tag: Option<u32>) -> SourceVersion {
    SourceVersion { path: path.to_string(), tag: tag.map(|tag| format!("v{tag}")).unwrap_or_default() }
}

impl Followed {
    /// Follows the objects; `Some(n)` ends it after so many changes of records, before it says what was read.
    fn refresh(&mut self, objects: &BTreeMap<u8, Object>, mut cut_after: Option<usize>) {
        let listing: Vec<_> = objects.iter().map(|(path, object)| version(*path, Some(object.0))).collect();
        let known: Vec<_> = self.sources.iter().map(|source| version(source.path, source.version)).collect();
        let changes = plan_sources(&listing, &known);
        let number = |path: &&str| path.parse::<u8>().unwrap();
        let read: Vec<u8> = changes.added.iter().chain(&changes.replaced).map(number).collect();
        let goes: BTreeSet<u8> = read.iter().copied().chain(changes.gone.iter().map(number)).collect();
        let before = self.sources.clone();
        let fresh: Vec<Read> = read
            .iter()
            .map(|path| Read { path: *path, version: None, keys: objects[path].1.iter().map(|key| Key::U64(*key)).collect() })
            .collect();
        // Said first: whoever comes after a cut knows what may have been written, and of what something may be missing.
        self.sources.iter_mut().filter(|source| goes.contains(&source.path)).for_each(|source| source.version = None);
        // What has the same keys is said once, where it was read last.
        self.sources.retain(|source| !fresh.iter().any(|one| one.path == source.path && one.keys == source.keys));
        self.sources.extend(fresh.iter().cloned());
        let mut left = LeftKeys::default();
        for (place, source) in before.iter().enumerate().filter(|(_, source)| goes.contains(&source.path)) {
            left.leave(place, source.keys.clone());
        }
        fresh.iter().for_each(|source| left.come(&source.keys));
        let mut writes: Vec<(Key, Option<(u8, u32)>)> = Vec::new();
        for source in &fresh {
            writes.extend(source.keys.iter().map(|key| (key.clone(), Some((source.path, objects[&source.path].0)))));
        }
        for (place, source) in before.iter().enumerate().rev().filter(|(_, source)| !goes.contains(&source.path)) {
            let again = left.stay(place, &source.keys);
            writes.extend(again.into_iter().map(|key| (key, source.version.map(|version| (source.path, version)))));
        }
        writes.extend(left.into_deleted().into_iter().map(|key| (key, None)));
        for (key, record) in writes {
            match &mut cut_after {
                Some(0) => return,
                Some(rest) => *rest -= 1,
                None => {}
            }
            match record {
                Some(record) => self.records.insert(key, record),
                None => self.records.remove(&key),
            };
        }
        self.sources.retain(|source| !goes.contains(&source.path));
        self.sources.extend(fresh.into_iter().map(|source| Read { version: Some(objects[&source.path].0), ..source }));
    }

    /// The same by brute force: all sources written in their order.
    fn wanted(&self) -> BTreeMap<Key, (u8, u32)> {
        let records = self
            .sources
            .iter()
            .flat_map(|source| source.keys.iter().map(move |key| (key.clone(), (source.path, source.version.unwrap()))));
        records.collect()
    }
}

#[test]
fn what_is_new_changed_and_gone_is_told_apart() {
    let listing = [version(1, Some(1)), version(2, Some(2)), version(4, Some(1)), version(5, Some(1))];
    let sources =
        [version(3, Some(1)), version(1, Some(1)), version(2, Some(1)), version(4, Some(1)), version(4, None), version(3, None)];
    let changes = plan_sources(&listing, &sources);
    assert_eq!(changes.added, ["5"]);
    assert_eq!(changes.replaced, ["2", "4"], "one was overwritten, one perhaps not read to its end");
    assert_eq!(changes.gone, ["3"]);
    assert_eq!(plan_sources(&[], &[]), SourceChanges::default());
}

#[test]
fn patterns_stand_for_names_of_one_folder() {
    for (pattern, path, is) in [
        ("a/*.parquet", "a/b.parquet", true),
        ("a/*.parquet", "a/b/c.parquet", false),
        ("a/*.parquet", "a/.parquet.gz", false),
        ("*/x?", "a/x1", true),
        ("*/x?", "a/x", false),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXcYb", false),
        ("a/\u{fc}?", "a/\u{fc}\u{e4}", true),
        ("a**", "a", true),
        ("a", "a/", false),
        ("", "", true),
    ] {
        assert_eq!(is_like(pattern, path), is, "{pattern} {path}");
    }
    // What would take ages by trying all ways.
    assert!(!is_like(&"*a".repeat(200), &"a".repeat(150)));
}

#[test]
fn a_key_that_a_later_source_has_stays_as_it_is_and_one_of_an_earlier_source_is_written_again() {
    let keys = |keys: &[u64]| keys.iter().map(|key| Key::U64(*key)).collect::<Vec<_>>();
    let mut left = LeftKeys::default();
    left.leave(1, keys(&[1, 2, 3, 4]));
    left.come(&keys(&[4]));
    assert_eq!(left.stay(2, &keys(&[1])), []);
    assert_eq!(left.stay(0, &keys(&[1, 2, 9])), keys(&[2]));
    assert_eq!(left.into_deleted(), keys(&[3]));
}

proptest! {
    #[test]
    fn a_dataset_that_follows_objects_has_what_their_last_versions_have(
        steps in prop::collection::vec(
            (prop::collection::vec((0u8..5, prop::option::of((prop::collection::btree_set(0u64..12, 0..6), 0u32..3))), 0..4),
             prop::option::of(0usize..12)),
            1..24,
        ),
    ) {
        let (mut objects, mut followed) = (BTreeMap::<u8, Object>::new(), Followed::default());
        for (changes, cut_after) in steps {
            for (path, object) in changes {
                match object {
                    Some((keys, values)) => {
                        let of_keys: u32 = keys.iter().map(|key| 1u32 << *key).sum();
                        objects.insert(path, (of_keys | (values << 12), keys))
                    }
                    None => objects.remove(&path),
                };
            }
            // What is cut short is made good by the next one, whatever the objects are by then.
            if cut_after.is_some() {
                followed.refresh(&objects, cut_after);
                continue;
            }
            followed.refresh(&objects, None);
            prop_assert_eq!(&followed.records, &followed.wanted());
            let there: BTreeSet<(u8, u32)> = objects.iter().map(|(path, object)| (*path, object.0)).collect();
            let read: BTreeSet<(u8, u32)> = followed.sources.iter().map(|source| (source.path, source.version.unwrap())).collect();
            prop_assert_eq!(read, there);
            let keys: BTreeSet<Key> = objects.values().flat_map(|object| object.1.iter().map(|key| Key::U64(*key))).collect();
            let held: BTreeSet<Key> = followed.records.keys().cloned().collect();
            prop_assert_eq!(held, keys);
        }
    }
}
