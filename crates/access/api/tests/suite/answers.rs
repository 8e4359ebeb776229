//! Answers are those that a program gets, and commands print.

use std::time::Duration;

use forebay_shard_store::Condition;
use forebay_shards::create;
use forebay_types::ForebayPath;
use serde_json::json;

use crate::bed::{Bed, DATASET, RECORDS};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_come_a_line_each_in_the_order_of_their_keys() {
    let bed = Bed::start(2).await;
    let one = bed.of_dataset("get", &[("key", "-100")]).await.lines();
    assert_eq!(one, [json!({"id": -100, "name": "clerk081", "note": "line 400 of 600"})]);
    let several = bed.of_dataset("get", &[("key", "7"), ("key", "-3"), ("key", "7"), ("columns", "note,id")]).await.lines();
    let ids: Vec<_> = several.iter().map(|record| record["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, [7, -3, 7]);
    assert_eq!(several[1], json!({"note": "line 497 of 743", "id": -3}));
    let all = bed.of_dataset("get", &[("key", "7"), ("columns", "*")]).await.lines();
    assert_eq!(all, bed.of_dataset("get", &[("key", "7")]).await.lines());
    assert_eq!(all[0].as_object().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_are_those_of_a_program_page_by_page() {
    let bed = Bed::start(2).await;
    let (shards, text) = (bed.shards().await, "name ^= clerk0 and note contains \"of 1\"");
    let condition = Condition::parse(text).unwrap().to_json();
    let keys = shards.search(&condition, None, None).await.unwrap();
    let hits: Vec<_> = keys.iter().map(|key| json!({"id": shards.columns().key_json(key)})).collect();
    assert!(hits.len() > 50, "there is something to find: {}", hits.len());
    assert_eq!(bed.of_dataset("search", &[("condition", text)]).await.lines(), hits);
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map(|hit: &serde_json::Value| hit["id"].to_string());
        let mut parameters = vec![("condition", text), ("limit", "40")];
        parameters.extend(after.as_deref().map(|after| ("after", after)));
        let page = bed.of_dataset("search", &parameters).await.lines();
        let is_last = page.len() < 40;
        paged.extend(page);
        if is_last {
            break;
        }
    }
    assert_eq!(paged, hits);
    let records = bed.of_dataset("search", &[("condition", text), ("columns", "*")]).await.lines();
    let expected = shards.get_many(&keys, None).await.unwrap();
    assert_eq!(records, expected.into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(bed.of_dataset("search", &[("condition", "name = nobody")]).await.lines(), Vec::<serde_json::Value>::new());
    let count = bed.of_dataset("count", &[("condition", text)]).await.json();
    assert_eq!(count, json!({"count": hits.len()}));
    assert_eq!(bed.of_dataset("count", &[]).await.json(), json!({"count": RECORDS}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_gives_all_records_page_by_page_each_once_and_in_order() {
    let bed = Bed::start(2).await;
    let (mut after, mut ids) = (None::<String>, Vec::new());
    loop {
        let mut parameters = vec![("limit", "300"), ("columns", "id")];
        parameters.extend(after.as_deref().map(|after| ("after", after)));
        let page = bed.of_dataset("scan", &parameters).await.lines();
        ids.extend(page.iter().map(|record| record["id"].as_i64().unwrap()));
        if page.len() < 300 {
            break;
        }
        after = ids.last().map(i64::to_string);
    }
    assert_eq!(ids, (-RECORDS / 4..RECORDS * 3 / 4).collect::<Vec<_>>());
    let first = bed.of_dataset("scan", &[("limit", "1"), ("columns", "*")]).await.lines();
    let key = ids[0].to_string();
    assert_eq!(first, bed.of_dataset("get", &[("key", key.as_str())]).await.lines());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_is_that_of_the_command() {
    let bed = Bed::start(2).await;
    bed.of_dataset("get", &[("key", "7")]).await.lines();
    let status = bed.of_dataset("status", &[]).await.json();
    let of_client = bed.shards().await.status().await.unwrap();
    assert_eq!((&status["dataset"], &status["manifest"]), (&json!(DATASET), &json!(1)));
    assert_eq!(status["shards"].as_array().unwrap().len(), of_client.len());
    for (shown, shard) in status["shards"].as_array().unwrap().iter().zip(of_client) {
        let printed = json!(shard);
        assert_eq!((&shown["shard"], &shown["records"]), (&printed["shard"], &printed["records"]));
        let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(shown), keys(&printed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_manifest_is_seen_a_moment_later() {
    let bed = Bed::start(1).await;
    assert_eq!(bed.of_dataset("status", &[]).await.json()["manifest"], 1);
    let (path, shards) = (DATASET.parse().unwrap(), bed.shards().await);
    let mut creating = create(&bed.client, &path, shards.columns().clone(), vec![0.5], true).await.unwrap();
    creating.push(&bed.part(0), |_| {}).await.unwrap();
    assert_eq!(creating.finish().await.unwrap(), 2);
    comes_to_count_what_a_program_counts(&bed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dataset_that_was_deleted_and_made_again_is_seen_though_its_number_is_the_same() {
    let bed = Bed::start(1).await;
    let (path, shards): (ForebayPath, _) = (DATASET.parse().unwrap(), bed.shards().await);
    assert_eq!(bed.of_dataset("count", &[]).await.json()["count"], RECORDS);
    for info in bed.client.list_all(&format!("{DATASET}/").parse().unwrap()).await.unwrap() {
        bed.client.delete(&ForebayPath::new(path.mount().clone(), info.version.key)).await.unwrap();
    }
    let mut creating = create(&bed.client, &path, shards.columns().clone(), vec![0.5], false).await.unwrap();
    creating.push(&bed.part(0), |_| {}).await.unwrap();
    assert_eq!(creating.finish().await.unwrap(), 1);
    comes_to_count_what_a_program_counts(&bed).await;
}

async fn comes_to_count_what_a_program_counts(bed: &Bed) {
    let expected = bed.shards().await.count(None).await.unwrap();
    assert!(expected < RECORDS as u64);
    for _ in 0..200 {
        let answer = bed.of_dataset("count", &[]).await;
        match answer.json()["count"].as_u64() {
            Some(count) if count == expected => return,
            Some(count) => assert_eq!(count, RECORDS as u64, "one dataset or the other, and nothing between"),
            None => assert!(matches!(answer.status, 404 | 409), "{answer:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the later one is not seen");
}
