//! What every kind of shared storage must do. Each function takes an empty mount.

use bytes::Bytes;
use forebay_shared_storage::{Class, Get, GetRange, ListPage, PutCondition, Storage};
use forebay_types::ErrorKind::{Conflict, Invalid, NotFound};
use forebay_types::{ErrorKind, Key, Result};
use futures::StreamExt;

use crate::lab::{get, get_version, key, pattern, put};

/// Makes one test of each function, for mounts that `$open` makes.
macro_rules! conformance {
    ($open:expr) => {
        crate::conformance::conformance! { $open,
            objects_come_back_whole, ranges_are_exact, empty_objects_are_objects, what_is_not_there_is_not_found,
            old_versions_conflict, writes_obey_conditions, keys_are_byte_exact, dot_segments_are_refused,
            listings_come_in_pages, folders_are_listed_once, parts_become_an_object, uploads_can_be_given_up
        }
    };
    ($open:expr, $($name:ident),*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let lab = $open;
            crate::conformance::$name(&lab.storage).await;
        }
    )*};
}
pub(crate) use conformance;

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    let error = result.expect_err("this must be refused");
    assert!(error.message().contains("/lake/"), "the path is missing: {error}");
    error.kind()
}

pub async fn objects_come_back_whole(storage: &Storage) {
    storage.check().await.unwrap();
    let data = pattern(3_000_000);
    let pieces = vec![data.slice(..1), Bytes::new(), data.slice(1..2_000_000), data.slice(2_000_000..)];
    let written = storage.put(&key("a/b.bin"), pieces, PutCondition::Any).await.unwrap();
    assert_eq!((written.version.size, written.version.key.as_str()), (3_000_000, "a/b.bin"));
    assert_eq!(get(storage, "a/b.bin", GetRange::All).await.unwrap(), data);
    let head = storage.head(&key("a/b.bin")).await.unwrap();
    assert_eq!(head.version, written.version);
    assert!((head.modified_ms - written.modified_ms).abs() <= 2_000, "{head:?} {written:?}");
    let listed = storage.list(&key("a/"), false, None, 10).await.unwrap();
    assert_eq!(listed.objects.len(), 1);
    assert_eq!(listed.objects[0].version, written.version);
    let counters = storage.counters();
    assert_eq!((counters.gets, counters.heads, counters.puts, counters.retries), (1, 1, 1, 0));
    assert_eq!((counters.bytes_in, counters.bytes_out), (3_000_000, 3_000_000));
}

pub async fn ranges_are_exact(storage: &Storage) {
    let data = pattern(100_000);
    put(storage, "x", data.clone()).await;
    for (range, from, to) in [
        (GetRange::Bounded(0..1), 0, 1),
        (GetRange::Bounded(99_999..100_000), 99_999, 100_000),
        (GetRange::Bounded(50_000..500_000), 50_000, 100_000),
        (GetRange::From(0), 0, 100_000),
        (GetRange::From(70_000), 70_000, 100_000),
        (GetRange::Suffix(10), 99_990, 100_000),
        (GetRange::Suffix(1_000_000), 0, 100_000),
    ] {
        let object = key("x");
        let body = storage.get(Get { key: &object, range: range.clone(), if_match: None, class: Class::Prefetch }).await.unwrap();
        assert_eq!((body.range.clone(), body.info.version.size), (from as u64..to as u64, 100_000), "{range:?}");
        assert_eq!(body.collect().await.unwrap(), data.slice(from..to), "{range:?}");
    }
    for range in [GetRange::Bounded(100_000..100_001), GetRange::From(100_000), GetRange::Bounded(5..5), GetRange::Suffix(0)] {
        assert_eq!(kind(get(storage, "x", range.clone()).await), Invalid, "{range:?}");
    }
}

pub async fn empty_objects_are_objects(storage: &Storage) {
    let written = put(storage, "empty", "").await;
    assert_eq!(written.version.size, 0);
    for range in [GetRange::All, GetRange::Bounded(0..10), GetRange::From(0), GetRange::Suffix(5)] {
        let object = key("empty");
        let tag = &written.version.tag;
        let body = storage.get(Get { key: &object, range, if_match: Some(tag), class: Class::Demand }).await.unwrap();
        assert_eq!((&body.info.version, body.range.clone()), (&written.version, 0..0));
        assert!(body.collect().await.unwrap().is_empty());
    }
    assert_eq!(kind(get(storage, "empty", GetRange::Bounded(1..2)).await), Invalid);
}

