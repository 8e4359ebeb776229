//! Blocks of temporary data that somebody names to whom they are not.

use std::sync::Arc;

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_nodes::{BlockRef, NodeErrorKind, NodeType, ROOT, StorageClass};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, PeerCall, PeerOp, Raw};
use forebay_transport::Connection;
use forebay_types::SegmentId;
use forebay_worker::Worker;

use crate::bed::{Bed, Client, Plan, start_worker, until};

/// What a node's operation is answered.
#[derive(Debug, PartialEq)]
enum Said {
    Done,
    Length(u64),
    Block(BlockRef),
    Bytes(Vec<u8>),
    Refused(NodeErrorKind, String),
    Other(String),
}

async fn ask(connection: &Connection, path: &str, op: NodeOp<'_>, payload: Option<&[u8]>) -> Said {
    let call = NodeCall { from: ROOT, moves: 0, path, op, number: None }.encode();
    let payload = payload.map(Bytes::copy_from_slice).into_iter().collect();
    let answer = connection.call(call, payload).await.unwrap();
    match NodeReply::decode(&answer.meta).unwrap() {
        NodeReply::Done => Said::Done,
        NodeReply::Length(length) => Said::Length(length),
        NodeReply::Block(block) => Said::Block(block),
        NodeReply::Bytes(Raw(bytes)) if answer.payload.is_empty() => Said::Bytes(bytes.to_vec()),
        NodeReply::Bytes(_) => Said::Bytes(answer.payload.to_vec()),
        NodeReply::Failed(error) => Said::Refused(error.kind, error.message),
        other => Said::Other(format!("{other:?}")),
    }
}

fn is_refused(said: &Said) -> bool {
    matches!(said, Said::Refused(NodeErrorKind::Invalid, why) if why.contains("is none that waits for a node here"))
}

