//! Reads in the memory of the tier: pins hold their bytes, are capped, and end with their connection.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use forebay_protocol::{DataNotice, DataReply, DataRequest, FrameKind, InPlaceCount, Span, decode, encode};
use forebay_types::{ErrorKind, ObjectVersion, SegmentId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, until};
use crate::by_hand;

async fn attach(client: &Client) -> (File, u64) {
    let (reply, _, descriptor) = client.send(DataRequest::Attach, Vec::new()).await.unwrap();
    let DataReply::Attached { arena_bytes } = reply else { panic!("{reply:?}") };
    (descriptor.expect("the descriptor comes along").into(), arena_bytes)
}

async fn read(client: &Client, version: &ObjectVersion, start: u64, len: usize) -> (Option<(u64, Span)>, bytes::Bytes) {
    let version = version.clone();
    let request = DataRequest::Read { operation: OPERATION, version, start, len: len as u32, in_place: true };
    match client.call(request).await.unwrap() {
        (DataReply::Read { in_place, .. }, payload) => (in_place, payload),
        other => panic!("{other:?}"),
    }
}

fn bytes_at(tier: &File, span: Span) -> Vec<u8> {
    let mut bytes = vec![0; span.len as usize];
    tier.read_exact_at(&mut bytes, span.offset).unwrap();
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_same_host_reads_in_place() {
    let bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", 5 * MIB + 9);
    let client = bed.unix_client().await;
    let version = client.version("a").await;
    let (in_place, payload) = read(&client, &version, 0, 100).await;
    assert!(in_place.is_none() && payload == data[..100], "not attached: bytes");
    let (tier, arena_bytes) = attach(&client).await;
    let mut pins = Vec::new();
    for (start, len) in [(0, 100), (5000, MIB), (5 * MIB, 9), (3, 5 * MIB)] {
        let (in_place, payload) = read(&client, &version, start as u64, len).await;
        let (pin, span) = in_place.expect("in place, cold or warm");
        assert!(payload.is_empty() && span.offset + span.len <= arena_bytes);
        assert_eq!(bytes_at(&tier, span), data[start..start + len]);
        pins.push(pin);
    }
    assert!(tier.write_at(b"x", 0).is_err(), "the descriptor is read-only");
    let before = bed.worker().report();
    let segment = SegmentId::of(&version, 0);
    let counts = vec![InPlaceCount { operation: OPERATION, segment, reads: 7, bytes: 7000 }];
    client.connection.notify(encode(&DataNotice::Unpin { pins, counts })).unwrap();
    until("reads in place are counted", async || bed.worker().report().reads == before.reads + 7).await;
    assert_eq!(bed.worker().report().bytes_hit, before.bytes_hit + 7000);
    until("pins are released", async || bed.worker().report().dram.2 == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pins_end_with_their_connection() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 2 * MIB);
    let client = bed.unix_client().await;
    let version = client.version("a").await;
    let (_tier, _) = attach(&client).await;
    assert!(read(&client, &version, 0, 2 * MIB).await.0.is_some());
    assert!(bed.worker().report().dram.2 >= 2 * MIB as u64);
    client.connection.close();
    drop(client);
    until("pins are released", async || bed.worker().report().dram.2 == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pinned_bytes_are_capped() {
    let bed = Bed::new(Plan { dram_bytes: 16 << 20, ..Plan::default() }).await;
    let data = bed.object("a", 30 * MIB);
    let client = bed.unix_client().await;
    let version = client.version("a").await;
    let (tier, _) = attach(&client).await;
    let (mut in_place, mut copied) = (0, 0);
    for at in 0..30 {
        let (pinned, payload) = read(&client, &version, (at * MIB) as u64, MIB).await;
        let expected = &data[at * MIB..(at + 1) * MIB];
        match pinned {
            Some((_, span)) => {
                in_place += 1;
                assert!(bytes_at(&tier, span) == expected);
            }
            None => {
                copied += 1;
                assert!(payload == expected);
            }
        }
    }
    assert!((1..=9).contains(&in_place) && copied >= 21, "{in_place} in place, {copied} copied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_get_copies() {
    let bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", 1000);
    let client = bed.client().await;
    let error = client.call(DataRequest::Attach).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let version = client.version("a").await;
    let (in_place, payload) = read(&client, &version, 0, 1000).await;
    assert!(in_place.is_none() && payload == data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_in_use_stay_as_they_are_however_their_connection_ends() {
    let bed = Bed::new(Plan { dram_bytes: 16 << 20, ..Plan::default() }).await;
    let data = bed.object("a", MIB);
    let other = bed.object("b", 40 * MIB);
    let client = bed.unix_client().await;
    let (version, others) = (client.version("a").await, client.version("b").await);
    let (tier, _) = attach(&client).await;
    let mut stream = by_hand::connect(&bed.folder.path().join("worker.sock")).await;
    let mut ask = async |tag: u64, request: DataRequest| {
        stream.write_all(&by_hand::frame(FrameKind::Request, tag, &encode(&request))).await.unwrap();
        decode(&by_hand::message(&mut stream).await).unwrap()
    };
    assert!(matches!(ask(1, DataRequest::Attach).await, DataReply::Attached { .. }));
    let read = DataRequest::Read { operation: OPERATION, version, start: 0, len: MIB as u32, in_place: true };
    let DataReply::Read { in_place: Some((_, span)), .. } = ask(2, read).await else { panic!("not in place") };
    assert!(bytes_at(&tier, span) == data);

    // The worker ends it, for this is no frame; the peer looks at its bytes as before.
    stream.write_all(&[0xee; 1000]).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await;
    ended.expect("the worker ends the connection").unwrap();
    for round in 0..3 {
        for at in 0..40 {
            let payload = client.read(&others, (at * MIB) as u64, MIB).await.unwrap();
            assert!(payload == other[at * MIB..(at + 1) * MIB]);
        }
        assert!(bytes_at(&tier, span) == data, "changed under its reader in round {round}");
    }
    assert!(bed.worker().report().dram.2 >= MIB as u64);
    drop(stream);
    until("pins are released", async || bed.worker().report().dram.2 == 0).await;
}
