//! Bytes of temporary nodes, in memory, on disk and in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeErrorKind, NodePlace, NodeType, StorageClass};
use forebay_testbed::until;
use forebay_types::ErrorKind;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{spread, spread_nodes, spread_with_disks};
use crate::cluster::{Cluster, bytes};

#[tokio::test(flavor = "multi_thread")]
async fn large_values_and_files_come_back_as_they_were_put() {
    large_values_and_files_come_back(&spread(2).await, StorageClass::Dram).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_on_disk_stays_off_memory() {
    let cluster = spread_with_disks(2).await;
    large_values_and_files_come_back(&cluster, StorageClass::Disk).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    let options = CreateOptions { class: Some(StorageClass::Disk), ..CreateOptions::new(NodeType::Directory) };
    nodes.create("/tmp/d", options).await.unwrap();
    nodes.create("/tmp/d/f", CreateOptions::new(NodeType::File)).await.unwrap();
    let used = || {
        let reports = cluster.node.workers.iter().map(|worker| worker.report());
        reports.fold((0, 0), |(dram, disk), report| (dram + report.dram.1, disk + report.disk.1))
    };
    // What was deleted gives the disk's room back in the background.
    until("the disk's room comes back", || used().1 <= 1 << 20).await;
    let (dram, disk) = used();
    let content = bytes(5, 40 << 20);
    let mut writer = nodes.writer("/tmp/d/f").await.unwrap();
    writer.write_all(&content).await.unwrap();
    writer.finish().await.unwrap();
    nodes.put("/tmp/d/k", bytes(6, 3 << 20)).await.unwrap();
    assert!(nodes.reader("/tmp/d/f", 0).await.unwrap().read_all().await.unwrap() == content);
    for at in [0, 70_000, (40 << 20) - (64 << 10)] {
        assert!(nodes.read("/tmp/d/f", at, 64 << 10).await.unwrap() == content[at as usize..][..64 << 10]);
    }
    let (dram_now, disk_now) = used();
    assert!(dram_now <= dram, "{dram} -> {dram_now} bytes of memory");
    assert!(disk_now >= disk + (43 << 20), "{disk} -> {disk_now} bytes of disk");
    nodes.delete("/tmp/d", true).await.unwrap();
    until("the disk's room comes back", || used().1 <= disk).await;
}

/// Whatever their container says, and without a moment at which there is no value.
#[tokio::test]
async fn values_and_files_lie_as_who_puts_them_asks() {
    let cluster = spread_with_disks(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    let [disk, dram] = [StorageClass::Disk, StorageClass::Dram].map(|class| NodePlace { class: Some(class), location: None });
    let class = async |path: &str| nodes.stat(path).await.unwrap().unwrap().class;
    for len in [10, 70_000, 34 << 20] {
        let values: Vec<Bytes> = (0..3).map(|seed| bytes(seed, len).into()).collect();
        nodes.put_at("/tmp/k", values[0].clone(), &disk).await.unwrap();
        assert_eq!(class("/tmp/k").await, StorageClass::Disk);
        nodes.put("/tmp/k", values[1].clone()).await.unwrap();
        assert_eq!(class("/tmp/k").await, StorageClass::Disk, "as it was");
        let (left, reader) = (Arc::new(AtomicBool::new(true)), cluster.client(|_| {}).await.nodes());
        let read = tokio::spawn({
            let (left, values) = (Arc::clone(&left), values.clone());
            async move {
                while left.load(Relaxed) {
                    assert!(values[1..].contains(&reader.get("/tmp/k").await.unwrap()), "the old value or the new one");
                }
            }
        });
        nodes.put_at("/tmp/k", values[2].clone(), &dram).await.unwrap();
        left.store(false, Relaxed);
        read.await.unwrap();
        assert_eq!(class("/tmp/k").await, StorageClass::Dram);
        assert!(nodes.get("/tmp/k").await.unwrap() == values[2]);
        nodes.delete("/tmp/k", false).await.unwrap();
    }
    assert_eq!(nodes.append_at("/tmp/f", "one", &disk).await.unwrap(), 3);
    assert_eq!(nodes.append_at("/tmp/f", "two", &NodePlace::default()).await.unwrap(), 6);
    assert_eq!(class("/tmp/f").await, StorageClass::Disk);
    let refused = nodes.append_at("/tmp/f", "three", &dram).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Invalid, "{refused}");
    let refused = nodes.put_at("/tmp/f", "value", &dram).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::WrongType, "{refused}");
    let refused = nodes.put_at("/tmp/none/k", "value", &disk).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::NotFound);
    assert!(!refused.message.contains(".put-"), "{refused}");
    let (names, _) = nodes.list("/tmp", None, 100).await.unwrap();
    assert_eq!(names.into_iter().map(|entry| entry.name).collect::<Vec<_>>(), ["f"], "nothing is left over");
    let stat = nodes.answer_json(br#"{"op":"stat","path":"/tmp/f"}"#).await;
    assert_eq!(stat["ok"]["storage_class"], "disk");
    let put = nodes.answer_json(br#"{"op":"put","path":"/tmp/j","data":"text","storage_class":"disk"}"#).await;
    assert_eq!(put["ok"]["bytes"], 4);
    assert_eq!(class("/tmp/j").await, StorageClass::Disk);
}

#[tokio::test]
async fn without_a_disk_tier_nothing_is_on_disk() {
    let (_cluster, nodes) = spread_nodes(1).await;
    let options = CreateOptions { class: Some(StorageClass::Disk), ..CreateOptions::new(NodeType::File) };
    let refused = nodes.create("/tmp/f", options).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Invalid);
    assert!(refused.message.contains("disk tier"), "{}", refused.message);
}