async fn bring(connection: &Connection, bytes: &[u8], class: StorageClass) -> BlockRef {
    match ask(connection, "", NodeOp::BlockWrite { class }, Some(bytes)).await {
        Said::Block(block) => block,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_another_node_has_or_that_is_not_there_is_refused() {
    let bed = Bed::new(Plan { disk_bytes: 64 << 20, ..Plan::default() }).await;
    let (one, other) = (bed.client().await.connection, bed.client().await.connection);
    let bytes: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
    for class in [StorageClass::Dram, StorageClass::Disk] {
        let its = bring(&one, &bytes, class).await;
        let put = || NodeOp::PutBlocks { blocks: vec![its] };
        assert_eq!(ask(&one, "its", put(), None).await, Said::Length(100_000));
        assert_eq!(ask(&one, "its", put(), None).await, Said::Length(100_000), "asked once more, since the answer was lost");
        let file = NodeOp::Create { kind: NodeType::File, enumerable: true, class: None, location: None };
        assert_eq!(ask(&other, "file", file, None).await, Said::Done);
        let own = bring(&other, &bytes, class).await;
        let forged = [
            vec![its],
            vec![own, its],
            // Of another length than it has.
            vec![BlockRef { len: its.len - 1, ..its }],
            vec![BlockRef { len: own.len + 1, ..own }],
            // Twice the same.
            vec![own, own],
            // None that there is.
            vec![BlockRef { number: its.number + 1_000, ..its }],
            vec![BlockRef { number: 0, ..its }],
            vec![BlockRef { number: u64::MAX, ..its }],
        ];
        for blocks in forged {
            let said = ask(&other, "forged", NodeOp::PutBlocks { blocks: blocks.clone() }, None).await;
            assert!(is_refused(&said), "{blocks:?}: {said:?}");
            let said = ask(&other, "file", NodeOp::AppendBlocks { writer: 0, blocks: blocks.clone() }, None).await;
            assert!(is_refused(&said), "{blocks:?}: {said:?}");
            let there = ask(&other, "forged", NodeOp::Get, None).await;
            assert!(matches!(there, Said::Refused(NodeErrorKind::NotFound, _)), "{there:?}");
        }
        // Nothing was lost by that: what was to be had is there for who brought it.
        assert_eq!(ask(&other, "file", NodeOp::AppendBlocks { writer: 0, blocks: vec![own] }, None).await, Said::Length(100_000));
        assert_eq!(ask(&other, "file", NodeOp::Delete { recursive: false }, None).await, Said::Done);
        assert_eq!(ask(&one, "its", NodeOp::Get, None).await, Said::Bytes(bytes.clone()));
        assert_eq!(ask(&one, "its", NodeOp::Delete { recursive: false }, None).await, Said::Done);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_is_read_is_one_of_temporary_data_and_no_longer_than_it_is() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    bed.object("a", 100_000);
    let version = client.version("a").await;
    client.read(&version, 0, 100_000).await.unwrap();
    let cached = SegmentId::of(&version, 0);
    let own = bring(&client.connection, &[7; 10_000], StorageClass::Dram).await;
    let read = async |block: BlockRef, start: u32| {
        ask(&client.connection, "", NodeOp::BlockRead { block, start, bytes: 10 }, None).await
    };
    assert_eq!(read(own, 0).await, Said::Bytes(vec![7; 10]));
    // By the number of what is cached of a mount.
    for number in [cached.0 as u64, (cached.0 >> 64) as u64, own.number + 1_000, 0, u64::MAX] {
        let said = read(BlockRef { number, ..own }, 0).await;
        assert!(matches!(said, Said::Refused(NodeErrorKind::DataLost, _)), "{number}: {said:?}");
    }
    for (block, start) in [(own, 9_991), (BlockRef { worker: own.worker + 1, ..own }, 0)] {
        let said = read(block, start).await;
        assert!(matches!(said, Said::Refused(NodeErrorKind::Invalid, _)), "{block:?}: {said:?}");
    }
    let said = read(BlockRef { len: 1 << 20, ..own }, 500_000).await;
    assert!(matches!(said, Said::Refused(NodeErrorKind::DataLost | NodeErrorKind::Invalid, _)), "beyond it: {said:?}");
    assert_eq!(read(own, 0).await, Said::Bytes(vec![7; 10]));
}

/// A second worker of the cluster, and a connection to it; the first one has `/tmp` and knows of it.
async fn second(bed: &Bed) -> (Arc<Worker>, Connection) {
    let settings = StoreSettings::new(bed.folder.path().join("second"), 64 << 20);
    let worker = start_worker(bed.node.coordinator_at(), settings, None).await;
    let connection = Client::connect(&worker.address(), bed.mount.id).await.connection;
    let names = bed.client().await.connection;
    until("they know of each other", async || {
        let block = bring(&connection, b"bytes", StorageClass::Dram).await;
        ask(&names, "known", NodeOp::PutBlocks { blocks: vec![block] }, None).await == Said::Length(5)
    })
    .await;
    (worker, connection)
}

async fn ask_peer(connection: &Connection, op: PeerOp<'_>) -> Said {
    let answer = connection.call(PeerCall { from: ROOT, path: "", op }.encode(), Vec::new()).await.unwrap();
    match NodeReply::decode(&answer.meta).unwrap() {
        NodeReply::Done => Said::Done,
        NodeReply::Failed(error) => Said::Refused(error.kind, error.message),
        other => Said::Other(format!("{other:?}")),
    }
}

async fn read(connection: &Connection, block: BlockRef) -> Said {
    ask(connection, "", NodeOp::BlockRead { block, start: 0, bytes: block.len }, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_of_another_worker_is_one_nodes_alone_whoever_names_it() {
    let bed = Bed::new(Plan::default()).await;
    let (worker, elsewhere) = second(&bed).await;
    let (one, other) = (bed.client().await.connection, bed.client().await.connection);
    let bytes: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
    let its = bring(&elsewhere, &bytes, StorageClass::Dram).await;
    let put = || NodeOp::PutBlocks { blocks: vec![its] };
    assert_eq!(ask(&one, "its", put(), None).await, Said::Length(100_000));
    assert_eq!(ask(&one, "its", put(), None).await, Said::Length(100_000), "asked once more, since the answer was lost");
    assert_eq!(read(&elsewhere, its).await, Said::Bytes(bytes.clone()), "and it is not given back by that");
    let file = || NodeOp::Create { kind: NodeType::File, enumerable: true, class: None, location: None };
    assert_eq!(ask(&other, "file", file(), None).await, Said::Done);
    let own = bring(&elsewhere, &bytes, StorageClass::Dram).await;
    let here = bring(&other, &bytes, StorageClass::Dram).await;
    let forged = [
        vec![its],
        vec![own, its],
        vec![here, its],
        vec![BlockRef { len: its.len - 1, ..its }],
        vec![BlockRef { len: own.len + 1, ..own }],
        vec![own, own],
        vec![BlockRef { number: its.number + 1_000, ..its }],
        vec![BlockRef { number: 0, ..its }],
    ];
    for blocks in forged {
        for op in [NodeOp::PutBlocks { blocks: blocks.clone() }, NodeOp::AppendBlocks { writer: 0, blocks: blocks.clone() }] {
            let name = if matches!(op, NodeOp::PutBlocks { .. }) { "forged" } else { "file" };
            let said = ask(&other, name, op, None).await;
            assert!(matches!(said, Said::Refused(NodeErrorKind::Invalid, _)), "{blocks:?}: {said:?}");
        }
        let there = ask(&other, "forged", NodeOp::Get, None).await;
        assert!(matches!(there, Said::Refused(NodeErrorKind::NotFound, _)), "{there:?}");
    }
    // Nothing was lost by that: what was to be had is there for who brought it.
    let blocks = vec![own, here];
    assert_eq!(ask(&other, "file", NodeOp::AppendBlocks { writer: 0, blocks }, None).await, Said::Length(200_000));
    assert_eq!(ask(&other, "file", NodeOp::Delete { recursive: false }, None).await, Said::Done);
    assert_eq!(read(&elsewhere, its).await, Said::Bytes(bytes.clone()));
    until("what is deleted is given back", async || !matches!(read(&elsewhere, own).await, Said::Bytes(_))).await;
    // A name that is gone does not make its block free for another one.
    assert_eq!(ask(&one, "its", NodeOp::Delete { recursive: false }, None).await, Said::Done);
    until("it is given back", async || !matches!(read(&elsewhere, its).await, Said::Bytes(_))).await;
    assert!(matches!(ask(&other, "forged", put(), None).await, Said::Refused(NodeErrorKind::Invalid, _)));
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_granted_again_to_its_number_alone() {
    let bed = Bed::new(Plan::default()).await;
    let connection = bed.client().await.connection;
    let [block, second] =
        [bring(&connection, b"one", StorageClass::Dram).await, bring(&connection, b"two", StorageClass::Dram).await];
    let claim = |claims: Vec<(BlockRef, u128)>| ask_peer(&connection, PeerOp::BlockClaim { claims });
    let is_refused = |said: Said| matches!(said, Said::Refused(NodeErrorKind::Invalid, _));
    assert_eq!(claim(vec![(block, 1 << 90)]).await, Said::Done);
    assert_eq!(claim(vec![(block, 1 << 90)]).await, Said::Done, "the answer was lost");
    assert!(is_refused(claim(vec![(second, 7), (block, 7)]).await), "another worker, or the same for another node");
    assert_eq!(claim(vec![(second, 8)]).await, Said::Done, "all or none were claimed by the refused one");
    let op = NodeOp::PutBlocks { blocks: vec![block] };
    assert!(is_refused(ask(&connection, "n", op.clone(), None).await), "nor is it one that waits for a node here");
    // The node did not come about there, and its container has come here.
    for (number, said) in [(5, false), (1 << 90, true)] {
        assert_eq!(ask_peer(&connection, PeerOp::BlockUnclaim { claims: vec![(block, number)] }).await, Said::Done);
        assert_eq!(ask(&connection, "n", op.clone(), None).await == Said::Length(3), said, "{number}");
    }
    // What a worker brings for its own nodes waits for nobody else.
    let call = PeerCall { from: ROOT, path: "", op: PeerOp::BlockKeep { class: StorageClass::Dram } }.encode();
    let answer = connection.call(call, vec![Bytes::from_static(b"kept")]).await.unwrap();
    let NodeReply::Block(kept) = NodeReply::decode(&answer.meta).unwrap() else { panic!() };
    assert_eq!(read(&connection, kept).await, Said::Bytes(b"kept".to_vec()));
    assert!(is_refused(claim(vec![(kept, 1)]).await));
    assert!(is_refused(ask(&connection, "k", NodeOp::PutBlocks { blocks: vec![kept] }, None).await));
}
