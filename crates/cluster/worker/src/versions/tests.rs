//! Which of two answers counts, and what is remembered of it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use forebay_types::{Error, VersionTag};

use super::*;

const MOUNT: MountId = MountId(1);
const TTL: Validate = Validate::Ttl(Duration::from_secs(60));

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn info(name: &str, tag: &str) -> ObjectInfo {
    let version = ObjectVersion { mount: MOUNT, key: key(name), tag: VersionTag::etag(tag), size: 1 };
    ObjectInfo { version, modified_ms: 0 }
}

#[test]
fn older_answers_don_t_replace_newer_ones() {
    let versions = Versions::default();
    let before = forebay_runtime::now();
    versions.learn(&info("a", "new"), forebay_runtime::now());
    versions.learn(&info("a", "old"), before);
    assert_eq!(versions.fresh(MOUNT, &key("a"), TTL), Some(info("a", "new")));
    versions.unlearn(MOUNT, &key("a"));
    versions.learn(&info("a", "old"), before);
    assert_eq!(versions.last_seen(MOUNT, &key("a")), None, "a deleted object came back");
}

#[test]
fn refresh_forgets_what_is_below_and_what_was_asked_before() {
    let versions = Versions::default();
    let before = forebay_runtime::now();
    versions.learn(&info("a/b", "1"), before);
    versions.learn(&info("c", "1"), before);
    versions.refresh(MOUNT, &key("a/"));
    versions.learn(&info("a/b", "1"), before);
    assert_eq!(versions.fresh(MOUNT, &key("a/b"), Validate::Immutable), None);
    assert!(versions.fresh(MOUNT, &key("c"), Validate::Immutable).is_some());
}

#[test]
fn bounded_by_bytes_and_entries() {
    let versions = Versions::default();
    for n in 0..ENTRIES_MAX + 50 {
        versions.learn(&info(&format!("{n:0>200}"), "tag"), forebay_runtime::now());
    }
    let known = versions.known.lock();
    assert!(known.entries.len() <= ENTRIES_MAX && known.bytes <= BYTES_MAX);
    let counted: usize = known.entries.iter().map(|(name, entry)| entry.bytes(name)).sum();
    assert_eq!(known.bytes, counted);
}

#[tokio::test]
async fn one_asks_for_all_who_come_at_the_same_time() {
    let (versions, asked) = (Versions::default(), AtomicU32::new(0));
    let (versions, asked) = (&versions, &asked);
    let ask = || async move {
        asked.fetch_add(1, Relaxed);
        forebay_runtime::time::sleep(Duration::from_millis(20)).await;
        Ok(info("a", "1"))
    };
    let key = key("a");
    let opens = (0..50).map(|_| versions.resolve(MOUNT, &key, TTL, ask()));
    assert!(futures::future::join_all(opens).await.iter().all(|result| result.is_ok()));
    assert_eq!(asked.load(Relaxed), 1);
    assert!(versions.asking.is_empty());
}

/// The first one asks before the change, and is told after it: what it hears is old to everyone who comes then.
#[tokio::test]
async fn an_answer_from_before_a_change_is_not_for_those_who_come_behind_it() {
    for forget in
        [|versions: &Versions| versions.unlearn(MOUNT, &key("a")), |versions: &Versions| versions.refresh(MOUNT, &key(""))]
    {
        let versions = Versions::default();
        let (asked, ask) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
        let name = key("a");
        let first = versions.resolve(MOUNT, &name, TTL, async {
            asked.notify_one();
            ask.notified().await;
            Ok(info("a", "old"))
        });
        let second = async {
            asked.notified().await;
            forget(&versions);
            let second = versions.resolve(MOUNT, &name, TTL, async { Ok(info("a", "new")) });
            let (second, ()) = tokio::join!(second, async { ask.notify_one() });
            second
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap(), second.unwrap()), (info("a", "old"), info("a", "new")));
        assert_eq!(versions.fresh(MOUNT, &name, TTL), Some(info("a", "new")));
    }
}

#[tokio::test]
async fn always_never_takes_an_answer_from_before() {
    let (versions, asked) = (Versions::default(), AtomicU32::new(0));
    for _ in 0..2 {
        let ask = async {
            asked.fetch_add(1, Relaxed);
            Ok(info("a", "1"))
        };
        versions.resolve(MOUNT, &key("a"), Validate::Always, ask).await.unwrap();
    }
    assert_eq!(asked.load(Relaxed), 2);
}

#[tokio::test]
async fn one_failure_is_everyone_s() {
    let (versions, asked) = (Versions::default(), AtomicU32::new(0));
    let (versions, asked) = (&versions, &asked);
    let key = key("a");
    let ask = || async move {
        asked.fetch_add(1, Relaxed);
        forebay_runtime::time::sleep(Duration::from_millis(20)).await;
        Err(Error::retry("storage is away"))
    };
    let opens = (0..20).map(|_| versions.resolve(MOUNT, &key, Validate::Always, ask()));
    assert!(futures::future::join_all(opens).await.iter().all(|result| result.is_err()));
    assert_eq!(asked.load(Relaxed), 1);
}

#[test]
fn what_has_changed_is_remembered_as_long_as_somebody_may_be_told_of_what_was_before() {
    let versions = Versions::default();
    let now = forebay_runtime::now();
    for name in ["a", "b", "c"] {
        versions.unlearn(MOUNT, &key(name));
    }
    versions.learn(&info("b", "anew"), forebay_runtime::now());
    let mut known = versions.known.lock();
    known.forget_gone(now + GONE_FOR / 2);
    assert_eq!(known.entries.len(), 3);
    known.forget_gone(now + 2 * GONE_FOR);
    let left: Vec<&str> = known.entries.iter().map(|(name, _)| name.1.as_str()).collect();
    assert_eq!((left, known.gone.len()), (vec!["b"], 0), "what is there again stays");
    let counted: usize = known.entries.iter().map(|(name, entry)| entry.bytes(name)).sum();
    assert_eq!(known.bytes, counted);
    known.put((MOUNT, key("seldom")), Entry::gone(now));
    for _ in 0..2 * ENTRIES_MAX {
        known.put((MOUNT, key("often")), Entry::gone(now));
    }
    assert!(known.gone.len() <= ENTRIES_MAX);
    let name = (MOUNT, key("seldom"));
    assert!(known.entries.contains(&name), "who is told late of what was before would believe that");
}

#[test]
fn a_version_is_told_of_as_outdated_once_when_another_has_its_place() {
    let versions = Versions::default();
    let learn = |tag: &str| versions.learn(&info("a", tag), forebay_runtime::now());
    let after = |time: Duration| -> Vec<VersionTag> {
        versions.take_outdated(forebay_runtime::now() + time).into_iter().map(|version| version.tag).collect()
    };
    let outdated = || after(OUTDATED_FOR);
    ["1", "1", "2"].into_iter().for_each(learn);
    assert!(after(OUTDATED_FOR / 2).is_empty(), "queries may read it still");
    assert_eq!(outdated(), [VersionTag::etag("1")]);
    assert!(outdated().is_empty());
    versions.unlearn(MOUNT, &key("a"));
    ["3", "4"].into_iter().for_each(learn);
    assert_eq!(outdated(), ["2", "3"].map(VersionTag::etag));
}