async fn large_values_and_files_come_back(cluster: &Cluster, class: StorageClass) {
    let nodes = cluster.client(|_| {}).await.nodes();
    let options = CreateOptions { class: Some(class), ..CreateOptions::new(NodeType::Directory) };
    nodes.create("/tmp/d", options).await.unwrap();
    for (seed, len) in [4096, 4097, 16 << 10, (16 << 10) + 1, 64 << 10, 1 << 20, (5 << 20) + 3, 33 << 20].into_iter().enumerate()
    {
        let value = Bytes::from(bytes(seed as u64, len));
        nodes.put("/tmp/d/k", value.clone()).await.unwrap();
        assert!(nodes.get("/tmp/d/k").await.unwrap() == value, "{len}");
    }
    let mut all = Vec::new();
    nodes.create("/tmp/d/f", CreateOptions::new(NodeType::File)).await.unwrap();
    for (seed, len) in [10, 65_530, 70_000, 1, 1 << 20, 3 << 20, 100].into_iter().enumerate() {
        let piece = bytes(seed as u64, len);
        all.extend_from_slice(&piece);
        assert_eq!(nodes.append("/tmp/d/f", piece).await.unwrap(), all.len() as u64);
    }
    for (offset, len) in [(0, 20), (65_535, 10), (70_000, 200_000), (all.len() - 50, 100)] {
        let piece = bytes(99, len);
        let end = all.len().max(offset + len);
        all.resize(end, 0);
        all[offset..offset + len].copy_from_slice(&piece);
        assert_eq!(nodes.write("/tmp/d/f", offset as u64, piece).await.unwrap(), end as u64);
    }
    let mut writer = nodes.writer("/tmp/d/f").await.unwrap();
    let refused = nodes.append("/tmp/d/f", "other").await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Retry, "one writer at a time");
    let more = bytes(7, (9 << 20) + 17);
    writer.write_all(&more).await.unwrap();
    writer.flush().await.unwrap();
    all.extend_from_slice(&more);
    assert_eq!(writer.finish().await.unwrap(), all.len() as u64);
    let mut read = Vec::new();
    nodes.reader("/tmp/d/f", 0).await.unwrap().read_to_end(&mut read).await.unwrap();
    assert!(read == all);
    for (offset, len) in [(0, 1), (65_530, 100), (1 << 20, 2 << 20), (all.len() as u64 - 5, 100)] {
        let end = (offset + len).min(all.len() as u64);
        assert!(nodes.read("/tmp/d/f", offset, len).await.unwrap() == all[offset as usize..end as usize]);
    }
    nodes.delete("/tmp/d", true).await.unwrap();
    assert_eq!(nodes.stat("/tmp/d/f").await.unwrap(), None);
}

