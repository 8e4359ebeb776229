//! Datasets whose shards have ranges of keys.

use forebay_shard::{Key, KeyMap};
use forebay_shard_store::Literal;
use forebay_shards::{Cut, RangeStatus, ReshardTo, Shards, reshard};
use forebay_types::ErrorKind;
use serde_json::json;

use crate::bed::{Bed, path};
use crate::changing::reshard::{Model, NAME, open};

/// Keys of the records are from -750 to 2249; numbers below zero stand behind all others.
fn ranges() -> KeyMap {
    KeyMap::Ranges([500, 1500, -500].map(key).into())
}

fn key(number: i64) -> Key {
    Key::U64(number as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_are_cut_and_become_one_while_they_are_asked_and_changed() {
    let bed = Bed::start(2).await;
    let first = bed.create_by(NAME, &ranges(), vec![0.5]).await;
    let mut model = Model::of(&bed);
    model.compare_all(&first, "as it was made").await;
    let scratch = bed.folder().join("scratch");
    let steps =
        [(ReshardTo::Split(0), 5), (ReshardTo::Merge(3), 4), (ReshardTo::Shards(7), 7), (ReshardTo::BytesEach(1 << 30), 1)];
    for (round, (to, count)) in (0i64..).zip(steps) {
        model.change(&first, round).await;
        let before = open(&bed).await.dataset().splits.clone().unwrap();
        let done = reshard(&bed.client, &path(NAME), to, &scratch, |_| {}).await.unwrap();
        assert_eq!(done.dataset().shards.len(), count, "{to:?}");
        let after = done.dataset().splits.clone().unwrap();
        let (more, fewer) = if after.len() > before.len() { (&after, &before) } else { (&before, &after) };
        assert!(fewer.iter().all(|split| more.contains(split)), "what is neither cut nor joined stays as it is");
        model.change(&first, round + 10).await;
        for shards in [&first, &done] {
            model.compare_all(shards, &format!("{to:?}")).await;
        }
    }
    assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0, "nothing is left of it here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cut_has_about_half_on_each_side() {
    let bed = Bed::start(1).await;
    bed.create_by(NAME, &ranges(), vec![0.5]).await;
    let done = reshard(&bed.client, &path(NAME), ReshardTo::Split(1), &bed.folder().join("scratch"), |_| {}).await.unwrap();
    let records: Vec<u64> = done.dataset().shards.iter().map(|shard| shard.records).collect();
    // Of keys from 0, from 500, from 1500 with those below -500, and from -500.
    assert_eq!((records[0], records[1] + records[2], records[3], records[4]), (500, 1000, 1000, 500));
    assert!((400..600).contains(&records[1]), "{records:?}");
    let status = done.status().await.unwrap();
    let range = |from: Option<i64>, below: Option<i64>| {
        let json = |end: Option<i64>| end.map(Into::into);
        Some(RangeStatus { from: json(from), below: json(below) })
    };
    assert_eq!(status[0].range, range(None, Some(500)));
    assert_eq!((&status[3].range, &status[4].range), (&range(Some(1500), Some(-500)), &range(Some(-500), None)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_by_a_hash_are_not_cut_one_by_one_and_none_is_that_is_not_there() {
    let bed = Bed::start(1).await;
    let scratch = bed.folder().join("scratch");
    bed.create_by(NAME, &ranges(), vec![0.5]).await;
    bed.create("hashed.shards", 2, vec![0.5]).await;
    for (name, to, said) in [
        (NAME, ReshardTo::Split(4), "there is no shard 4"),
        (NAME, ReshardTo::Merge(3), "there is no shard 4"),
        (NAME, ReshardTo::Shards(0), "not 0"),
        ("hashed.shards", ReshardTo::Split(0), "spread by a hash"),
        ("hashed.shards", ReshardTo::Merge(0), "spread by a hash"),
    ] {
        let error = reshard(&bed.client, &path(name), to, &scratch, |_| {}).await.map(drop).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains(said), "{to:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_of_one_key_is_not_cut_and_all_stays_as_it_is() {
    let bed = Bed::start(1).await;
    let before = bed.create_by(NAME, &KeyMap::Ranges([500, 501].map(key).into()), vec![0.5]).await;
    let scratch = bed.folder().join("scratch");
    let error = reshard(&bed.client, &path(NAME), ReshardTo::Split(1), &scratch, |_| {}).await.map(drop).unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("can't be cut in two"), "{error}");
    let after = open(&bed).await;
    assert_eq!((after.dataset().map(), &after.dataset().next), (before.dataset().map(), &None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_announced_of_one_shard_is_done_once_and_who_wants_another_one_cut_is_told() {
    let bed = Bed::start(1).await;
    let (scratch, other) = (bed.folder().join("scratch"), Err(ErrorKind::Conflict));
    for (name, splits, to, outcome) in [
        ("a.shards", vec![500, 900, 1500, -500], ReshardTo::Split(1), Ok(())),
        ("b.shards", vec![500, 900, 1500, -500], ReshardTo::Split(0), other),
        ("c.shards", vec![500, 900, 1500, -500], ReshardTo::Merge(1), other),
        ("d.shards", vec![500, -500], ReshardTo::Merge(1), Ok(())),
        ("e.shards", vec![500, -500], ReshardTo::Merge(2), other),
    ] {
        let shards = bed.create_by(name, &ranges(), vec![0.5]).await;
        let announced = KeyMap::Ranges(splits.into_iter().map(key).collect());
        let cut = Cut::of(&shards, announced.clone(), &scratch, |_| {}).await.unwrap();
        cut.announce().await.unwrap();
        let done = reshard(&bed.client, &path(name), to, &scratch, |_| {}).await.map(drop).map_err(|error| error.kind());
        assert_eq!(done, outcome, "{name}");
        let now = Shards::open(&bed.client, &path(name)).await.unwrap();
        assert_eq!((now.dataset().map(), &now.dataset().next), (announced, &None), "{name}: what was announced is there");
    }
}

/// How many calls each shard has answered.
async fn answered(shards: &Shards) -> Vec<u64> {
    let status = shards.status().await.unwrap();
    status.iter().map(|shard| shard.replicas.iter().map(|replica| replica.answered).sum()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_a_scan_and_gets_ask_the_ranges_that_may_have_them() {
    let bed = Bed::start(1).await;
    let shards = bed.create_by(NAME, &ranges(), vec![0.5]).await;
    assert_eq!(shards.count(None).await.unwrap(), 3000, "all are brought");
    let all = json!({"and": []});
    // Two more are asked where the first one has not enough, and so on.
    for (after, first, asked) in [
        (Some(10), 11, vec![0]),
        (Some(1600), 1601, vec![2]),
        (None, -750, vec![2]),
        (Some(-600), -599, vec![2]),
        (Some(-510), -509, vec![0, 2, 3]),
        (Some(490), 491, vec![0, 1, 2]),
    ] {
        let before = answered(&shards).await;
        let found = shards.search(&all, after.map(key).as_ref(), Some(20)).await.unwrap();
        assert_eq!(found, (first..first + 20).map(key).collect::<Vec<_>>(), "behind {after:?}");
        let now = answered(&shards).await;
        let were_asked: Vec<usize> = (0..4).filter(|shard| now[*shard] > before[*shard]).collect();
        assert_eq!(were_asked, asked, "behind {after:?}");
    }
    let before = answered(&shards).await;
    assert!(shards.get(&Literal::Number((-3).into()), None).await.unwrap().is_some());
    let now = answered(&shards).await;
    assert_eq!((&now[..3], now[3]), (&before[..3], before[3] + 1));
    // Behind the last key there is nothing, and of all pages each key comes once.
    assert!(shards.search(&all, Some(&key(2249)), Some(20)).await.unwrap().is_empty());
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = shards.search(&all, after.as_ref(), Some(170)).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        read.extend(page);
    }
    assert_eq!(read, (-750..2250).map(key).collect::<Vec<_>>());
}
