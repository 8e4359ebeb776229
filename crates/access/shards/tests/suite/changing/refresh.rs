//! Datasets that follow objects.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_shard_store::{ChangeIf, Columns, DatasetSource, decode_sources, encode_sources};
use forebay_shards::{
    Follows, ReadRecords, Records, RefreshState, Refreshed, ReshardTo, Shards, create, objects_followed, reshard,
};
use forebay_testbed::until;
use forebay_types::{Error, ErrorKind, ForebayPath, Result};
use serde_json::json;

use super::changes::{literal, name_of, put, record};
use crate::bed::{Bed, RECORDS, columns, path};

pub const MANY: usize = 1_000_000;

/// Reads lines as `100001,name`; ends after so many records of all files together, as a process does that is killed.
pub struct Lines(pub AtomicUsize);

impl ReadRecords for Lines {
    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        for line in std::fs::read_to_string(file)?.lines() {
            if self.0.fetch_sub(1, Relaxed) == 0 {
                return Err(Error::internal("killed"));
            }
            let parsed = line.split_once(',').and_then(|(id, name)| Some((id.parse::<i64>().ok()?, name)));
            let (id, name) = parsed.ok_or_else(|| Error::invalid(format!("{line} is no record")))?;
            each(vec![columns.record_of(&record(id, name))?])?;
        }
        Ok(())
    }
}

/// A dataset of records that came from no object, which follows `/lake/in/`.
pub async fn followed(bed: &Bed) -> Shards {
    bed.create("parts.shards", 2, vec![0.5]).await;
    let path = path("orders.shards");
    let mut creating = create(&bed.client, &path, columns(), vec![0.5, 0.5], false).await.unwrap();
    let other = creating.follow(vec!["/elsewhere/in/".to_string()], Duration::from_secs(60)).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Invalid, "{other}");
    creating.follow(vec!["/lake/in/".to_string()], Duration::from_secs(60)).unwrap();
    for shard in 0..2 {
        creating.push(&bed.folder().join(format!("part{shard}of2")), |_| {}).await.unwrap();
    }
    creating.finish().await.unwrap();
    Shards::open(&bed.client, &path).await.unwrap()
}

/// Workers, and such a dataset.
pub async fn followed_by(workers: usize) -> (Bed, Shards) {
    let bed = Bed::start(workers).await;
    let shards = followed(&bed).await;
    (bed, shards)
}

pub async fn store(bed: &Bed, name: &str, lines: &str) {
    bed.client.put(&path(&format!("in/{name}")), Bytes::from(lines.to_string()), PutCondition::Any).await.unwrap();
}

pub async fn delete(bed: &Bed, name: &str) {
    bed.client.delete(&path(&format!("in/{name}"))).await.unwrap();
}

pub async fn refresh_until(bed: &Bed, records: usize) -> Result<Refreshed> {
    let scratch = bed.folder().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    forebay_shards::refresh(&bed.client, &path("orders.shards"), Arc::new(Lines(AtomicUsize::new(records))), &scratch).await
}

pub async fn refresh(bed: &Bed) -> Refreshed {
    refresh_until(bed, MANY).await.unwrap()
}

/// What the dataset says of where its records came from.
async fn sources(bed: &Bed) -> Vec<DatasetSource> {
    let at = sources_of(bed).await;
    let info = bed.client.open(&at).await.unwrap();
    let bytes = bed.client.read(bed.client.operation(), &info.version, 0..info.version.size).await.unwrap();
    decode_sources(&bytes, "sources").unwrap()
}

async fn sources_of(bed: &Bed) -> ForebayPath {
    let shards = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    path(&format!("orders.shards/{}", shards.dataset().sources_key().unwrap()))
}

async fn objects_below(bed: &Bed, folder: &str) -> usize {
    bed.client.list_all(&path(folder)).await.unwrap().len()
}

/// Has another process say meanwhile that it has refreshed the dataset, and ends when its records are to be written.
struct Overtaken {
    client: Client,
    sources: ForebayPath,
    runtime: tokio::runtime::Handle,
    reads: AtomicUsize,
}

impl Overtaken {
    async fn overtake(&self) -> Result<()> {
        let info = self.client.open(&self.sources).await?;
        let bytes = self.client.read(self.client.operation(), &info.version, 0..info.version.size).await?;
        let mut sources = decode_sources(&bytes, "sources")?;
        sources.iter_mut().for_each(|source| source.tag = "of another".into());
        self.client.put(&self.sources, Bytes::from(encode_sources(&sources)?), PutCondition::Any).await?;
        Ok(())
    }
}

impl ReadRecords for Overtaken {
    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        if self.reads.fetch_add(1, Relaxed) == 0 {
            return Lines(AtomicUsize::new(MANY)).read(file, columns, each);
        }
        self.runtime.block_on(self.overtake())?;
        Err(Error::internal("killed"))
    }
}