/// Bytes beside their worker are read where they lie, and nobody else's come there as long as someone has them.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_in_place_stay_what_they_were() {
    const MIB: usize = 1 << 20;
    let (cluster, nodes) = spread_nodes(1).await;
    let value = |seed: u64| Bytes::from(bytes(seed, MIB));
    nodes.put("/tmp/k", value(0)).await.unwrap();
    let first = nodes.get("/tmp/k").await.unwrap();
    let again = nodes.get("/tmp/k").await.unwrap();
    assert_eq!(first.as_ptr(), again.as_ptr(), "no copy was made");
    drop(again);
    // Memory of the values that are replaced is used again by those that come, but not the one that is held.
    for seed in 1..50 {
        nodes.put("/tmp/k", value(seed)).await.unwrap();
        assert!(nodes.get("/tmp/k").await.unwrap() == value(seed), "{seed}");
    }
    assert!(first == value(0));
    nodes.create("/tmp/f", CreateOptions::new(NodeType::File)).await.unwrap();
    let mut writer = nodes.writer("/tmp/f").await.unwrap();
    let mut held = vec![first];
    for seed in 100..120 {
        writer.write_bytes(value(seed)).await.unwrap();
    }
    writer.finish().await.unwrap();
    let mut reader = nodes.reader("/tmp/f", 0).await.unwrap();
    while let Some(piece) = reader.next().await.unwrap() {
        held.push(piece);
    }
    nodes.delete("/tmp/f", false).await.unwrap();
    for seed in 200..230 {
        nodes.put("/tmp/k", value(seed)).await.unwrap();
    }
    assert!(held[0] == value(0));
    assert!(held[1..].iter().zip(100..).all(|(piece, seed)| *piece == value(seed)), "deleted, and still read");
    // A reader that comes late finds nothing, also when the memory has another block by now.
    let snapshot = nodes.snapshot("/tmp/k").await.unwrap();
    nodes.put("/tmp/k", value(300)).await.unwrap();
    let late = snapshot.read(0..MIB as u64).unwrap().read_all().await;
    assert_eq!(late.unwrap_err().kind, NodeErrorKind::DataLost);
    drop(held);
    nodes.delete("/tmp/k", false).await.unwrap();
    until("pins are given back", || cluster.node.workers[0].report().dram.2 == 0).await;
}

/// Blocks beside their worker are written where they lie; those that are given up half way leave nothing.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_written_where_they_lie() {
    const MIB: usize = 1 << 20;
    let cluster = spread(1).await;
    let client = cluster.client(|_| {}).await;
    let nodes = client.nodes();
    let written = || client.counters().blocks_written_in_place;
    nodes.put("/tmp/k", "small").await.unwrap();
    assert_eq!(written(), 0);
    for (at, (len, blocks)) in
        [(MIB, 1), (1_000_000, 1), (MIB / 8 * 7, 0), (MIB / 8 * 7 + 1, 1), (5 * MIB + 3, 5), (33 * MIB, 33)]
            .into_iter()
            .enumerate()
    {
        let (before, value) = (written(), Bytes::from(bytes(at as u64, len)));
        nodes.put("/tmp/k", value.clone()).await.unwrap();
        assert_eq!(written() - before, blocks, "{len}");
        assert!(nodes.get("/tmp/k").await.unwrap() == value, "{len}");
    }
    // From another process' way in the same bytes come.
    let far = cluster.client(|settings| settings.in_place = false).await.nodes();
    assert!(far.get("/tmp/k").await.unwrap() == bytes(5, 33 * MIB));
    nodes.delete("/tmp/k", false).await.unwrap();
    // As many as a session may have places, and more, none of which its worker goes on to keep.
    for seed in 0..200 {
        let put = nodes.put("/tmp/given-up", bytes(seed, 2 * MIB));
        let polls = seed % 5;
        futures::pin_mut!(put);
        for _ in 0..polls {
            if futures::poll!(put.as_mut()).is_ready() {
                break;
            }
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = written();
    for seed in 0..100 {
        nodes.put("/tmp/k", bytes(seed, MIB)).await.unwrap();
    }
    assert_eq!(written() - before, 100, "there are places for all of them");
    assert!(nodes.get("/tmp/k").await.unwrap() == bytes(99, MIB));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_names_what_went_with_a_worker() {
    let mut cluster = spread(2).await;
    let client = cluster.client(|_| {}).await;
    let (nodes, snapshot) = (client.nodes(), client.snapshot([]));
    let content = |at: u64| bytes(at, 3 << 20);
    for at in 0..12 {
        nodes.create(&format!("/tmp/d{at}"), CreateOptions::new(NodeType::Directory)).await.unwrap();
        nodes.put(&format!("/tmp/d{at}/k"), content(at)).await.unwrap();
        snapshot.head(&Path::from(format!("tmp/d{at}/k"))).await.unwrap();
    }
    let root = client.view().root().unwrap().id;
    let other = client.view().workers.iter().map(|worker| worker.id).find(|id| *id != root).unwrap();
    let place = cluster.place_of(other);
    drop(cluster.take_worker(place));
    let (mut read, mut lost) = (0, 0);
    for at in 0..12 {
        let got = snapshot.get(&Path::from(format!("tmp/d{at}/k"))).await.unwrap().bytes().await;
        match got {
            Ok(bytes) => {
                assert!(bytes == content(at), "{at}");
                read += 1;
            }
            Err(error) => {
                let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<forebay_types::Error>());
                let source = source.unwrap();
                assert!(source.message().contains(&format!("/tmp/d{at}/k")), "{source}");
                assert!(matches!(source.kind(), ErrorKind::DataLost | ErrorKind::Retry), "{} {source}", source.kind());
                lost += 1;
            }
        }
    }
    assert!(lost > 0 && read > 0, "{read} are read, {lost} are lost");
}
