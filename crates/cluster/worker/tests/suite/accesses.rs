//! What a worker tells of reads: each one by itself, to who records them, and how many are under way.

use std::cell::Cell;
use std::time::{Duration, Instant};

use forebay_protocol::{
    AccessMade, AccessWay, Accesses, DataNotice, DataReply, DataRequest, FrameKind, InPlaceCount, PutCondition, WantedAccesses,
    encode,
};
use forebay_types::{Key, SegmentId};
use futures::future::join_all;
use tokio::io::AsyncWriteExt;

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, until};
use crate::by_hand;

async fn told(client: &Client, since: u64) -> Accesses {
    let wanted = WantedAccesses { since, one_in: 1, within_ms: 10 };
    match client.call(DataRequest::Accesses(wanted)).await.unwrap().0 {
        DataReply::Accesses(accesses) => accesses,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_records_is_told_of_each_access_with_its_place_and_way() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 65 * MIB);
    let (client, recorder) = (bed.client().await, bed.client().await);
    let version = client.version("a").await;
    client.read(&version, 0, 10).await.unwrap();
    let first = told(&recorder, 0).await;
    assert!(first.made.is_empty() && first.lost == 0, "what was read before nobody has recorded: {first:?}");

    client.read(&version, 5000, 100).await.unwrap();
    client.read(&version, 64 << 20, MIB).await.unwrap();
    let counts = vec![InPlaceCount { operation: OPERATION, segment: SegmentId::of(&version, 1), reads: 7, bytes: 7001 }];
    client.connection.notify(encode(&DataNotice::Unpin { pins: vec![], counts })).unwrap();
    until("reads in place are counted", async || bed.worker().report().reads == 10).await;
    let put = DataRequest::Put { mount: client.mount, key: Key::new("b").unwrap(), condition: PutCondition::Any };
    client.send(put, vec!["text".into()]).await.unwrap();
    client.call(DataRequest::Delete { mount: client.mount, key: Key::new("b").unwrap() }).await.unwrap();

    let some = told(&recorder, first.next).await;
    let of = |key: &str, start: u64, bytes: u64, times: u32, way: AccessWay| {
        let operation = (!matches!(way, AccessWay::Written | AccessWay::Deleted)).then_some(OPERATION);
        AccessMade { ago: Duration::ZERO, operation, mount: client.mount, key: Key::new(key).unwrap(), start, bytes, times, way }
    };
    assert!(some.made.iter().all(|access| access.ago > Duration::ZERO && access.ago < Duration::from_secs(60)), "{some:?}");
    let made: Vec<AccessMade> = some.made.into_iter().map(|access| AccessMade { ago: Duration::ZERO, ..access }).collect();
    assert_eq!(
        made,
        [
            of("a", 5000, 100, 1, AccessWay::Answered),
            of("a", 64 << 20, MIB as u64, 1, AccessWay::Answered),
            of("a", 64 << 20, 1001, 7, AccessWay::InPlace),
            of("b", 0, 4, 1, AccessWay::Written),
            of("b", 0, 0, 1, AccessWay::Deleted),
        ]
    );
    assert_eq!((told(&recorder, some.next).await.made, some.lost), (vec![], 0));
}

/// How many reads a worker says to be under way.
async fn queue(client: &Client) -> u32 {
    match client.call(DataRequest::Queue).await.unwrap() {
        (DataReply::Queue(hint), _) => hint.queue,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_reads_that_a_slow_link_holds_back_as_many_are_told_to_wait_as_have_no_answer() {
    const READS: u32 = 200;
    const LEN: usize = 64 << 10;
    let is_right =
        |told: u32, before: u32, after: u32| (f64::from(after) * 0.95..=f64::from(before) * 1.05).contains(&f64::from(told));
    let bed = Bed::new(Plan::default()).await;
    let (_, client, version) = bed.opened("a", 16 * MIB).await;
    client.read(&version, 0, 16 * MIB).await.unwrap();
    until("the first answer is sent", async || queue(&client).await == 0).await;
    // Four seconds for all of them.
    bed.worker().set_serve_bytes_per_sec(Some(50 * LEN as u64));
    let (one, other, left) = (bed.client().await, bed.client().await, Cell::new(READS));
    let reads = join_all((0..READS).map(|number| {
        let (reader, version, left) = (if number % 2 == 0 { &one } else { &other }, &version, &left);
        async move {
            reader.read(version, u64::from(number) * LEN as u64, LEN).await.unwrap();
            left.set(left.get() - 1);
        }
    }));
    let looks = async {
        let began = Instant::now();
        while left.get() > READS / 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // An answer that is sent may be on its way to its reader: a number that is wrong stays so.
            let mut seen: Vec<(u32, u32, u32)> = Vec::new();
            while !seen.last().is_some_and(|&(told, before, after)| is_right(told, before, after)) {
                assert!(seen.len() < 5, "reads that are told, and that wait before and after: {seen:?}");
                tokio::time::sleep(Duration::from_millis(2)).await;
                let before = left.get();
                let told = queue(&client).await;
                seen.push((told, before, left.get()));
            }
        }
        assert!(began.elapsed() >= Duration::from_millis(1500), "they were held back");
    };
    tokio::join!(reads, looks);
    until("all answers are sent", async || queue(&client).await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_under_way_until_the_last_byte_of_its_answer_is_sent() {
    let bed = Bed::new(Plan::default()).await;
    let (_, client, version) = bed.opened("a", 16 * MIB).await;
    client.read(&version, 0, 16 * MIB).await.unwrap();
    let queue = async || queue(&client).await;
    // Its last byte may be here before the worker knows that it is sent.
    until("the first answer is sent", async || queue().await == 0).await;

    // Somebody asks, and does not look at the answer for a while: a socket takes some of it at most.
    let mut slow = by_hand::connect(&bed.folder.path().join("worker.sock")).await;
    let read = DataRequest::Read { operation: OPERATION, version, start: 0, len: 16 * MIB as u32, in_place: false };
    slow.write_all(&by_hand::frame(FrameKind::Request, 1, &encode(&read))).await.unwrap();
    until("the read is under way", async || queue().await == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(queue().await, 1, "its answer waits to be sent");
    by_hand::message(&mut slow).await;
    until("the answer is sent", async || queue().await == 0).await;
}
