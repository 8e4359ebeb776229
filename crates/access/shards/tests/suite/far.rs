//! Shards that are asked rarely are answered from ranges of their cold files, and take no disk of a worker.

use std::time::{Duration, Instant};

use forebay_shard::{Key, Value};
use forebay_shard_store::{Change, ChangeIf, DatasetOrders, DatasetPin, LogObject, LogPlace, LoggedCall, Store};
use forebay_shards::{Shards, create};
use forebay_types::{ErrorKind, WorkerId};
use serde_json::{Value as Json, json};

use crate::bed::{BUCKET, Bed, columns, path};
use crate::changing::changes::{answer_at, literal, record};

/// So many that a shard of them costs more to bring than some answers.
const RECORDS: u64 = 20_000;

/// Words that hardly compress, so that few records make a large shard.
fn note(key: u64) -> String {
    let word = |place: u64| (key * 31 + place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..5).map(|place| format!("{:016x}", word(place))).collect()
}

fn name(key: u64) -> String {
    format!("clerk{:05}", key / 4)
}

fn json_of(key: u64) -> Json {
    json!({"id": key, "name": name(key), "note": note(key)})
}

/// One shard of all records, with a cold file.
async fn make(bed: &Bed, replicas: Vec<f64>) -> Shards {
    let folder = bed.folder().join("far");
    let mut building = Store::build(&folder, columns(), 0.01).unwrap().with_cold();
    for key in 0..RECORDS {
        building.push(Key::U64(key), vec![Value::Text(name(key)), Value::Text(note(key))]).unwrap();
    }
    building.finish().unwrap();
    let mut creating = create(&bed.client, &path("far.shards"), columns(), replicas, false).await.unwrap();
    creating.push(&folder, |_| {}).await.unwrap();
    creating.finish().await.unwrap();
    Shards::open(&bed.client, &path("far.shards")).await.unwrap()
}

async fn get(shards: &Shards, key: u64) -> Option<Json> {
    shards.get(&literal(key as i64), None).await.unwrap()
}

async fn equal(shards: &Shards, name: &str) -> Vec<Key> {
    shards.search(&json!({"attr": "name", "eq": name}), None, Some(100)).await.unwrap()
}

async fn bytes_here(shards: &Shards) -> u64 {
    let status = shards.status().await.unwrap();
    status[0].replicas.iter().filter_map(|replica| replica.bytes).sum()
}

