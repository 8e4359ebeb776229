//! Tiers that are far too small for what is read: every byte is right all the same, and what is kept survives a scan.

use std::sync::Arc;

use forebay_protocol::{DataNotice, DataReply, DataRequest, encode};
use forebay_types::{SegmentId, split_range};

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, next, prefetch, until};

/// Reads at random, of all sizes, from several connections, and compares every byte.
async fn read_at_random(bed: &Bed, objects: usize, object_bytes: usize, rounds: usize, len_max: usize) {
    let mut oracle = Vec::new();
    let client = bed.client().await;
    for number in 0..objects {
        let data = bed.object(&format!("{number}"), object_bytes + number);
        oracle.push((client.version(&format!("{number}")).await, data));
    }
    let oracle = Arc::new(oracle);
    let readers = (0..6u64).map(|reader| {
        let (oracle, address, mount) = (Arc::clone(&oracle), bed.worker().address(), bed.mount.id);
        tokio::spawn(async move {
            let client = Client::connect(&address, mount).await;
            let mut state = 0x1234_5678 + reader;
            for _ in 0..rounds {
                let (version, data) = &oracle[next(&mut state) as usize % oracle.len()];
                let start = next(&mut state) as usize % data.len();
                // Small ones often, large ones seldom.
                let len = (next(&mut state) as usize % len_max) >> (next(&mut state) % 12);
                let end = (start + len).min(data.len());
                for part in split_range(start as u64..end as u64) {
                    let range = part.object_range();
                    let bytes = client.read(version, range.start, part.len as usize).await.unwrap();
                    assert!(bytes == data[range.start as usize..range.end as usize], "wrong bytes in {version:?} at {range:?}");
                }
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_bytes_from_a_dram_tier_that_is_too_small() {
    let bed = Bed::new(Plan { dram_bytes: 6 << 20, ..Plan::default() }).await;
    read_at_random(&bed, 5, 6 * MIB, 40, 6 * MIB).await;
    let report = bed.worker().report();
    assert!(report.dram.1 <= report.dram.0, "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_bytes_with_a_disk_tier_behind_it() {
    let bed = Bed::new(Plan { dram_bytes: 8 << 20, disk_bytes: 24 << 20, ..Plan::default() }).await;
    read_at_random(&bed, 5, 7 * MIB, 30, 4 * MIB).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_segment_through_a_tier_of_a_few_blocks() {
    let bed = Bed::new(Plan { dram_bytes: 4 << 20, ..Plan::default() }).await;
    let (data, client, version) = bed.opened("segment", 64 * MIB).await;
    assert!(client.read(&version, 0, 64 * MIB).await.unwrap() == data);
    let fetched = bed.s3.counters().bytes_out;
    assert!(fetched <= 70 * MIB as u64, "{fetched} bytes for 64 MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_segments_survive_a_scan() {
    let bed = Bed::new(Plan { dram_bytes: 16 << 20, ..Plan::default() }).await;
    let data = bed.object("kept", 3 * MIB);
    bed.object("scan", 60 * MIB);
    let client = bed.client().await;
    let (kept, scan) = (client.version("kept").await, client.version("scan").await);
    client.call(prefetch(&kept, vec![(0, 3 * MIB as u32)], true, false, 0)).await.unwrap();
    for at in 0..60 {
        client.read(&scan, at * MIB as u64, MIB).await.unwrap();
    }
    let segments = vec![SegmentId::of(&kept, 0), SegmentId::of(&scan, 0)];
    let DataReply::Held(held) = client.call(DataRequest::Held { segments: segments.clone() }).await.unwrap().0 else { panic!() };
    assert_eq!((held[0].dram_bytes, held[0].keep), (3 * MIB as u64, true));
    assert!(held[1].bytes < 16 * MIB as u64 && !held[1].keep);
    bed.s3.reset_counters();
    assert!(client.read(&kept, 0, 3 * MIB).await.unwrap() == data);
    assert_eq!(bed.s3.counters().requests(), 0);
    let unkeep = DataRequest::Keep { segments: segments[..1].to_vec(), keep: false };
    assert_eq!(client.call(unkeep).await.unwrap().0, DataReply::Done);
    let DataReply::Freed { bytes } = client.call(DataRequest::Free { segments }).await.unwrap().0 else { panic!() };
    assert!(bytes >= 3 * MIB as u64);
    assert!(client.read(&kept, 0, 3 * MIB).await.unwrap() == data);
    assert!(bed.s3.counters().gets > 0);
}

/// What a client has brought ahead is held for two minutes, as who schedules tasks has it: those that read it have connections of their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_brought_stayed_pinned_when_who_had_it_brought_was_killed() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 2 * MIB);
    let [first, second] = [bed.client().await, bed.client().await];
    let version = first.version("a").await;
    let brought = |start| prefetch(&version, vec![(start, MIB as u32)], false, false, 120_000);
    first.call(brought(0)).await.unwrap();
    second.call(brought(MIB as u64)).await.unwrap();
    assert_eq!(bed.worker().report().dram.2, 2 * MIB as u64);
    drop(first);
    until("what the first one had brought is let go", async || bed.worker().report().dram.2 == MIB as u64).await;
    let DataReply::Held(held) = second.call(DataRequest::Held { segments: vec![SegmentId::of(&version, 0)] }).await.unwrap().0
    else {
        panic!()
    };
    assert_eq!(held[0].dram_bytes, 2 * MIB as u64, "it is there all the same");
    second.connection.notify(encode(&DataNotice::Ended { operation: OPERATION })).unwrap();
    until("the operation has ended", async || bed.worker().report().dram.2 == 0).await;
}
