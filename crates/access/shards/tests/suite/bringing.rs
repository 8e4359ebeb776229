//! Shards come from shared storage once, are verified, stay over a restart and make room for each other.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use forebay_shard_store::Literal;
use forebay_shards::Shards;
use forebay_types::{ErrorKind, ForebayPath};
use serde_json::json;

use crate::bed::{BUCKET, Bed, RECORDS, path, until};
use crate::changing::changes::record;
use crate::losses::{comes_to, held_by_two};

async fn get(shards: &Shards, key: i64) -> forebay_types::Result<Option<serde_json::Value>> {
    shards.get(&Literal::from_json(&json!(key)).unwrap(), None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_replica_is_kept_at_its_own_size() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![1.2, 0.35]).await;
    // Questions at the same time go to both.
    let questions = (0..64).map(|key| get(&shards, key));
    assert!(futures::future::join_all(questions).await.iter().all(|answer| answer.as_ref().is_ok_and(Option::is_some)));
    until(&shards, "both have their layers", |status| {
        let replicas = &status[0].replicas;
        let bytes: Vec<u64> = replicas.iter().filter_map(|replica| replica.bytes.filter(|_| !replica.is_changing)).collect();
        bytes.len() == 2 && bytes[0] > bytes[1] && bytes[0] > status[0].stored_bytes
    })
    .await;
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_ask_at_once_wait_for_one_fetch() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 1, vec![0.35]).await;
    let stored = shards.status().await.unwrap()[0].stored_bytes;
    bed.cluster.s3.reset_counters();
    let questions = (0..32).map(|key| get(&shards, key));
    assert!(futures::future::join_all(questions).await.iter().all(|answer| answer.as_ref().is_ok_and(Option::is_some)));
    let sent = bed.cluster.s3.counters().bytes_out;
    assert!(sent >= stored && sent < stored + 10_000, "{sent} bytes for a shard of {stored} and its manifest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_comes_back_has_its_shards() {
    let mut bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 2, vec![0.6]).await;
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
    bed.take_worker(0).shutdown().await;
    bed.cluster.s3.reset_counters();
    bed.start_worker(0).await;
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
    let sent = bed.cluster.s3.counters().bytes_out;
    assert!(sent < 10_000, "{sent} bytes: no more than a manifest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_on_a_workers_disk_is_brought_anew() {
    let mut bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 1, vec![0.35]).await;
    assert!(get(&shards, 1).await.unwrap().is_some());
    until(&shards, "it is at rest", |status| status[0].replicas.iter().all(|replica| !replica.is_changing)).await;
    bed.take_worker(0).shutdown().await;
    let kept = bed.folder().join("worker0/tiers/shards");
    let shard = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let base = std::fs::read_dir(shard).unwrap().map(|file| file.unwrap().path());
    let base = base.max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    flip(&base, base.metadata().unwrap().len() / 2);
    bed.start_worker(0).await;
    assert!(get(&shards, 1).await.unwrap().is_some());
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
}