/// The names of the records of 100001 and so on.
pub async fn names(shards: &Shards, wanted: &[Option<&str>]) {
    for (key, wanted) in (100_001..).zip(wanted) {
        assert_eq!(name_of(shards, key).await.as_deref(), *wanted, "{key}");
    }
}

async fn count(shards: &Shards) -> u64 {
    shards.count(None).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_other_shards_it_is_known_still_what_came_from_where() {
    let (bed, shards) = followed_by(2).await;
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    store(&bed, "b.txt", "100003,b3").await;
    refresh(&bed).await;
    let (before, of) = (sources(&bed).await, sources_of(&bed).await);
    let scratch = bed.folder().join("others");
    std::fs::create_dir_all(&scratch).unwrap();
    let resharded = reshard(&bed.client, &path("orders.shards"), ReshardTo::Shards(3), &scratch, |_| {}).await.unwrap();
    assert_ne!(resharded.dataset().log, shards.dataset().log);
    assert_eq!((sources_of(&bed).await, sources(&bed).await), (of, before));
    assert_eq!(refresh(&bed).await, Refreshed { objects: 2, ..Refreshed::default() }, "nothing is read again");
    delete(&bed, "a.txt").await;
    store(&bed, "b.txt", "100003,b4").await;
    let done = refresh(&bed).await;
    assert_eq!((done.replaced, done.gone, done.changes), (1, 1, 3));
    names(&resharded, &[None, None, Some("b4")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_come_change_and_go_are_followed() {
    let (bed, shards) = followed_by(2).await;
    assert_eq!(refresh(&bed).await, Refreshed::default(), "there is nothing yet");
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    store(&bed, "b.txt", "100002,b2\n100003,first\n100003,b3").await;
    store(&bed, "_SUCCESS", "no records").await;
    let done = refresh(&bed).await;
    assert_eq!((done.objects, done.added, done.replaced, done.gone), (2, 2, 0, 0));
    names(&shards, &[Some("a1"), Some("b2"), Some("b3")]).await;
    assert_eq!(count(&shards).await, RECORDS as u64 + 3);
    assert_eq!(refresh(&bed).await, Refreshed { objects: 2, ..Refreshed::default() }, "nothing has changed");
    store(&bed, "a.txt", "100001,again\n100004,a4").await;
    let done = refresh(&bed).await;
    assert_eq!((done.replaced, done.changes), (1, 2), "what b has stays as it is");
    names(&shards, &[Some("again"), Some("b2"), Some("b3"), Some("a4")]).await;
    delete(&bed, "b.txt").await;
    let done = refresh(&bed).await;
    assert_eq!((done.gone, done.changes), (1, 2));
    names(&shards, &[Some("again"), None, None, Some("a4")]).await;
    store(&bed, "b.txt", "100001,b1").await;
    refresh(&bed).await;
    names(&shards, &[Some("b1"), None, None, Some("a4")]).await;
    delete(&bed, "b.txt").await;
    refresh(&bed).await;
    names(&shards, &[Some("again"), None, None, Some("a4")]).await;
    let found = shards.search(&json!({"attr": "name", "eq": "again"}), None, None).await.unwrap();
    assert_eq!(found.len(), 1, "what another object has is there again");
    delete(&bed, "a.txt").await;
    assert_eq!(refresh(&bed).await.gone, 1);
    assert_eq!(count(&shards).await, RECORDS as u64, "records that came from no object stay");
    let state = RefreshState::read(&shards).await.unwrap().unwrap();
    assert!(state.age().is_some() && !state.is_held() && state.objects == 0, "{state:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refreshes_write_no_manifests_and_what_has_the_same_keys_no_further_objects() {
    let (bed, shards) = followed_by(1).await;
    let kept = objects_below(&bed, "orders.shards/data/").await;
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    refresh(&bed).await;
    assert_eq!(objects_below(&bed, "orders.shards/data/").await, kept + 1, "its keys");
    for round in 0..3 {
        store(&bed, "a.txt", &format!("100001,round {round}\n100002,a2")).await;
        assert_eq!(refresh(&bed).await.replaced, 1);
    }
    names(&shards, &[Some("round 2"), Some("a2")]).await;
    assert_eq!(objects_below(&bed, "orders.shards/data/").await, kept + 1, "its keys are the same");
    let now = Shards::open(&bed.client, &path("orders.shards")).await.unwrap();
    assert_eq!((now.manifest(), Follows::of(&now).await.unwrap().unwrap().objects), (shards.manifest(), 1));
    assert_eq!(objects_below(&bed, "orders.shards/sources-").await, 1);
    let off = Shards::set_refresh(&bed.client, &path("orders.shards"), None).await.unwrap();
    assert_eq!(off.manifest(), shards.manifest() + 1, "an order is what a manifest says");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_overtaken_says_that_what_he_wrote_is_doubtful() {
    let (bed, shards) = followed_by(1).await;
    store(&bed, "a.txt", "100001,a1").await;
    let (client, runtime) = (bed.client.clone(), tokio::runtime::Handle::current());
    let overtaken = Overtaken { client, sources: sources_of(&bed).await, runtime, reads: AtomicUsize::new(0) };
    let scratch = bed.folder().join("scratch");
    std::fs::create_dir_all(&scratch).unwrap();
    let ended = forebay_shards::refresh(&bed.client, &path("orders.shards"), Arc::new(overtaken), &scratch).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Internal);
    let left = sources(&bed).await;
    assert!(!left.is_empty() && left.iter().all(|source| source.tag.is_empty()), "{left:?}");
    assert_eq!(refresh(&bed).await.replaced, 1, "it is read again, though another one said that it was");
    names(&shards, &[Some("a1")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_are_named_are_followed_hidden_or_not_and_each_once() {
    let bed = Bed::start(1).await;
    for name in ["a.txt", "_b.txt"] {
        store(&bed, name, "100001,a1").await;
    }
    let found = async |from: &[&str]| {
        let from: Vec<String> = from.iter().map(|name| format!("/lake/{name}")).collect();
        let found = objects_followed(&bed.client, &path("orders.shards"), &from).await.unwrap();
        found.iter().map(|object| object.version.key.as_str().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(found(&["in/", "in/*.txt", "in/"]).await, ["in/a.txt"]);
    assert_eq!(found(&["in/_b.txt", "in", "in/_b.txt"]).await, ["in/_b.txt", "in/a.txt"]);
    assert!(found(&["nothing", "no/*"]).await.is_empty());
    let own = objects_followed(&bed.client, &path("in"), &["/lake/in/a.txt".to_string()]).await.unwrap();
    assert!(own.is_empty(), "a dataset does not follow itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_was_deleted_is_not_refreshed_and_one_that_was_made_again_is() {
    let bed = Bed::start(1).await;
    let shards = bed.create("orders.shards", 2, vec![0.5]).await;
    for name in ["first", "second"] {
        // A change of each shard, as a merge without one writes no manifest.
        for key in 0..20 {
            put(&shards, key, name).await.unwrap();
        }
        for shard in 0..2 {
            shards.merge_shard(shard).await.unwrap();
        }
    }
    let delete_all = async || {
        for folder in ["orders.shards/", "parts.shards/"] {
            for object in bed.client.list_all(&path(folder)).await.unwrap() {
                bed.client.delete(&path(object.version.key.as_str())).await.unwrap();
            }
        }
    };
    let doers = || bed.cluster.node.workers.iter().flat_map(|worker| worker.followed()).collect::<Vec<_>>();
    let wanted = [(path("orders.shards"), Duration::from_secs(60))];
    delete_all().await;
    followed(&bed).await.status().await.unwrap();
    until("the one that was made again is followed", || doers() == wanted).await;
    delete_all().await;
    until("a deleted one is not refreshed", || doers().is_empty()).await;
    // Its first manifest has the same number as the one before.
    followed(&bed).await.status().await.unwrap();
    until("it is followed again", || doers() == wanted).await;
    bed.cluster.node.workers.iter().for_each(|worker| worker.forget_dataset(&path("orders.shards")));
    assert!(doers().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_writes_stays_until_the_object_changes() {
    let (bed, shards) = followed_by(1).await;
    store(&bed, "a.txt", "100001,a1\n100002,a2\n100003,a3").await;
    refresh(&bed).await;
    put(&shards, 100_001, "mine").await.unwrap();
    shards.delete(&literal(100_002), ChangeIf::Always).await.unwrap();
    put(&shards, 100_004, "mine alone").await.unwrap();
    store(&bed, "b.txt", "100005,b5").await;
    refresh(&bed).await;
    names(&shards, &[Some("mine"), None, Some("a3"), Some("mine alone"), Some("b5")]).await;
    store(&bed, "a.txt", "100001,again\n100002,again").await;
    refresh(&bed).await;
    names(&shards, &[Some("again"), Some("again"), None, Some("mine alone"), Some("b5")]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_object_that_can_not_be_read_the_last_version_stays_and_it_is_said_why() {
    let (bed, shards) = followed_by(1).await;
    store(&bed, "a.txt", "100001,a1").await;
    refresh(&bed).await;
    store(&bed, "a.txt", "no record").await;
    store(&bed, "b.txt", "100002,b2").await;
    let done = refresh(&bed).await;
    assert!(done.errors.len() == 1 && done.errors[0].contains("/lake/in/a.txt"), "{:?}", done.errors);
    names(&shards, &[Some("a1"), Some("b2")]).await;
    assert_eq!(RefreshState::read(&shards).await.unwrap().unwrap().errors, done.errors);
    assert_eq!(std::fs::read_dir(bed.folder().join("scratch")).unwrap().count(), 0, "no file of it stays");
    let again = refresh_until(&bed, 0).await.unwrap();
    assert_eq!(again.errors, done.errors, "it is not read again as long as it is the same");
    store(&bed, "a.txt", "100001,mended").await;
    assert_eq!(refresh(&bed).await.errors, Vec::<String>::new());
    names(&shards, &[Some("mended"), Some("b2")]).await;
    assert_eq!(RefreshState::read(&shards).await.unwrap().unwrap().errors, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_with_a_record_that_workers_refuse_keeps_no_other_from_being_followed() {
    let (bed, shards) = followed_by(1).await;
    store(&bed, "c.txt", "100003,c3").await;
    refresh(&bed).await;
    delete(&bed, "c.txt").await;
    store(&bed, "a.txt", &format!("100004,small\n100001,{}", "x".repeat(5 << 20))).await;
    store(&bed, "b.txt", "100002,b2").await;
    let done = refresh(&bed).await;
    assert!(done.errors.len() == 1 && done.errors[0].contains("4 MiB"), "{:?}", done.errors);
    assert_eq!((done.added, done.gone), (2, 1));
    names(&shards, &[None, Some("b2"), None, None]).await;
    assert_eq!(sources(&bed).await.len(), 1, "of what was not read nothing is said");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_ends_between_log_and_manifest_is_made_good_by_the_next_one() {
    let (bed, shards) = followed_by(1).await;
    let lines = |name: &str| (100_001..101_501).map(|key| format!("{key},{name}\n")).collect::<String>();
    store(&bed, "a.txt", &lines("first")).await;
    // All are read for their keys, and some of them written, however often.
    for _ in 0..3 {
        refresh_until(&bed, 1500 + 1200).await.unwrap_err();
        assert_eq!(sources(&bed).await.len(), 1, "what is doubtful is said once");
    }
    names(&shards, &[Some("first")]).await;
    assert!(count(&shards).await < RECORDS as u64 + 1500);
    delete(&bed, "a.txt").await;
    refresh(&bed).await;
    assert_eq!(count(&shards).await, RECORDS as u64, "what was written is known to be of an object that is gone");
    store(&bed, "a.txt", &lines("second")).await;
    refresh(&bed).await;
    store(&bed, "a.txt", &lines("third")).await;
    refresh_until(&bed, 1500 + 1200).await.unwrap_err();
    // The version from before has to be written again, though it was read to its end once.
    store(&bed, "a.txt", &lines("second")).await;
    refresh(&bed).await;
    names(&shards, &[Some("second"), Some("second")]).await;
    assert_eq!(shards.count(Some(&json!({"attr": "name", "eq": "second"}))).await.unwrap(), 1500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_worker_has_to_refresh_a_dataset_one_process_does_and_merges_lose_nothing_of_it() {
    let (bed, shards) = followed_by(3).await;
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    refresh(&bed).await;
    let doers = async || {
        Shards::open(&bed.client, &path("orders.shards")).await.unwrap().status().await.unwrap();
        bed.cluster.node.workers.iter().flat_map(|worker| worker.followed()).collect::<Vec<_>>()
    };
    assert_eq!(doers().await, [(path("orders.shards"), Duration::from_secs(60))]);
    for shard in 0..2 {
        shards.merge_shard(shard).await.unwrap();
    }
    assert_eq!(refresh(&bed).await, Refreshed { objects: 1, ..Refreshed::default() });
    delete(&bed, "a.txt").await;
    let state = path("orders.shards/refresh");
    let held = |until: i64| Bytes::from(json!({"held_until_ms": until}).to_string());
    let now = forebay_runtime::system_time().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
    bed.client.put(&state, held(now + 300_000), PutCondition::Any).await.unwrap();
    let busy = refresh_until(&bed, MANY).await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Retry, "{busy}");
    // Who held it has ended long ago; or his clock was wrong.
    bed.client.put(&state, held(1), PutCondition::Any).await.unwrap();
    assert_eq!(refresh(&bed).await.gone, 1);
    bed.client.put(&state, held(i64::MAX), PutCondition::Any).await.unwrap();
    assert_eq!(refresh(&bed).await.gone, 0);
    names(&shards, &[None, None]).await;
    let off = Shards::set_refresh(&bed.client, &path("orders.shards"), None).await.unwrap();
    assert_eq!(off.dataset().following.as_ref().unwrap().every_ms, 0);
    assert_eq!(doers().await, []);
    let other =
        forebay_shards::refresh(&bed.client, &path("parts.shards"), Arc::new(Lines(AtomicUsize::new(1))), bed.folder()).await;
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Invalid, "it follows nothing");
}
