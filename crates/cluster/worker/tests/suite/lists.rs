//! Listings: asked for once, given in pages, and as new as the mount's rule wants them.

use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, ListPage, PutCondition};
use forebay_types::{Key, MountOptions, Validate};

use crate::bed::{Bed, Client, Plan, until};

async fn bed(options: MountOptions) -> Bed {
    Bed::new(Plan { options, ..Plan::default() }).await
}

async fn list(client: &Client, prefix: &str, folders: bool, after: Option<&str>, limit: u32) -> ListPage {
    let (prefix, after) = (Key::new(prefix).unwrap(), after.map(|after| Key::new(after).unwrap()));
    match client.call(DataRequest::List { mount: client.mount, prefix, folders, after, limit }).await.unwrap().0 {
        DataReply::Listed(page) => page,
        other => panic!("{other:?}"),
    }
}

fn names(page: &ListPage) -> Vec<&str> {
    page.objects.iter().map(|info| info.version.key.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_is_asked_for_once_and_gives_the_versions() {
    let bed = bed(MountOptions::default()).await;
    for key in ["a/1", "a/2", "a//3", "b", "c/d/e"] {
        bed.object(key, 100);
    }
    let client = bed.client().await;
    let all = list(&client, "", false, None, 100).await;
    assert_eq!(names(&all), ["a//3", "a/1", "a/2", "b", "c/d/e"]);
    let top = list(&client, "", true, None, 100).await;
    assert_eq!((names(&top), top.folders.len()), (vec!["b"], 2));
    for _ in 0..3 {
        assert_eq!(list(&client, "", false, None, 100).await, all);
    }
    assert_eq!(bed.s3.counters().lists, 2);
    assert_eq!(client.open("a/2").await.unwrap().version, all.objects[2].version);
    assert_eq!(bed.s3.counters().heads, 0, "the listing has told the version");
    bed.object("a/4", 100);
    assert_eq!(list(&client, "", false, None, 100).await, all, "within the TTL");
    client.refresh("a/").await;
    assert_eq!(list(&client, "", false, None, 100).await.objects.len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_a_listing_follow_each_other() {
    let bed = bed(MountOptions::default()).await;
    let mut keys: Vec<String> = (0..2500).map(|number| format!("n/{number:05}")).collect();
    keys.extend((0..30).map(|number| format!("folder {number:02}/x")));
    for key in &keys {
        bed.s3.put("lake", key, b"x").unwrap();
    }
    keys.sort();
    let client = bed.client().await;
    for (folders, limit) in [(false, 700), (false, 10_000), (true, 7)] {
        let (mut seen, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let page = list(&client, if folders { "" } else { "n/" }, folders, after.as_deref(), limit).await;
            assert!(page.objects.len() + page.folders.len() <= limit as usize);
            seen.extend(page.objects.iter().map(|info| info.version.key.to_string()));
            seen.extend(page.folders.iter().map(|key| key.to_string()));
            let Some(next) = page.next else { break };
            after = Some(next.to_string());
        }
        let expected: Vec<String> = match folders {
            false => keys.iter().filter(|key| key.starts_with("n/")).cloned().collect(),
            true => (0..30).map(|number| format!("folder {number:02}/")).chain(["n/".to_string()]).collect(),
        };
        assert_eq!(seen, expected);
    }
    assert!(bed.s3.counters().lists <= 4, "3 pages and 1, not {}", bed.s3.counters().lists);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_lists_every_time_and_writes_are_seen_at_once() {
    let always = bed(MountOptions { validate: Validate::Always, ..Default::default() }).await;
    let client = always.client().await;
    assert_eq!(list(&client, "", false, None, 10).await.objects.len(), 0);
    always.object("a", 1);
    assert_eq!(list(&client, "", false, None, 10).await.objects.len(), 1);

    let immutable = bed(MountOptions { validate: Validate::Immutable, ..Default::default() }).await;
    let client = immutable.client().await;
    assert_eq!(list(&client, "", false, None, 10).await.objects.len(), 0);
    assert_eq!(list(&client, "x/", true, None, 10).await.objects.len(), 0);
    let key = Key::new("x/own").unwrap();
    let put = DataRequest::Put { mount: client.mount, key: key.clone(), condition: PutCondition::Any };
    client.send(put, vec!["hello".into()]).await.unwrap();
    assert_eq!(list(&client, "", false, None, 10).await.objects.len(), 1);
    assert_eq!(list(&client, "x/", true, None, 10).await.objects.len(), 1);
    client.call(DataRequest::Delete { mount: client.mount, key }).await.unwrap();
    assert_eq!(list(&client, "", false, None, 10).await.objects.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_finds_what_is_new_changed_and_gone() {
    let discover = Some(Duration::from_secs(1));
    let bed = bed(MountOptions { validate: Validate::Immutable, discover, ..Default::default() }).await;
    bed.object("a", 10);
    bed.object("gone", 10);
    let client = bed.client().await;
    let old = client.version("a").await;
    client.version("gone").await;
    list(&client, "", false, None, 10).await;
    bed.s3.put("lake", "a", b"changed").unwrap();
    bed.object("b", 10);
    until("the changed version is known", async || client.version("a").await != old).await;
    until("the new object is listed", async || list(&client, "", false, None, 10).await.objects.len() == 3).await;
    assert!(bed.s3.counters().lists > 0);
}
