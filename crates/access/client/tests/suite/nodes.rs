//! The temporary namespace on whole small clusters.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{Client, CreateOptions, NodeCondition, NodeErrorKind, NodeType, StorageClass};
use forebay_coordinator::CoordinatorSettings;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cluster::{Cluster, bytes};

/// The suite that every way into the namespace has to pass: an operation and its answer a line.
const CONFORMANCE: &str = include_str!("../../../../../docs/specs/nodes-conformance.jsonl");

/// Workers that know each other, so that containers are spread over them. Each hears of the later ones with its next heartbeat,
/// 50 ms later at most.
async fn spread(workers: usize) -> Cluster {
    let cluster = Cluster::start_quick(workers, CoordinatorSettings::LEASE, |_| {}).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster
}

/// The same with a disk tier each.
async fn spread_with_disks(workers: usize) -> Cluster {
    let mut cluster = Cluster::start_quick(0, CoordinatorSettings::LEASE, |_| {}).await;
    cluster.disk_bytes = 256 << 20;
    for _ in 0..workers {
        cluster.add_worker().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster
}

/// With a class all nodes are made in it that are asked for in none.
async fn conforms(cluster: Cluster, in_place: bool, class: Option<&str>) {
    let client = cluster.client(|settings| settings.in_place = in_place).await;
    // A second client remembers paths too, and must not be led astray by what the first one renames.
    let other = cluster.client(|_| {}).await;
    conforms_with(&client, &other, class).await;
}

pub async fn conforms_with(client: &Client, other: &Client, class: Option<&str>) {
    for (line, case) in CONFORMANCE.lines().enumerate() {
        let (operation, expected) = case.split_once('\t').unwrap();
        let mut operation: Value = serde_json::from_str(operation).unwrap();
        if let (Some(class), None, "create") = (class, operation.get("storage_class"), operation["op"].as_str().unwrap()) {
            operation["storage_class"] = class.into();
        }
        let operation = operation.to_string();
        let asked = if line % 3 == 0 { other.nodes() } else { client.nodes() };
        let mut answer = asked.answer_json(operation.as_bytes()).await;
        let message = answer.as_object_mut().unwrap().remove("message");
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(answer, expected, "line {}: {operation}: {message:?}", line + 1);
        assert_eq!(message.is_some(), answer.get("error").is_some());
    }
}

#[tokio::test]
async fn one_worker_conforms() {
    conforms(spread(1).await, true, None).await;
}

#[tokio::test]
async fn workers_conform_with_data_on_disk() {
    conforms(spread_with_disks(2).await, true, Some("disk")).await;
}

#[tokio::test]
async fn three_workers_conform() {
    conforms(spread(3).await, false, None).await;
}

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
        let reports = cluster.workers.iter().map(|worker| worker.report());
        reports.fold((0, 0), |(dram, disk), report| (dram + report.dram.1, disk + report.disk.1))
    };
    // What was deleted gives the disk's room back in the background.
    let settled = async {
        while used().1 > 1 << 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.expect("the disk's room comes back");
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
    let freed = async {
        while used().1 > disk {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), freed).await.expect("the disk's room comes back");
}

#[tokio::test]
async fn without_a_disk_tier_nothing_is_on_disk() {
    let cluster = spread(1).await;
    let nodes = cluster.client(|_| {}).await.nodes();
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
    let cluster = spread(1).await;
    let nodes = cluster.client(|_| {}).await.nodes();
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
    let given_back = async {
        while cluster.workers[0].report().dram.2 > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), given_back).await.expect("pins are given back");
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

/// A reader that has begun and is not gone on with, as one of several whose rows are merged, keeps no other one from reading:
/// not by connections that it is making, nor by calls that it has under way.
#[tokio::test]
async fn readers_that_nobody_goes_on_with_hold_nothing_up() {
    const MIB: usize = 1 << 20;
    let cluster = spread(1).await;
    let content = bytes(1, 20 * MIB);
    {
        let nodes = cluster.client(|_| {}).await.nodes();
        nodes.create("/tmp/f", CreateOptions::new(NodeType::File)).await.unwrap();
        nodes.append("/tmp/f", content.clone()).await.unwrap();
    }
    let nodes = cluster.client(|settings| settings.in_place = false).await.nodes();
    let mut begun = Vec::new();
    for _ in 0..200 {
        let mut reader = nodes.reader("/tmp/f", 0).await.unwrap();
        assert!(futures::poll!(std::pin::pin!(reader.next())).is_pending());
        begun.push(reader);
        if begun.len() % 40 == 1 {
            let mut other = nodes.reader("/tmp/f", 0).await.unwrap();
            let read = tokio::time::timeout(Duration::from_secs(20), other.read_all()).await;
            assert!(read.expect("nobody waits for another reader").unwrap() == content);
        }
    }
    for mut reader in begun.into_iter().step_by(50) {
        assert!(reader.read_all().await.unwrap() == content);
    }
}