fn here(bed: &Bed, place: usize) -> usize {
    let folder = bed.folder().join(format!("worker{place}/tiers/shards"));
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// The only worker has nothing in its tiers or on its disk: not even what was written through it.
async fn forget_all(bed: &mut Bed) {
    bed.take_worker(0).shutdown().await;
    std::fs::remove_dir_all(bed.folder().join("worker0")).unwrap();
    bed.start_worker(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_get_takes_three_requests_and_an_equality_four_of_little() {
    let mut bed = Bed::start(1).await;
    let shards = make(&bed, vec![0.5]).await;
    forget_all(&mut bed).await;
    // The manifest is there; what counts is what the shard takes.
    shards.status().await.unwrap();
    bed.cluster.s3.reset_counters();
    assert_eq!(get(&shards, 12_345).await, Some(json_of(12_345)));
    let (requests, bytes) = (bed.cluster.s3.counters().requests(), bed.cluster.s3.counters().bytes_out);
    assert!(requests <= 3 && bytes <= 64 << 10, "{requests} requests, {bytes} bytes for a get");
    bed.cluster.s3.reset_counters();
    assert_eq!(equal(&shards, &name(8000)).await, [8000, 8001, 8002, 8003].map(Key::U64));
    let (requests, bytes) = (bed.cluster.s3.counters().requests(), bed.cluster.s3.counters().bytes_out);
    assert!(requests <= 4 && bytes <= 64 << 10, "{requests} requests, {bytes} bytes for an equality");
    bed.cluster.s3.reset_counters();
    assert_eq!(get(&shards, 12_345).await, Some(json_of(12_345)));
    assert_eq!(bed.cluster.s3.counters().bytes_out, 0, "pages are kept in the tiers");
    assert_eq!(get(&shards, RECORDS + 5).await, None);
    assert_eq!((bytes_here(&shards).await, here(&bed, 0)), (0, 0), "it takes no disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_without_the_shard_and_what_needs_it_brings_it() {
    let bed = Bed::start(1).await;
    let shards = make(&bed, vec![0.5]).await;
    let wrong = shards.get(&literal(1), Some(&["none".to_string()])).await;
    assert!(wrong.is_err());
    assert_eq!(shards.count(Some(&json!({"attr": "name", "eq": name(0)}))).await.unwrap(), 4);
    assert_eq!(equal(&shards, "nobody").await, []);
    assert_eq!(here(&bed, 0), 0);
    let part = &note(777)[5..40];
    let found = shards.search(&json!({"attr": "note", "contains": part}), None, Some(10)).await.unwrap();
    assert_eq!(found, [Key::U64(777)]);
    assert_eq!(here(&bed, 0), 1, "a substring needs all of it");
    assert_eq!(get(&shards, 5).await, Some(json_of(5)));
}

/// The files have names from `clerk00000` to `clerk04999`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_value_is_near_is_answered_without_the_shard() {
    let bed = Bed::start_with(1, 1000).await;
    let shards = make(&bed, vec![0.5]).await;
    assert!(shards.dataset().shards[0].bounds[0].is_some());
    let above = json!({"attr": "name", "above": "clerk05"});
    let count = async |condition: &Json| shards.count(Some(condition)).await;
    assert_eq!(count(&above).await.unwrap(), 0);
    assert_eq!(count(&json!({"and": [{"attr": "note", "contains": "a"}, {"attr": "name", "prefix": "b"}]})).await.unwrap(), 0);
    // What was changed since is not in the files.
    let place = LogPlace { folder: "far.shards".into(), log: shards.dataset().log.clone().unwrap(), shard: 0 };
    let from = shards.dataset().shards[0].log_from;
    let changes = vec![Change::Put(Key::U64(7), vec![Value::Text("zoe".into()), Value::Null])];
    let object = LogObject::Calls(vec![LoggedCall { id: 1, changes }]).encode(from);
    bed.cluster.s3.put(BUCKET, place.key(from).unwrap().as_str(), &object).unwrap();
    bed.client.refresh(&path("far.shards")).await.unwrap();
    assert_eq!(count(&above).await.unwrap(), 1);
    assert_eq!(shards.search(&above, None, Some(10)).await.unwrap(), [Key::U64(7)]);
    // Here there may be some, and the worker has no room for the shard.
    assert_eq!(count(&json!({"attr": "name", "above": "clerk04"})).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(here(&bed, 0), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_pinned_is_brought_for_a_single_get() {
    let bed = Bed::start(1).await;
    let shards = make(&bed, vec![0.5]).await;
    assert_eq!(get(&shards, 5).await, Some(json_of(5)));
    assert_eq!(here(&bed, 0), 0, "that is answered from afar");
    let pin = |orders: &mut DatasetOrders| orders.pin = Some(DatasetPin::default());
    let pinned = Shards::set_orders(&bed.client, &path("far.shards"), pin).await.unwrap();
    assert_eq!(get(&pinned, 6).await, Some(json_of(6)));
    assert!(here(&bed, 0) > 0 && bytes_here(&pinned).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_often_is_brought_while_answers_go_on() {
    let bed = Bed::start(1).await;
    let shards = make(&bed, vec![0.5]).await;
    let began = Instant::now();
    let mut far = 0u64;
    while here(&bed, 0) == 0 || bytes_here(&shards).await == 0 {
        let key = far * 7919 % RECORDS;
        assert_eq!(get(&shards, key).await, Some(json_of(key)));
        far += 1;
        assert!(began.elapsed() < Duration::from_secs(120), "not brought after {far} gets");
    }
    assert!(far > 1, "not for one get");
    for key in (0..RECORDS).step_by(1999) {
        assert_eq!(get(&shards, key).await, Some(json_of(key)));
    }
}

/// What a window has counted is shown when it has ended, and the one worker says it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_a_shard_that_is_far_away_counts_as_one_operation_on_its_cold_file() {
    let bed = Bed::start_counting(Duration::from_millis(900)).await;
    let shards = make(&bed, vec![0.5]).await;
    let object = shards.dataset().shards[0].cold.clone().unwrap().object;
    let coordinator = bed.cluster.node.coordinator.as_ref().unwrap();
    let (mut told, mut shown) = ((0u64, 0u64), (0, 0, 0));
    let mut look = || {
        let segments = coordinator.placement(100).segments;
        let file = segments.into_iter().find(|segment| segment.path.key().as_str().ends_with(&object));
        let now = file.map_or((0, 0, 0), |file| (file.operations, file.reads, file.bytes_read));
        if now != shown {
            told = (told.0 + now.0, told.1 + now.1);
            shown = now;
        }
        told
    };
    let calls = 200;
    for call in 0..calls {
        // Of several questions to one segment, a call is one operation.
        let keys = [7919 * call % RECORDS, 3 * call + 1].map(Key::U64);
        assert!(shards.get_many(&keys, None).await.unwrap().iter().all(Option::is_some));
        look();
    }
    let ended = Instant::now();
    while ended.elapsed() < Duration::from_secs(3) {
        tokio::time::sleep(Duration::from_millis(3)).await;
        look();
    }
    assert_eq!(here(&bed, 0), 0);
    let (operations, reads) = look();
    // A call that goes on over a window's end is one of each window.
    assert!(operations.abs_diff(calls) * 20 <= calls, "{operations} of {calls}");
    assert!(reads.abs_diff(2 * calls) * 20 <= 2 * calls, "{reads} of {}", 2 * calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_seen_at_a_worker_that_does_not_have_the_shard() {
    let bed = Bed::start(2).await;
    let shards = make(&bed, vec![0.5, 0.5]).await;
    let workers: Vec<WorkerId> = bed.client.view().workers.iter().map(|worker| worker.id).collect();
    let ask = async |worker, question: Json| answer_at(&bed.client, &shards, worker, 0, question).await.unwrap()["ok"].clone();
    for worker in &workers {
        assert_eq!(ask(*worker, json!({"get": 40})).await, json_of(40));
    }
    assert_eq!(here(&bed, 0) + here(&bed, 1), 0);
    for round in 0..5 {
        shards.put(&record(40, &format!("round {round}")), ChangeIf::Always).await.unwrap();
        shards.put(&record(1_000_000 + round, &name(40)), ChangeIf::Always).await.unwrap();
        shards.delete(&literal(41 + round), ChangeIf::Always).await.unwrap();
        for worker in &workers {
            assert_eq!(ask(*worker, json!({"get": 40})).await["name"], format!("round {round}"));
            let versioned = ask(*worker, json!({"get": 40, "versioned": true})).await;
            assert_eq!(versioned["version"], 3 * round + 1);
            assert_eq!(ask(*worker, json!({"get": 41 + round})).await, Json::Null);
            let count = ask(*worker, json!({"count": {"attr": "name", "eq": name(40)}})).await;
            // Of the four of that name 40 has another one, and 41 to 43 go one after the other.
            assert_eq!(count, 3 - (round + 1).min(3) + round + 1, "round {round}");
        }
    }
    assert_eq!(here(&bed, 0) + here(&bed, 1), 1, "only who writes has the shard");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_merge_makes_the_cold_file_anew() {
    let mut bed = Bed::start(1).await;
    let shards = make(&bed, vec![0.5]).await;
    shards.put(&record(5, "changed"), ChangeIf::Always).await.unwrap();
    shards.delete(&literal(6), ChangeIf::Always).await.unwrap();
    shards.merge_shard(0).await.unwrap();
    let merged = Shards::open(&bed.client, &path("far.shards")).await.unwrap();
    assert_eq!(merged.manifest(), 2);
    let (before, after) = (&shards.dataset().shards[0].cold, &merged.dataset().shards[0].cold);
    assert!(before.is_some() && after.is_some() && before != after);
    forget_all(&mut bed).await;
    assert_eq!(get(&merged, 5).await.unwrap()["name"], "changed");
    assert_eq!(get(&merged, 6).await, None);
    assert_eq!(get(&merged, 7).await, Some(json_of(7)));
    assert_eq!(equal(&merged, "changed").await, [Key::U64(5)]);
    assert_eq!(here(&bed, 0), 0, "answered from afar");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_or_missing_cold_file_costs_the_bringing_and_no_answer() {
    for is_missing in [false, true] {
        let bed = Bed::start(1).await;
        let shards = make(&bed, vec![0.5]).await;
        spoil_cold_file(&bed, &shards, is_missing).await;
        assert_eq!(get(&shards, 99).await, Some(json_of(99)));
        assert_eq!(here(&bed, 0), 1);
    }
}

async fn spoil_cold_file(bed: &Bed, shards: &Shards, is_missing: bool) {
    let cold = shards.dataset().shards[0].cold.clone().unwrap();
    let object = format!("far.shards/data/{}", cold.object);
    match is_missing {
        true => bed.client.delete(&path(&object)).await.unwrap(),
        false => drop(bed.cluster.s3.put(BUCKET, &object, &vec![7; cold.bytes as usize]).unwrap()),
    }
}

/// Another worker may have the shard: who asks is not told that no other one would say anything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_or_missing_cold_file_is_named_where_there_is_no_room_for_its_shard() {
    for is_missing in [false, true] {
        let bed = Bed::start_with(1, 1000).await;
        let shards = make(&bed, vec![0.5]).await;
        spoil_cold_file(&bed, &shards, is_missing).await;
        let refused = shards.with_patience(Duration::from_secs(2)).get(&literal(99), None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Retry, "{refused}");
        assert!(refused.message().contains("cold file") && refused.message().contains("shard-bytes"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_answers_from_afar() {
    let bed = Bed::start_with(1, 1000).await;
    let shards = make(&bed, vec![0.5]).await;
    for key in (0..RECORDS).step_by(997) {
        assert_eq!(get(&shards, key).await, Some(json_of(key)));
    }
    // As many as bringing it would be worth, and pinned: there is no room for it, whatever goes.
    let keys: Vec<u64> = (0..RECORDS).step_by(199).collect();
    let many = shards.get_many(&keys.iter().map(|key| Key::U64(*key)).collect::<Vec<_>>(), None).await.unwrap();
    assert_eq!(many, keys.iter().map(|key| Some(json_of(*key))).collect::<Vec<_>>());
    let pin = |orders: &mut DatasetOrders| orders.pin = Some(DatasetPin::default());
    let shards = Shards::set_orders(&bed.client, &path("far.shards"), pin).await.unwrap();
    assert_eq!(get(&shards, 6).await, Some(json_of(6)));
    let status = shards.status().await.unwrap();
    assert!(
        status[0].replicas.iter().any(|replica| replica.why.as_deref().is_some_and(|why| why.contains("shard-bytes"))),
        "{status:?}"
    );
    let part = &note(777)[5..40];
    let refused = shards.search(&json!({"attr": "note", "contains": part}), None, Some(10)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.message().contains("shard-bytes") && refused.message().contains("reshard"), "{refused}");
    assert_eq!(here(&bed, 0), 0);
}

/// Of what a worker with more room writes, and merges later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_answers_from_afar_however_much_was_changed() {
    let bed = Bed::start_with(1, 1000).await;
    let shards = make(&bed, vec![0.5]).await;
    assert_eq!(get(&shards, 5).await, Some(json_of(5)));
    let place = LogPlace { folder: "far.shards".into(), log: shards.dataset().log.clone().unwrap(), shard: 0 };
    let from = shards.dataset().shards[0].log_from;
    for number in from..from + 6 {
        let changed =
            |key: u64| Change::Put(Key::U64(key), vec![Value::Text("changed".into()), Value::Text(note(key).repeat(1300))]);
        let changes = (0..10).map(|row| changed(number * 10 + row)).collect();
        let object = LogObject::Calls(vec![LoggedCall { id: number.into(), changes }]).encode(number);
        bed.cluster.s3.put(BUCKET, place.key(number).unwrap().as_str(), &object).unwrap();
    }
    bed.client.refresh(&path("far.shards")).await.unwrap();
    assert_eq!(get(&shards, from * 10).await.unwrap()["name"], "changed");
    assert_eq!(get(&shards, 12_345).await, Some(json_of(12_345)));
    assert_eq!(equal(&shards, "changed").await.len(), 60);
    assert_eq!(here(&bed, 0), 0);
}

/// Of two workers the one that is asked first for changes, and every other time for a search.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_one_worker_has_no_room_for_a_shard_another_one_answers_and_changes_it() {
    let mut bed = Bed::start(2).await;
    let shards = make(&bed, vec![0.5, 0.5]).await;
    shards.put(&record(5, "first"), ChangeIf::Always).await.unwrap();
    let first = usize::from(here(&bed, 0) == 0);
    assert_eq!((here(&bed, first), here(&bed, 1 - first)), (1, 0), "only who writes has the shard");
    bed.take_worker(first).shutdown().await;
    std::fs::remove_dir_all(bed.folder().join(format!("worker{first}/tiers/shards"))).unwrap();
    bed.cluster.worker.shard_bytes = 1000;
    bed.start_worker(first).await;
    let part = note(777)[5..40].to_string();
    for _ in 0..20 {
        // One that knows nothing of the workers yet.
        let shards = Shards::open(&bed.client, &path("far.shards")).await.unwrap();
        let found = shards.search(&json!({"attr": "note", "contains": part}), None, Some(10)).await.unwrap();
        assert_eq!(found, [Key::U64(777)]);
    }
    shards.put(&record(5, "second"), ChangeIf::Always).await.unwrap();
    assert_eq!(get(&shards, 5).await.unwrap()["name"], "second");
    assert_eq!((here(&bed, first), here(&bed, 1 - first)), (0, 1));
}
