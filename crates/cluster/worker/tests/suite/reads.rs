//! The way of a read: exactly the pages asked, once for all who wait, within the bound, and right after failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_demo::Fault;
use forebay_metrics::table::STORAGE_MISMATCHES;
use forebay_protocol::{AdminRequest, DataReply, DataRequest, TraceContext, decode, encode};
use forebay_types::{BitRate, ErrorKind, Key, MountId, MountOptions, SegmentId, crc32c};
use futures::future::join_all;

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, control, next, prefetch, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cold_read_fetches_exactly_the_pages_asked() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 10 * MIB + 5).await;
    assert_eq!(client.read(&version, 5000, 10_000).await.unwrap(), data[5000..15_000]);
    let counters = bed.s3.counters();
    assert_eq!((counters.gets, counters.bytes_out), (1, 3 * 4096), "pages 1 to 3");
    // One page before and one page behind are missing now.
    assert_eq!(client.read(&version, 0, 20_000).await.unwrap(), data[..20_000]);
    let counters = bed.s3.counters();
    assert_eq!((counters.gets, counters.bytes_out), (3, 5 * 4096));
    // The last page has 5 bytes.
    let end = data.len() - 100;
    assert_eq!(client.read(&version, end as u64, 100).await.unwrap(), data[end..]);
    assert_eq!(bed.s3.counters().bytes_out, 5 * 4096 + 4096 + 5);
    let report = bed.worker().report();
    assert_eq!((report.reads, report.bytes_served), (3, 30_100));
    assert_eq!(report.bytes_hit, 20_000 - 4096 - (20_000 - 4 * 4096), "what the second read found");
    assert_eq!(report.storage[0].1.gets, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_says_its_trace_is_answered_as_any_other() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", MIB).await;
    let request = DataRequest::Read { operation: OPERATION, version, start: 5000, len: 10_000, in_place: false };
    let context = TraceContext { trace: 7, span: 8 };
    let answer = client.connection.call(context.before(&encode(&request)), Vec::new()).await.unwrap();
    assert!(matches!(decode(&answer.meta), Ok(DataReply::Read { in_place: None, .. })));
    assert_eq!(answer.payload, data[5000..15_000]);
    let twice = context.before(&context.before(&encode(&request)));
    let answer = client.connection.call(twice, Vec::new()).await.unwrap();
    assert!(matches!(decode(&answer.meta), Ok(DataReply::Failed { kind: ErrorKind::Invalid, .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_readers_of_one_range_are_one_get() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 2 * MIB).await;
    bed.s3.set_latency(Duration::from_millis(50));
    let reads = join_all((0..100).map(|_| client.read(&version, 100_000, 500_000))).await;
    assert!(reads.into_iter().all(|read| read.unwrap() == data[100_000..600_000]));
    assert_eq!(bed.s3.counters().gets, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_overlaps_fetch_only_the_rest() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 16 * MIB).await;
    bed.s3.set_latency(Duration::from_millis(20));
    let parts = [(0, 8), (4, 8), (2, 12), (0, 16), (15, 1)];
    let reads = parts.map(|(start, len)| client.read(&version, (start * MIB) as u64, len * MIB));
    for (read, (start, len)) in join_all(reads).await.into_iter().zip(parts) {
        assert_eq!(read.unwrap(), data[start * MIB..(start + len) * MIB]);
    }
    assert_eq!(bed.s3.counters().bytes_out, 16 * MIB as u64, "no byte twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_page_does_not_wait_for_the_last() {
    let bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", 4 * MIB);
    let client = Arc::new(bed.client().await);
    let version = client.version("a").await;
    bed.s3.set_bandwidth(Some(2 * MIB as u64));
    let all = tokio::spawn({
        let (client, version) = (Arc::clone(&client), version.clone());
        async move { client.read(&version, 0, 4 * MIB).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    assert_eq!(client.read(&version, 0, 4096).await.unwrap(), data[..4096]);
    assert!(began.elapsed() < Duration::from_millis(900), "took {:?} of a fetch of 2 s", began.elapsed());
    assert!(!all.is_finished());
    assert_eq!(all.await.unwrap().unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_nobody_waits_for_is_cancelled() {
    let bed = Bed::new(Plan::default()).await;
    let (_, client, version) = bed.opened("a", 32 * MIB).await;
    bed.s3.set_bandwidth(Some(4 * MIB as u64));
    let read = client.read(&version, 0, 32 * MIB);
    assert!(tokio::time::timeout(Duration::from_millis(300), read).await.is_err(), "32 MiB at 4 MiB/s take 8 s");
    tokio::time::sleep(Duration::from_millis(700)).await;
    let after_cancel = bed.s3.counters().bytes_out;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What lay in sockets may still count; 4 MiB would have followed in that second.
    let later = bed.s3.counters().bytes_out;
    assert!(later - after_cancel < MIB as u64, "{after_cancel} bytes, and {later} a second later");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failure_is_everyone_s_and_broken_connections_heal() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 3 * MIB).await;
    bed.s3.inject(Fault::CutAfter(100_000), 2);
    assert_eq!(client.read(&version, 0, MIB).await.unwrap(), data[..MIB]);
    bed.s3.inject(Fault::Status(403), 1);
    bed.s3.set_latency(Duration::from_millis(50));
    let reads = join_all((0..10).map(|_| client.read(&version, 2 * MIB as u64, MIB))).await;
    for read in reads {
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Denied);
    }
    assert_eq!(client.read(&version, 2 * MIB as u64, MIB).await.unwrap(), data[2 * MIB..], "an error is not remembered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_not_what_the_store_says_is_asked_for_once_more_and_not_kept() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 2 * MIB).await;
    let sum = crc32c(&data);
    bed.s3.inject(Fault::Crc32c(!sum), 1);
    bed.s3.inject(Fault::Crc32c(sum), 1);
    assert_eq!(client.read(&version, 0, 2 * MIB).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 2);

    let (data, client, version) = bed.opened("b", 2 * MIB).await;
    bed.s3.inject(Fault::Crc32c(!crc32c(&data)), 2);
    let error = client.read(&version, 0, 2 * MIB).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("/lake/b: "), "{error}");
    assert_eq!(bed.s3.counters().gets, 4);
    assert!(STORAGE_MISMATCHES.with(["lake"]).get() >= 3, "one of the first object, two of this one, and those of other tests");
    assert_eq!(client.held(&version).await, 0);
    assert_eq!(client.read(&version, 0, 2 * MIB).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 5, "the error is not remembered, and neither are its bytes");

    let (data, client, version) = bed.opened("c", MIB).await;
    bed.s3.inject(Fault::Crc32c(!crc32c(&data)), 2);
    bed.s3.set_bandwidth(Some(MIB as u64 / 2));
    let first_page = async {
        until("all of it is on its way", async || bed.s3.counters().gets > 5).await;
        let mut read = Box::pin(client.read(&version, 0, 4096));
        let early = tokio::time::timeout(Duration::from_millis(200), &mut read).await;
        assert!(early.is_err(), "nobody reads what was not judged: {early:?}");
        bed.s3.set_bandwidth(None);
        read.await
    };
    let (all, first) = futures::join!(client.read(&version, 0, MIB), first_page);
    assert_eq!([all, first].map(|read| read.unwrap_err().kind()), [ErrorKind::Corrupt; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_away_is_retry_and_cached_data_is_served() {
    let mut bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 2 * MIB).await;
    client.read(&version, 0, MIB).await.unwrap();
    bed.s3.stop();
    assert_eq!(client.read(&version, 1000, 50_000).await.unwrap(), data[1000..51_000]);
    assert_eq!(client.version("a").await, version, "the mount's rule still accepts it");
    let began = Instant::now();
    let errors = join_all((0..20).map(|_| client.open("b"))).await;
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Retry);
        assert!(error.message().contains("/lake/b"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(8), "each waited for its own deadline: {:?}", began.elapsed());
    let error = client.read(&version, MIB as u64, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains("/lake/a"), "{error}");
    let warnings = bed.worker().report().warnings;
    assert!(warnings.len() == 1 && warnings[0].text.starts_with("mount lake: "), "{warnings:?}");
    bed.s3.restart().unwrap();
    assert_eq!(client.read(&version, MIB as u64, 10).await.unwrap(), data[MIB..MIB + 10]);
    assert!(bed.worker().report().warnings.is_empty(), "it is there again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_worker_comes_back_warm() {
    let mut bed = Bed::new(Plan { disk_bytes: 64 << 20, ..Plan::default() }).await;
    let (data, client, version) = bed.opened("a", 9 * MIB + 77).await;
    assert_eq!(client.read(&version, 0, data.len()).await.unwrap(), data);
    let id = bed.worker().id();
    bed.restart_worker().await;
    assert_eq!(bed.worker().id(), id);
    bed.s3.reset_counters();
    let client = bed.client().await;
    assert_eq!(client.read(&version, 0, data.len()).await.unwrap(), data);
    assert_eq!(bed.s3.counters().requests(), 0);
    assert_eq!(bed.worker().report().bytes_hit, data.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_before_a_restart_is_kept_on_where_it_is_pinned_and_not_old() {
    let mut bed = Bed::new(Plan { disk_bytes: 64 << 20, ..Plan::default() }).await;
    control(bed.node.coordinator_at(), AdminRequest::PinAdd { path: "/lake/p/".parse().unwrap() }).await.unwrap();
    let client = bed.client().await;
    let mut segments = Vec::new();
    for key in ["p/now", "p/old", "elsewhere"] {
        bed.object(key, 100_000);
        let version = client.version(key).await;
        segments.push(SegmentId::of(&version, 0));
        client.call(prefetch(&version, vec![(0, 100_000)], true, false, 0)).await.unwrap();
    }
    bed.stop_worker().await;
    bed.s3.put("lake", "p/old", b"another").unwrap();
    bed.start_worker().await;
    let client = bed.client().await;
    let kept = async || {
        let DataReply::Held(held) = client.call(DataRequest::Held { segments: segments.clone() }).await.unwrap().0 else {
            panic!()
        };
        held.iter().map(|held| held.keep).collect::<Vec<_>>()
    };
    until("what is pinned is kept alone", async || kept().await == [true, false, false]).await;
    // And known, so that it is let go of when it is replaced.
    bed.s3.put("lake", "p/now", b"another").unwrap();
    let key = Key::new("p/now").unwrap();
    client.call(DataRequest::Changed { mount: bed.mount.id, key, info: None }).await.unwrap();
    assert_eq!(kept().await, [false, false, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_ranges_and_unknown_mounts_are_refused() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 10_000);
    bed.object("empty", 0);
    let client = bed.client().await;
    let version = client.version("a").await;
    for (start, len) in [(10_000, 1), (9_000, 1001), (u64::MAX, 1)] {
        assert_eq!(client.read(&version, start, len).await.unwrap_err().kind(), ErrorKind::Invalid, "{start}+{len}");
    }
    assert!(client.read(&version, 10_000, 0).await.unwrap().is_empty());
    let empty = client.version("empty").await;
    assert!(client.read(&empty, 0, 0).await.unwrap().is_empty());
    assert_eq!(client.read(&empty, 0, 1).await.unwrap_err().kind(), ErrorKind::Invalid);
    let mut elsewhere = version;
    elsewhere.mount = MountId(4711);
    assert_eq!(client.read(&elsewhere, 0, 1).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefetch_fetches_in_order_once_and_is_cancelled() {
    let bed = Bed::new(Plan::default()).await;
    let (data, client, version) = bed.opened("a", 24 * MIB).await;
    let bring = |ranges| client.call(prefetch(&version, ranges, false, false, 0));
    let ranges = vec![(0, 1000), (8 * MIB as u64, 2 * MIB as u32), (1000, 5000)];
    let (reply, _) = bring(ranges.clone()).await.unwrap();
    assert_eq!(reply, forebay_protocol::DataReply::Fetched { bytes: 4096 + 2 * MIB as u64 + 4096 });
    let fetched = bed.s3.counters();
    assert_eq!((fetched.gets, fetched.bytes_out), (3, 2 * 4096 + 2 * MIB as u64));
    assert_eq!(bring(ranges).await.unwrap().0, forebay_protocol::DataReply::Fetched { bytes: 0 });
    assert_eq!(client.read(&version, 8 * MIB as u64, 2 * MIB).await.unwrap(), data[8 * MIB..10 * MIB]);
    assert_eq!(bed.s3.counters().gets, 3);
    bed.s3.set_bandwidth(Some(4 * MIB as u64));
    let long = bring(vec![(10 * MIB as u64, 14 * MIB as u32)]);
    assert!(tokio::time::timeout(Duration::from_millis(300), long).await.is_err());
    tokio::time::sleep(Duration::from_millis(700)).await;
    let cancelled = bed.s3.counters().bytes_out;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(bed.s3.counters().bytes_out - cancelled < MIB as u64, "it went on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_urgent_prefetch_does_not_wait_for_those_before_it() {
    let bandwidth = Some(BitRate::from_bytes_per_sec(4 << 20));
    let bed = Bed::new(Plan { options: MountOptions { bandwidth, ..Default::default() }, ..Plan::default() }).await;
    bed.object("long", 12 * MIB);
    bed.object("short", MIB);
    let client = bed.client().await;
    let (long, short) = (client.version("long").await, client.version("short").await);
    let bring = |version: &_, bytes: usize, urgent| client.call(prefetch(version, vec![(0, bytes as u32)], false, urgent, 0));
    let mut before = Box::pin(bring(&long, 12 * MIB, false));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut before).await.is_err());
    tokio::select! {
        _ = &mut before => panic!("it waited for three seconds of bytes"),
        came = bring(&short, MIB, true) => came.map(|_| ()).unwrap(),
    }
    before.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_of_a_mount_is_kept() {
    let bandwidth = Some(BitRate::from_bytes_per_sec(4 << 20));
    let bed = Bed::new(Plan { options: MountOptions { bandwidth, ..Default::default() }, ..Plan::default() }).await;
    let (data, client, version) = bed.opened("a", 6 * MIB).await;
    let began = Instant::now();
    assert!(client.read(&version, 0, 6 * MIB).await.unwrap() == data);
    // 1 MiB of burst at once, 5 MiB at 4 MiB/s.
    let took = began.elapsed();
    assert!(took > Duration::from_millis(1100), "{took:?} for 6 MiB at 4 MiB/s");
}

/// Readers that give up at any moment, others that don't, one small tier: nobody hangs and every byte is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_give_up_disturb_nobody() {
    let bed = Bed::new(Plan { dram_bytes: 12 << 20, ..Plan::default() }).await;
    let data = Arc::new(bed.object("a", 20 * MIB));
    bed.s3.set_latency(Duration::from_millis(3));
    let version = bed.client().await.version("a").await;
    let readers: Vec<_> = (0..12u64)
        .map(|reader| {
            let (data, version, address, mount) = (Arc::clone(&data), version.clone(), bed.worker().address(), bed.mount.id);
            tokio::spawn(async move {
                let client = Client::connect(&address, mount).await;
                let mut state = 77 + reader;
                for _ in 0..40 {
                    let start = next(&mut state) as usize % (18 * MIB);
                    let len = 1 + next(&mut state) as usize % (2 * MIB);
                    let read = client.read(&version, start as u64, len);
                    let patience = match reader % 2 {
                        0 => Duration::from_secs(20),
                        _ => Duration::from_micros(next(&mut state) % 20_000),
                    };
                    match tokio::time::timeout(patience, read).await {
                        Ok(bytes) => assert!(bytes.unwrap() == data[start..start + len]),
                        Err(_) => assert!(reader % 2 == 1, "a read of {len} bytes hangs"),
                    }
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.unwrap();
    }
}