#[tokio::test]
async fn many_values_go_in_one_message_or_by_themselves() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    for at in 0..4 {
        let table = format!("/tmp/t{at}");
        nodes.create(&table, CreateOptions::new(NodeType::Table)).await.unwrap();
        let names: Vec<String> = (0..2500).map(|name| format!("{name:04}")).collect();
        let value =
            |at: usize| Bytes::from(bytes(at as u64, [0, 1, 100, 4096, 4097, 70_000][at % 6] * usize::from(at % 100 < 12)));
        let mut values: Vec<(&str, Bytes)> = names.iter().enumerate().map(|(at, name)| (name.as_str(), value(at))).collect();
        values[17].0 = "a/b";
        let put = nodes.put_many(&table, &values).await.unwrap();
        assert_eq!(put.len(), values.len());
        for (at, put) in put.into_iter().enumerate() {
            assert_eq!(put.map_err(|error| error.kind), if at == 17 { Err(NodeErrorKind::Invalid) } else { Ok(()) });
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (at, got) in nodes.get_many(&table, &names).await.unwrap().into_iter().enumerate() {
            match at {
                17 => assert_eq!(got.unwrap_err().kind, NodeErrorKind::NotFound),
                at => assert!(got.unwrap() == values[at].1, "{at}"),
            }
        }
        assert_eq!(nodes.get_many(&table, &[]).await.unwrap(), []);
    }
    assert_eq!(nodes.get_many("/tmp/none", &["a"]).await.unwrap_err().kind, NodeErrorKind::NotFound);
    nodes.put("/tmp/k", "v").await.unwrap();
    assert_eq!(nodes.put_many("/tmp/k", &[("a", Bytes::new())]).await.unwrap_err().kind, NodeErrorKind::NotContainer);
}

#[tokio::test]
async fn a_snapshot_is_of_one_value() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    for (at, len) in [0, 100, 16 << 10, 70_000, (3 << 20) + 5].into_iter().enumerate() {
        let (value, path) = (bytes(at as u64, len), "/tmp/k");
        nodes.put(path, value.clone()).await.unwrap();
        let (snapshot, again) = (nodes.snapshot(path).await.unwrap(), nodes.snapshot(path).await.unwrap());
        assert_eq!((snapshot.len(), snapshot.tag()), (len as u64, again.tag()));
        for (start, end) in [(0, len), (len / 2, len), (len / 3, len / 2), (len, len)] {
            let read = snapshot.read(start as u64..end as u64).unwrap().read_all().await.unwrap();
            assert!(read == value[start..end], "{len}: {start}..{end}");
        }
        nodes.put(path, "other").await.unwrap();
        assert_ne!(nodes.snapshot(path).await.unwrap().tag(), snapshot.tag());
        match snapshot.read(0..len as u64).unwrap().read_all().await {
            Ok(read) => assert!(read == value, "{len}"),
            Err(error) => assert_eq!(error.kind, NodeErrorKind::DataLost, "{len}: {error}"),
        }
    }
    nodes.create("/tmp/f", CreateOptions::new(NodeType::File)).await.unwrap();
    nodes.append("/tmp/f", bytes(1, 3 << 20)).await.unwrap();
    nodes.append("/tmp/f", "tail").await.unwrap();
    let snapshot = nodes.snapshot("/tmp/f").await.unwrap();
    nodes.append("/tmp/f", "more").await.unwrap();
    let end = snapshot.len();
    assert_eq!(snapshot.read(end - 4..end).unwrap().read_all().await.unwrap(), "tail");
    assert_eq!(nodes.snapshot("/tmp").await.err().unwrap().kind, NodeErrorKind::Invalid);
}