pub async fn what_is_not_there_is_not_found(storage: &Storage) {
    assert_eq!(kind(get(storage, "no/such", GetRange::All).await), NotFound);
    assert_eq!(kind(get(storage, "no/such", GetRange::Bounded(0..1)).await), NotFound);
    assert_eq!(kind(storage.head(&key("no/such")).await), NotFound);
    storage.delete(&key("no/such")).await.unwrap();
    assert_eq!(storage.list(&key("no/"), true, None, 10).await.unwrap(), ListPage::default());
    put(storage, "was", "here").await;
    storage.delete(&key("was")).await.unwrap();
    assert_eq!(kind(get(storage, "was", GetRange::All).await), NotFound);
    assert_eq!(kind(get(storage, "", GetRange::All).await), Invalid);
}

pub async fn old_versions_conflict(storage: &Storage) {
    let old = put(storage, "x", "old").await.version.tag;
    assert_eq!(get_version(storage, "x", GetRange::All, Some(&old)).await.unwrap(), "old");
    let new = put(storage, "x", "new").await.version.tag;
    assert_ne!(old, new);
    assert_eq!(kind(get_version(storage, "x", GetRange::All, Some(&old)).await), Conflict);
    assert_eq!(kind(get_version(storage, "x", GetRange::Suffix(1), Some(&old)).await), Conflict);
    assert_eq!(get_version(storage, "x", GetRange::Bounded(1..3), Some(&new)).await.unwrap(), "ew");
}

pub async fn writes_obey_conditions(storage: &Storage) {
    let put = |data: &'static str, condition| {
        let data = vec![Bytes::from(data)];
        async move { storage.put(&key("f/x"), data, condition).await }
    };
    let first = put("first", PutCondition::Absent).await.unwrap().version.tag;
    assert_eq!(kind(put("again", PutCondition::Absent).await), Conflict);
    let second = put("second", PutCondition::Version(first.clone())).await.unwrap().version.tag;
    assert_eq!(kind(put("third", PutCondition::Version(first)).await), Conflict);
    assert_eq!(get(storage, "f/x", GetRange::All).await.unwrap(), "second");
    storage.delete(&key("f/x")).await.unwrap();
    assert_eq!(kind(put("fourth", PutCondition::Version(second)).await), Conflict);
    assert_eq!(kind(storage.head(&key("f/x")).await), NotFound);
}

pub const ODD_KEYS: [&str; 16] = [
    " lead",
    "a b",
    "100%",
    "a+b",
    "ä/ß €",
    "a?b#c&d=e",
    "a%2Fb",
    "'q'\"",
    "~t",
    "b\\c",
    "*",
    "🎉",
    "trail ",
    "$@!,:;",
    "<x>&amp;",
    "Z=1/part.parquet",
];

pub async fn keys_are_byte_exact(storage: &Storage) {
    for (at, odd) in ODD_KEYS.iter().enumerate() {
        put(storage, odd, format!("object {at}")).await;
    }
    for (at, odd) in ODD_KEYS.iter().enumerate() {
        assert_eq!(get(storage, odd, GetRange::All).await.unwrap(), format!("object {at}"), "{odd:?}");
        assert_eq!(storage.head(&key(odd)).await.unwrap().version.key.as_str(), *odd);
    }
    let mut sorted = ODD_KEYS.to_vec();
    sorted.sort_unstable();
    assert_eq!(all_keys(storage, "", 5).await, sorted);
    for odd in ODD_KEYS {
        storage.delete(&key(odd)).await.unwrap();
    }
    assert_eq!(storage.list(&key(""), true, None, 10).await.unwrap().objects, []);
}

pub async fn dot_segments_are_refused(storage: &Storage) {
    for dots in ["..", ".", "../x", "a/../../x", "a/./b", "a/.."] {
        assert_eq!(kind(get(storage, dots, GetRange::All).await), Invalid, "{dots}");
        assert_eq!(kind(storage.put(&key(dots), vec![], PutCondition::Any).await), Invalid, "{dots}");
        assert_eq!(kind(storage.delete(&key(dots)).await), Invalid, "{dots}");
    }
    put(storage, "..a/.b/c..", "these are names").await;
    assert_eq!(get(storage, "..a/.b/c..", GetRange::All).await.unwrap(), "these are names");
}

pub async fn listings_come_in_pages(storage: &Storage) {
    pages_of(storage, 2500).await;
}

/// Lists that many keys in pages of several sizes.
pub async fn pages_of(storage: &Storage, count: usize) {
    // `-` sorts before `/`, and `0` behind it: folders must not disturb the order of keys.
    let mut keys: Vec<String> = (0..count).map(|at| format!("d{}/k{at:04}", at % 3)).collect();
    keys.extend(["d0-", "d0.", "d00", "e"].map(Into::into));
    let puts = keys.iter().map(|text| async move { put(storage, text, "x").await });
    let _: Vec<_> = futures::stream::iter(puts).buffer_unordered(16).collect().await;
    keys.sort_unstable();
    let before = storage.counters().lists;
    assert_eq!(all_keys(storage, "", 10_000).await, keys);
    assert!(storage.counters().lists - before <= 1 + keys.len() as u64 / 1000);
    for limit in [1000, 617, keys.len() / 2 + 1, keys.len()] {
        assert_eq!(all_keys(storage, "", limit).await, keys, "{limit}");
    }
    let some: Vec<_> = keys.iter().filter(|key| key.starts_with("d1/k00")).cloned().collect();
    assert_eq!(all_keys(storage, "d1/k00", 7).await, some);
    for at in [0, 1, keys.len() / 2, keys.len() - 1] {
        let page = storage.list(&key(""), false, Some(&key(&keys[at])), 3).await.unwrap();
        let shown: Vec<_> = page.objects.iter().map(|object| object.version.key.to_string()).collect();
        assert_eq!(shown, keys[at + 1..].iter().take(3).cloned().collect::<Vec<_>>());
    }
    assert!(all_keys(storage, "f", 10).await.is_empty());
}

