//! What several workers miss at a time: shared storage gives it once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use forebay_block_store::StoreSettings;
use forebay_protocol::{DataReply, PeerRequest, RangeSpec, Shared};
use forebay_types::{MountOptions, PageRun, SegmentId, Validate, WorkerId};
use forebay_worker::Worker;

use crate::bed::{Bed, Client, MIB, Plan, prefetch, start_worker, until};

/// A bed with a second worker, which know of each other, and a client of each.
async fn two() -> (Bed, Arc<Worker>, [Client; 2]) {
    let bed = Bed::new(Plan::default()).await;
    let settings = StoreSettings::new(bed.folder.path().join("second"), 64 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let (near, far) = (bed.client().await, Client::connect(&second.address(), bed.mount.id).await);
    let tries = AtomicUsize::new(0);
    until("each knows of the other", async || {
        let number = tries.fetch_add(1, Relaxed);
        bed.s3.reset_counters();
        for object in 0..6 {
            let key = format!("known{number}-{object}");
            bed.object(&key, 4096);
            let version = near.version(&key).await;
            near.read(&version, 0, 4096).await.unwrap();
            far.read(&version, 0, 4096).await.unwrap();
        }
        bed.s3.counters().gets == 6
    })
    .await;
    bed.s3.reset_counters();
    (bed, second, [near, far])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_its_way_to_one_worker_is_not_fetched_by_another() {
    let (bed, second, [near, far]) = two().await;
    // Some have their home at the one, some at the other: both ways are taken.
    for number in 0..8 {
        let key = format!("a{number}");
        let data = bed.object(&key, MIB);
        let version = near.version(&key).await;
        bed.s3.set_latency(Duration::from_millis(100));
        bed.s3.reset_counters();
        let behind = async {
            tokio::time::sleep(Duration::from_millis(40)).await;
            far.read(&version, 4096, MIB / 2).await.unwrap()
        };
        let (first, then) = tokio::join!(near.read(&version, 0, MIB), behind);
        assert!(first.unwrap() == data && then == data[4096..4096 + MIB / 2], "{key}");
        assert_eq!((bed.s3.counters().gets, bed.s3.counters().bytes_out), (1, MIB as u64), "{key}");
        bed.s3.set_latency(Duration::ZERO);
    }
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_answer_brings_that_has_begun_is_waited_for_by_another_worker() {
    let options = MountOptions { validate: Validate::Always, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let (data, client, version) = bed.opened("a", MIB).await;
    let peer = bed.client().await;
    bed.s3.set_bandwidth(Some(2 * MIB as u64));
    let asked = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        // Of the two it is the one that does not wait for what others are asked for. This page comes after 160 ms.
        let missed = PeerRequest::Missed { asker: WorkerId(0), segment: SegmentId::of(&version, 0), start: 80, pages: 1 };
        peer.ask_peer(missed).await.unwrap()
    };
    let (read, (reply, page)) = tokio::join!(client.latest("a", RangeSpec::From { start: 0 }), asked);
    let DataReply::Shared(shared) = reply else { panic!("{reply:?}") };
    assert_eq!(shared.runs, [(80, 1)]);
    assert!(page == data[80 * 4096..81 * 4096] && read.unwrap().2 == data);
    assert_eq!(bed.s3.counters().gets, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stood_in_line_was_fetched_though_another_worker_had_fetched_it_meanwhile() {
    const BYTES: usize = 32 * MIB;
    let (bed, second, [near, far]) = two().await;
    let data = bed.object("a", BYTES);
    let version = near.version("a").await;
    bed.s3.set_bandwidth(Some(BYTES as u64));
    // The last of its requests has its turn when half of it is there.
    let brings = near.call(prefetch(&version, vec![(0, BYTES as u32)], false, false, 60_000));
    let behind = async {
        until("it is asked for", async || bed.s3.counters().gets >= 3).await;
        far.read(&version, (BYTES - MIB) as u64, 4096).await.unwrap()
    };
    let (brought, page) = tokio::join!(brings, behind);
    assert_eq!(brought.unwrap().0, DataReply::Fetched { bytes: BYTES as u64 });
    assert!(page == data[BYTES - MIB..BYTES - MIB + 4096]);
    assert_eq!(bed.s3.counters().bytes_out, BYTES as u64, "each byte once");
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_worker_brings_first_is_what_another_one_asks_for_last() {
    const BYTES: usize = 32 * MIB;
    const BORDER: usize = 28 * MIB;
    let (bed, second, [near, far]) = two().await;
    let data = bed.object("a", BYTES);
    let version = near.version("a").await;
    bed.s3.set_bandwidth(Some(BYTES as u64));
    // Its last request begins at the border, and has its turn when half of it is there.
    let brings = near.call(prefetch(&version, vec![(0, BYTES as u32)], false, false, 60_000));
    let before = async {
        until("it is asked for", async || bed.s3.counters().gets >= 3).await;
        // Long enough that its last page, with which the other one's part begins, is left to the end.
        far.read(&version, (BORDER - MIB) as u64, MIB + 100).await.unwrap()
    };
    let (brought, read) = tokio::join!(brings, before);
    brought.unwrap();
    assert!(read == data[BORDER - MIB..BORDER + 100]);
    let fetched = bed.s3.counters().bytes_out as usize;
    // The pages before the border may have been on their way, so that they were waited for in vain.
    assert!((BYTES..=BYTES + MIB).contains(&fetched), "{fetched} bytes of {BYTES} were fetched");
    for client in [&near, &far] {
        let around = client.read(&version, (BORDER - MIB / 2) as u64, MIB).await.unwrap();
        assert!(around == data[BORDER - MIB / 2..BORDER + MIB / 2]);
    }
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_asks_again_for_what_comes_slowly_to_another_worker() {
    let (bed, second, [near, far]) = two().await;
    let data = bed.object("a", MIB);
    let version = near.version("a").await;
    bed.s3.set_bandwidth(Some(2 * MIB as u64));
    let behind = async {
        until("it is asked for", async || bed.s3.counters().gets == 1).await;
        // It comes last, after half a second.
        far.call(prefetch(&version, vec![((MIB - 4096) as u64, 4096)], false, false, 60_000)).await.unwrap();
    };
    let (read, ()) = tokio::join!(near.read(&version, 0, MIB), behind);
    assert!(read.unwrap() == data);
    assert_eq!((bed.s3.counters().gets, bed.s3.counters().bytes_out), (1, MIB as u64));
    assert!(far.read(&version, (MIB - 4096) as u64, 4096).await.unwrap() == data[MIB - 4096..]);
    assert_eq!(bed.s3.counters().gets, 1, "it was brought");
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_had_missed_the_same_pages_was_not_named_when_another_one_had_missed_others_since() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 16 * MIB);
    let home = bed.client().await;
    let segment = SegmentId::of(&home.version("a").await, 0);
    let mut others = Vec::new();
    for name in ["second", "third"] {
        let settings = StoreSettings::new(bed.folder.path().join(name), 16 << 20);
        others.push(start_worker(bed.node.coordinator_at(), settings, None).await);
    }
    let [second, third] = [others[0].id(), others[1].id()];
    let missed = async |asker: WorkerId, pages: PageRun| {
        let request = PeerRequest::Missed { asker, segment, start: pages.start, pages: pages.len };
        let (reply, _) = home.ask_peer(request).await.unwrap();
        let DataReply::Shared(Shared { elsewhere, also, holds: false, coming: false, .. }) = reply else { panic!("{reply:?}") };
        (elsewhere, also)
    };
    let run = PageRun::new;
    until("it knows of both", async || {
        missed(second, run(0, 300)).await;
        missed(third, run(2_000, 2_400)).await;
        let first = missed(WorkerId(0), run(299, 600)).await;
        (first, missed(WorkerId(0), run(2_399, 2_401)).await) == ((Some(second), [None; 2]), (Some(third), [None; 2]))
    })
    .await;
    assert_eq!(missed(WorkerId(0), run(200, 2_100)).await, (Some(third), [Some(second), None]));
    assert_eq!(missed(WorkerId(0), run(1_000, 1_001)).await, (Some(third), [None; 2]), "the last one, where none is near");
    assert_eq!(missed(third, run(200, 2_100)).await, (Some(second), [None; 2]));
    for worker in others {
        worker.shutdown().await;
    }
}