#[tokio::test]
async fn a_value_is_read_from_any_byte_on() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    for (at, len) in [0, 100, 16 << 10, 70_000, (3 << 20) + 5].into_iter().enumerate() {
        let (value, path) = (bytes(at as u64, len), "/tmp/k");
        nodes.put(path, value.clone()).await.unwrap();
        for offset in [0, len / 3, len.min(1 << 20), len - len.min(1), len] {
            let read = nodes.reader(path, offset as u64).await.unwrap().read_all().await.unwrap();
            assert!(read == value[offset..], "{len} bytes from {offset} on");
            // More than comes with one answer.
            let read = nodes.read(path, offset as u64, 17 << 20).await.unwrap();
            assert!(read == value[offset..], "{len} bytes from {offset} on");
        }
        let behind = nodes.reader(path, len as u64 + 1).await.err().unwrap();
        assert_eq!(behind.kind, NodeErrorKind::Invalid, "{len}: {behind}");
    }
}

/// Of those who see that nobody was there, and of those who have seen the same bytes, one comes first.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writers_replaces_what_all_have_seen() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    let far = cluster.client(|settings| settings.in_place = false).await.nodes();
    nodes.create("/tmp/d", CreateOptions::new(NodeType::Directory)).await.unwrap();
    for (round, len) in [10, 70_000, 3 << 20].into_iter().enumerate() {
        let (name, mut condition) = (format!("k{round}"), NodeCondition::Absent);
        for turn in 0..3u64 {
            let writers = (0..16u64).map(|writer| {
                let (nodes, name) = (if writer % 2 == 0 { &nodes } else { &far }, &name);
                async move {
                    let draft = format!("/tmp/d/draft{writer}");
                    nodes.put(&draft, bytes(turn * 100 + writer, len)).await.unwrap();
                    nodes.replace(&draft, name, condition).await.map(|()| writer)
                }
            });
            let (won, lost): (Vec<_>, Vec<_>) = futures::future::join_all(writers).await.into_iter().partition(Result::is_ok);
            assert_eq!(won.len(), 1, "{len} bytes, turn {turn}");
            assert!(lost.into_iter().all(|lost| lost.unwrap_err().kind == NodeErrorKind::Exists));
            let winner = won.into_iter().flatten().next().unwrap();
            assert!(nodes.get(&format!("/tmp/d/{name}")).await.unwrap() == bytes(turn * 100 + winner, len));
            condition = NodeCondition::Tag(nodes.snapshot(&format!("/tmp/d/{name}")).await.unwrap().tag());
        }
        let NodeCondition::Tag(tag) = condition else { unreachable!() };
        let path = format!("/tmp/d/{name}");
        let deleted = nodes.delete_if(&path, NodeCondition::Tag(tag ^ 1)).await;
        assert_eq!(deleted.unwrap_err().kind, NodeErrorKind::Exists);
        nodes.delete_if(&path, condition).await.unwrap();
        assert_eq!(nodes.stat(&path).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_lease_that_is_over_takes_the_directory_along() {
    let cluster = spread(2).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    nodes.create("/tmp/job", CreateOptions::new(NodeType::Directory)).await.unwrap();
    nodes.put("/tmp/job/k", "v").await.unwrap();
    nodes.lease("/tmp/job", Some(Duration::from_millis(300))).await.unwrap();
    assert_eq!(nodes.get("/tmp/job/k").await.unwrap(), "v");
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if nodes.stat("/tmp/job").await.unwrap().is_none() {
            return;
        }
    }
    panic!("the directory is still there");
}

#[tokio::test]
async fn what_a_lost_worker_had_is_lost_at_once() {
    let mut cluster = spread(3).await;
    let nodes = cluster.client(|_| {}).await.nodes();
    // The root is with the first worker; containers are spread by their names.
    for name in 0..12 {
        nodes.create(&format!("/tmp/{name}"), CreateOptions::new(NodeType::Table)).await.unwrap();
        nodes.put(&format!("/tmp/{name}/k"), "v").await.unwrap();
    }
    cluster.workers.pop().unwrap().shutdown().await;
    let began = std::time::Instant::now();
    let (mut kept, mut lost) = (0, 0);
    for name in 0..12 {
        match nodes.get(&format!("/tmp/{name}/k")).await {
            Ok(value) => {
                assert_eq!(value, "v");
                kept += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, NodeErrorKind::DataLost, "{error}");
                lost += 1;
                // The worker that has the name may hear of the loss a little later.
                while let Err(error) = nodes.delete(&format!("/tmp/{name}"), true).await {
                    assert_eq!(error.kind, NodeErrorKind::Retry, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert_eq!(nodes.stat(&format!("/tmp/{name}/k")).await.unwrap(), None);
            }
        }
    }
    assert!(kept > 0 && lost > 0, "{kept} kept, {lost} lost");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
