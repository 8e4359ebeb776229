//! Reads of objects whose version is not known yet: one GET brings the version together with the bytes.

use std::time::{Duration, Instant};

use forebay_demo::Fault;
use forebay_protocol::RangeSpec;
use forebay_types::{ErrorKind, MountOptions, Validate, crc32c};
use futures::future::join_all;

use crate::bed::{Bed, MIB, Plan, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_object_is_one_get() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let ranges = [
        RangeSpec::Bounded { start: 0, len: 50_000 },
        RangeSpec::Bounded { start: 5000, len: 100 },
        RangeSpec::Bounded { start: 100, len: u64::MAX },
        RangeSpec::From { start: 0 },
        RangeSpec::From { start: 777_777 },
        RangeSpec::Suffix { len: 8 },
        RangeSpec::Suffix { len: 70_000 },
        RangeSpec::Suffix { len: 4 << 20 },
    ];
    for (number, range) in ranges.into_iter().enumerate() {
        let key = format!("object {number} %20ä//");
        let data = bed.object(&key, MIB + 123);
        bed.s3.reset_counters();
        let (start, end) = match range {
            RangeSpec::Bounded { start, len } => (start as usize, start.saturating_add(len).min(data.len() as u64) as usize),
            RangeSpec::From { start } => (start as usize, data.len()),
            RangeSpec::Suffix { len } => (data.len().saturating_sub(len as usize), data.len()),
        };
        let (info, first, bytes) = client.latest(&key, range).await.unwrap();
        assert_eq!((info.version.size, first), (data.len() as u64, start as u64));
        assert_eq!(bytes, data[start..end], "{range:?}");
        let counters = bed.s3.counters();
        assert_eq!((counters.gets, counters.heads), (1, 0), "{range:?}");
        assert!(counters.bytes_out <= (end - start) as u64 + 2 * 4096, "{range:?} fetched {}", counters.bytes_out);
        // Now the version is known and the bytes are here.
        assert_eq!(client.read(&info.version, start as u64, end - start).await.unwrap(), data[start..end]);
        assert_eq!(bed.s3.counters().requests(), 1, "{range:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_readers_of_an_unknown_object_are_one_get() {
    let bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", 50_000);
    let client = bed.client().await;
    bed.s3.set_latency(Duration::from_millis(30));
    let reads = join_all((0..100).map(|_| client.latest("a", RangeSpec::From { start: 0 }))).await;
    assert!(reads.into_iter().all(|read| read.unwrap().2 == data));
    let counters = bed.s3.counters();
    assert_eq!((counters.gets, counters.heads), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edges_of_objects() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("empty", 0);
    bed.object("page", 4096);
    let client = bed.client().await;
    for range in [RangeSpec::From { start: 0 }, RangeSpec::Suffix { len: 8 }, RangeSpec::Bounded { start: 0, len: 10 }] {
        client.refresh("").await;
        let (info, start, bytes) = client.latest("empty", range).await.unwrap();
        assert_eq!((info.version.size, start, bytes.len()), (0, 0, 0), "{range:?}");
    }
    for _ in 0..2 {
        client.refresh("").await;
        let (_, start, bytes) = client.latest("page", RangeSpec::From { start: 4096 }).await.unwrap();
        assert_eq!((start, bytes.len()), (4096, 0));
    }
    for start in [4097, 1 << 40, u64::MAX] {
        client.refresh("").await;
        for _ in 0..2 {
            let error = client.latest("page", RangeSpec::Bounded { start, len: 1 }).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.message().contains("/lake/page"), "{error}");
        }
    }
    let error = client.latest("nothing", RangeSpec::From { start: 0 }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("/lake/nothing"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_end_with_the_segment() {
    let bed = Bed::new(Plan { dram_bytes: 256 << 20, ..Plan::default() }).await;
    let data = bed.object("big", 65 * MIB);
    let client = bed.client().await;
    let (info, start, bytes) = client.latest("big", RangeSpec::Suffix { len: 2 << 20 }).await.unwrap();
    assert_eq!((start, bytes.len()), (63 << 20, MIB), "the suffix begins in the first segment");
    assert_eq!(bytes, data[63 * MIB..64 * MIB]);
    assert_eq!(client.read(&info.version, 64 << 20, MIB).await.unwrap(), data[64 * MIB..]);
    assert_eq!(client.read(&info.version, 63 << 20, MIB + 1).await.unwrap_err().kind(), ErrorKind::Invalid);
    let (_, _, bytes) = client.latest("big", RangeSpec::From { start: 0 }).await.unwrap();
    assert_eq!(bytes, data[..64 * MIB]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn always_validates_with_one_head_when_the_bytes_are_here() {
    let options = MountOptions { validate: Validate::Always, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let old = bed.object("a", 100_000);
    let client = bed.client().await;
    let range = RangeSpec::Bounded { start: 0, len: 10_000 };
    assert_eq!(client.latest("a", range).await.unwrap().2, old[..10_000]);
    assert_eq!(client.latest("a", range).await.unwrap().2, old[..10_000]);
    let counters = bed.s3.counters();
    assert_eq!((counters.gets, counters.heads), (1, 1));
    let new = crate::bed::noise("another", 100_000);
    bed.s3.put("lake", "a", &new).unwrap();
    assert_eq!(client.latest("a", range).await.unwrap().2, new[..10_000], "never the old version");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_large_object_in_whose_midst_the_store_damages_a_byte_nobody_reads_a_page() {
    let options = MountOptions { validate: Validate::Always, ..Default::default() };
    let bed = Bed::new(Plan { disk_bytes: 64 << 20, options, ..Plan::default() }).await;
    let mut data = bed.object("a", 20 * MIB);
    let written = crc32c(&data);
    data[10 * MIB] ^= 1;
    bed.s3.put("lake", "a", &data).unwrap();
    bed.s3.inject(Fault::Crc32c(written), 2);
    bed.s3.set_bandwidth(Some(10 * MIB as u64));
    let (client, other) = (bed.client().await, bed.client().await);
    let first_page = async {
        until("it is on its way", async || bed.s3.counters().bytes_out > 4 * MIB as u64).await;
        let version = other.version("a").await;
        let mut read = Box::pin(other.latest("a", RangeSpec::Bounded { start: 0, len: 4096 }));
        let early = tokio::time::timeout(Duration::from_millis(200), &mut read).await;
        assert!(early.is_err(), "it is before what was damaged, and nobody knows that yet: {early:?}");
        assert_eq!(client.held(&version).await, 0, "nor has another worker any of it");
        bed.s3.set_bandwidth(None);
        (read.await.unwrap_err().kind(), version)
    };
    let (all, (first, version)) = futures::join!(client.object("a", MIB), first_page);
    assert_eq!([all.unwrap_err().kind(), first], [ErrorKind::Corrupt; 2]);
    assert_eq!((bed.s3.counters().gets, client.held(&version).await), (2, 0), "asked for once more, and not kept");

    // What it tells is right now.
    bed.s3.inject(Fault::Crc32c(crc32c(&data)), 1);
    assert_eq!(client.object("a", MIB).await.unwrap(), data[..MIB]);
    assert_eq!(client.held(&version).await, 20 * MIB as u64, "all of it, together with its first page");
    assert_eq!(client.read(&version, 0, 20 * MIB).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_large_object_that_is_given_up_before_its_checksum_is_known_nothing_is_kept() {
    let mut bed = Bed::new(Plan { disk_bytes: 64 << 20, ..Plan::default() }).await;
    let data = bed.object("a", 20 * MIB);
    bed.s3.inject(Fault::Crc32c(crc32c(&data)), 1);
    bed.s3.set_bandwidth(Some(4 * MIB as u64));
    let client = bed.client().await;
    tokio::select! {
        read = client.object("a", 4096) => panic!("nobody knows yet what it is worth: {read:?}"),
        () = until("some of it has come", async || bed.s3.counters().bytes_out > 3 * MIB as u64) => {}
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let version = client.version("a").await;
    assert_eq!(client.held(&version).await, 0);
    bed.restart_worker().await;
    let client = bed.client().await;
    assert_eq!(client.held(&version).await, 0);
    bed.s3.set_bandwidth(None);
    assert_eq!(client.read(&version, 0, 20 * MIB).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_that_comes_slowly_is_read_before_its_checksum_is_known() {
    let bed = Bed::new(Plan { judged_within: Duration::from_millis(200), ..Plan::default() }).await;
    let data = bed.object("a", 16 * MIB);
    bed.s3.inject(Fault::Crc32c(crc32c(&data)), 1);
    bed.s3.set_bandwidth(Some(4 * MIB as u64));
    let (client, began) = (bed.client().await, Instant::now());
    assert_eq!(client.object("a", 4096).await.unwrap(), data[..4096]);
    assert!(began.elapsed() < Duration::from_millis(2500), "{:?} of a fetch of 4 s", began.elapsed());
    bed.s3.set_bandwidth(None);
    let version = client.version("a").await;
    assert_eq!(client.read(&version, 0, 16 * MIB).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_object_of_which_nothing_comes_any_more_is_read_as_far_as_it_has_come() {
    let bed = Bed::new(Plan { judged_within: Duration::from_secs(1), ..Plan::default() }).await;
    let data = bed.object("a", 16 * MIB);
    bed.s3.inject(Fault::Crc32c(crc32c(&data)), 1);
    bed.s3.set_bandwidth(Some(8 * MIB as u64));
    let (client, began) = (bed.client().await, Instant::now());
    let stalls = async {
        until("some of it has come", async || bed.s3.counters().bytes_out > MIB as u64).await;
        bed.s3.set_bandwidth(Some(1));
    };
    let (read, ()) = futures::join!(client.object("a", 4096), stalls);
    assert_eq!(read.unwrap(), data[..4096]);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}: storage is asked again after 5 s only", began.elapsed());
}