/// Flips a bit in place, as a disk does it: a file that is cut would end a process that has it mapped.
fn flip(path: &Path, at: u64) {
    let (file, mut byte) = (File::options().read(true).write(true).open(path).unwrap(), [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_that_is_found_where_a_base_is_used_has_it_brought_anew() {
    let mut bed = Bed::start(1).await;
    // Without layers each get is along psi, whose payload is the seventh section.
    let shards = bed.create("orders.shards", 1, vec![0.01]).await;
    assert!(get(&shards, 1).await.unwrap().is_some());
    until(&shards, "it is at rest", |status| status[0].replicas.iter().all(|replica| !replica.is_changing)).await;
    bed.take_worker(0).shutdown().await;
    let kept = bed.folder().join("worker0/tiers/shards");
    let shard = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let mut files = std::fs::read_dir(shard).unwrap().map(|file| file.unwrap().path());
    let base = files.find(|file| file.file_name().unwrap().to_str().unwrap().starts_with("base-")).unwrap();
    let whole = std::fs::read(&base).unwrap();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
    flip(&base, number(48 + 6 * 24) + number(56 + 6 * 24) / 2);
    assert_ne!(std::fs::read(&base).unwrap(), whole);
    bed.start_worker(0).await;
    for key in [1, 2, 700] {
        assert!(get(&shards, key).await.unwrap().is_some(), "{key}");
    }
    assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64);
    assert_eq!(std::fs::read(&base).unwrap(), whole, "under the same name, from shared storage");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_do_not_verify_are_refused() {
    let bed = Bed::start(2).await;
    let shards = bed.create("orders.shards", 1, vec![0.35]).await.with_patience(Duration::from_secs(2));
    let file = shards.dataset().shards[0].files.iter().max_by_key(|file| file.bytes).unwrap().clone();
    let key = format!("orders.shards/data/{}", file.object);
    bed.cluster.s3.put(BUCKET, &key, &vec![7; file.bytes as usize]).unwrap();
    let error = get(&shards, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    bed.cluster.s3.put(BUCKET, &key, b"short").unwrap();
    assert_eq!(get(&shards, 1).await.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_make_room_for_each_other_and_one_that_never_fits_is_refused() {
    let room = Bed::start_with(1, 300_000).await;
    let shards = room.create("orders.shards", 4, vec![0.35]).await;
    let of_all: u64 = shards.status().await.unwrap().iter().map(|shard| shard.stored_bytes).sum();
    assert!(of_all > 10_000);
    let bed = Bed::start_with(1, of_all / 2).await;
    let shards = bed.create("orders.shards", 4, vec![0.01]).await;
    for _ in 0..3 {
        assert_eq!(shards.count(None).await.unwrap(), RECORDS as u64, "one after the other");
    }
    let held = shards.status().await.unwrap();
    let bytes: u64 = held.iter().flat_map(|shard| &shard.replicas).filter_map(|replica| replica.bytes).sum();
    assert!(bytes <= of_all / 2, "{bytes} of {}", of_all / 2);
    let tight = Bed::start_with(1, 100).await;
    let shards = tight.create("orders.shards", 1, vec![0.35]).await;
    let error = shards.count(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("shard-bytes"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_takes_longer_than_anyone_waits_comes_all_the_same() {
    let bed = Bed::start(1).await;
    let patient = bed.create("orders.shards", 1, vec![0.35]).await;
    let stored = patient.status().await.unwrap()[0].stored_bytes;
    // Two seconds for all of it.
    bed.cluster.s3.set_bandwidth(Some(stored / 2));
    let hasty = patient.clone().with_patience(Duration::from_millis(300));
    assert_eq!(get(&hasty, 1).await.unwrap_err().kind(), ErrorKind::Retry);
    until(&patient, "it is there though nobody waits", |status| status[0].replicas[0].bytes.is_some()).await;
    assert!(get(&hasty, 1).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_was_deleted_and_made_again_is_not_answered_from_the_one_before() {
    let bed = Bed::start(1).await;
    let before = bed.create("orders.shards", 2, vec![0.35]).await;
    assert_eq!(before.count(None).await.unwrap(), RECORDS as u64);
    for info in bed.client.list_all(&path("orders.shards/")).await.unwrap() {
        bed.client.delete(&ForebayPath::new(path("x").mount().clone(), info.version.key)).await.unwrap();
    }
    let after = bed.create("orders.shards", 3, vec![0.35]).await;
    assert_eq!((after.manifest(), after.dataset().shards.len()), (1, 3), "the same number, another dataset");
    assert_eq!(after.count(None).await.unwrap(), RECORDS as u64);
    assert!(get(&after, 1).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_dataset_says_of_its_objects_is_nothing_to_the_readers_of_another() {
    let bed = Bed::start(1).await;
    let (honest, other) = (bed.create("orders.shards", 1, vec![0.35]).await, bed.create("other.shards", 2, vec![0.35]).await);
    // A manifest that names the honest objects, over bytes of its writer's own.
    let mut forged = other.dataset().clone();
    forged.shards.truncate(1);
    for (file, honest) in forged.shards[0].files.iter_mut().zip(&honest.dataset().shards[0].files) {
        let bytes = bed.client.open(&path(&format!("other.shards/data/{}", file.object))).await.unwrap();
        let bytes = bed.client.read(bed.client.operation(), &bytes.version, 0..file.bytes).await.unwrap();
        bed.cluster.s3.put(BUCKET, &format!("forged.shards/data/{}", honest.object), &bytes).unwrap();
        file.object.clone_from(&honest.object);
    }
    bed.cluster.s3.put(BUCKET, "forged.shards/manifest-0000000001", &forged.encode().unwrap()).unwrap();
    let forged = Shards::open(&bed.client, &path("forged.shards")).await.unwrap();
    assert!(forged.count(None).await.unwrap() < RECORDS as u64, "it is served for what it is");
    assert_eq!(honest.count(None).await.unwrap(), RECORDS as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_merge_come_from_the_worker_that_made_them() {
    let bed = Bed::start(2).await;
    let (before, holders) = held_by_two(&bed).await;
    before.change(&[json!({"put": record(7, "merged")})]).await.unwrap();
    bed.cluster.s3.reset_counters();
    before.merge_shard(0).await.unwrap();
    let merged = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!(merged.manifest(), 2);
    for worker in holders {
        comes_to(&bed, &merged, worker, |_| true).await;
    }
    let (sent, stored) = (bed.cluster.s3.counters().bytes_out, merged.status().await.unwrap()[0].stored_bytes);
    assert!(sent < stored / 2, "{sent} bytes of shared storage for a shard of {stored}");
    assert_eq!(get(&merged, 7).await.unwrap().unwrap()["name"], "merged");
}
