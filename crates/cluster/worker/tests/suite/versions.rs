//! Which version an open gives under each rule of a mount, before and after an overwrite.

use std::time::Duration;

use forebay_protocol::RangeSpec;
use forebay_types::{ErrorKind, MountOptions, Validate};
use futures::future::join_all;

use crate::bed::{Bed, Plan, noise};

async fn bed(validate: Validate) -> Bed {
    Bed::new(Plan { options: MountOptions { validate, ..Default::default() }, ..Plan::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overwritten_object_is_conflict_and_then_the_new_version() {
    let bed = bed(Validate::Ttl(Duration::from_secs(60))).await;
    let (old, client, version) = bed.opened("a", 1 << 20).await;
    client.read(&version, 0, 4096).await.unwrap();
    let new = noise("new", 1 << 20);
    bed.s3.put("lake", "a", &new).unwrap();
    assert_eq!(client.read(&version, 0, 4096).await.unwrap(), old[..4096], "held bytes of the version that was opened");
    let error = client.read(&version, 4096, 4096).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("a"), "{error}");
    // The conflict has shown that the version is old: the next open asks, well within the TTL.
    let current = client.version("a").await;
    assert_ne!(current, version);
    assert_eq!(client.read(&current, 4096, 4096).await.unwrap(), new[4096..8192]);
    // A reader of whatever is current never sees the conflict.
    bed.s3.put("lake", "a", &old).unwrap();
    let (_, _, bytes) = client.latest("a", RangeSpec::Bounded { start: 500_000, len: 10 }).await.unwrap();
    assert_eq!(bytes, old[500_000..500_010]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_asks_at_every_open() {
    let bed = bed(Validate::Always).await;
    bed.object("a", 1000);
    let client = bed.client().await;
    let first = client.version("a").await;
    bed.s3.put("lake", "a", b"other").unwrap();
    assert_ne!(client.version("a").await, first);
    assert_eq!(bed.s3.counters().heads, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ttl_asks_when_it_has_run_out() {
    let bed = bed(Validate::Ttl(Duration::from_millis(400))).await;
    bed.object("a", 1000);
    let client = bed.client().await;
    let first = client.version("a").await;
    assert_eq!(client.version("a").await, first);
    assert_eq!(bed.s3.counters().heads, 1);
    bed.s3.put("lake", "a", b"other").unwrap();
    tokio::time::sleep(Duration::from_millis(450)).await;
    assert_ne!(client.version("a").await, first, "no open returns the old version after the TTL");
    assert_eq!(bed.s3.counters().heads, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn immutable_asks_once_until_a_refresh() {
    let bed = bed(Validate::Immutable).await;
    bed.object("x/a", 1000);
    bed.object("y", 1000);
    let client = bed.client().await;
    let first = client.version("x/a").await;
    client.version("y").await;
    bed.s3.put("lake", "x/a", b"other").unwrap();
    assert_eq!(client.version("x/a").await, first);
    client.refresh("x/").await;
    assert_ne!(client.version("x/a").await, first);
    client.version("y").await;
    assert_eq!(bed.s3.counters().heads, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_opens_are_one_head_and_missing_objects_are_not_found() {
    let bed = bed(Validate::default()).await;
    bed.object("a", 1000);
    let client = bed.client().await;
    bed.s3.set_latency(Duration::from_millis(30));
    let opens = join_all((0..50).map(|_| client.open("a"))).await;
    assert!(opens.into_iter().all(|open| open.is_ok()));
    assert_eq!(bed.s3.counters().heads, 1);
    let error = client.open("nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    bed.object("nothing", 10);
    assert_eq!(client.version("nothing").await.size, 10, "that it was not there is not remembered");
}