async fn all_keys(storage: &Storage, prefix: &str, limit: usize) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), None::<Key>);
    loop {
        let page = storage.list(&key(prefix), false, after.as_ref(), limit).await.unwrap();
        assert!(page.objects.len() <= limit && page.folders.is_empty());
        keys.extend(page.objects.iter().map(|object| object.version.key.as_str().to_string()));
        let Some(next) = page.next else { return keys };
        after = Some(next);
    }
}

pub async fn folders_are_listed_once(storage: &Storage) {
    for text in ["a/1", "a/2/x", "a/2/y", "a-b", "b/3", "c", "d/4/5/6"] {
        put(storage, text, "x").await;
    }
    for limit in 1..=6 {
        let (mut objects, mut folders, mut after) = (Vec::new(), Vec::new(), None::<Key>);
        loop {
            let page = storage.list(&key(""), true, after.as_ref(), limit).await.unwrap();
            assert!(page.objects.len() + page.folders.len() <= limit);
            objects.extend(page.objects.iter().map(|object| object.version.key.to_string()));
            folders.extend(page.folders.iter().map(ToString::to_string));
            let Some(next) = page.next else { break };
            after = Some(next);
        }
        assert_eq!((objects, folders), (vec!["a-b".into(), "c".into()], vec!["a/".into(), "b/".into(), "d/".into()]), "{limit}");
    }
    let below = storage.list(&key("a/"), true, None, 10).await.unwrap();
    assert_eq!((below.objects[0].version.key.as_str(), &below.folders[..]), ("a/1", &[key("a/2/")][..]));
    let deeper = storage.list(&key("d/4"), true, None, 10).await.unwrap();
    assert_eq!((deeper.objects.len(), &deeper.folders[..]), (0, &[key("d/4/")][..]));
}

pub async fn parts_become_an_object(storage: &Storage) {
    let upload = storage.begin_upload(&key("big/one")).await.unwrap();
    let part = upload.part_bytes() as usize;
    let data = pattern(part + 70_000);
    upload.put_part(1, vec![data.slice(part..)]).await.unwrap();
    upload.put_part(0, vec![data.slice(..5), data.slice(5..part)]).await.unwrap();
    assert_eq!(kind(storage.head(&key("big/one")).await), NotFound);
    let written = upload.commit(2, PutCondition::Absent).await.unwrap();
    assert_eq!(written.version.size, data.len() as u64);
    assert_eq!(storage.head(&key("big/one")).await.unwrap().version, written.version);
    assert!(get(storage, "big/one", GetRange::All).await.unwrap() == data);

    let again = storage.begin_upload(&key("big/one")).await.unwrap();
    again.put_part(0, vec!["other".into()]).await.unwrap();
    assert_eq!(kind(again.commit(1, PutCondition::Absent).await), Conflict);
    let replaced = storage.begin_upload(&key("big/one")).await.unwrap();
    replaced.put_part(0, vec!["other".into()]).await.unwrap();
    replaced.commit(1, PutCondition::Version(written.version.tag)).await.unwrap();
    assert_eq!(get(storage, "big/one", GetRange::All).await.unwrap(), "other");
}

pub async fn uploads_can_be_given_up(storage: &Storage) {
    let upload = storage.begin_upload(&key("never")).await.unwrap();
    upload.put_part(0, vec!["x".into()]).await.unwrap();
    upload.abort().await.unwrap();
    assert_eq!(kind(storage.head(&key("never")).await), NotFound);
    let holed = storage.begin_upload(&key("never")).await.unwrap();
    holed.put_part(1, vec!["x".into()]).await.unwrap();
    assert_eq!(kind(holed.commit(2, PutCondition::Any).await), Invalid);
    let empty = storage.begin_upload(&key("nothing")).await.unwrap();
    assert_eq!(empty.commit(0, PutCondition::Any).await.unwrap().version.size, 0);
    assert_eq!(get(storage, "nothing", GetRange::All).await.unwrap(), "");
    assert_eq!(storage.list(&key(""), false, None, 10).await.unwrap().objects.len(), 1);
}
