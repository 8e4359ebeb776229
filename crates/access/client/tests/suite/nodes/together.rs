//! Several readers, writers and values of temporary nodes at once.

use std::time::Duration;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeCondition, NodeErrorKind, NodeType};

use super::{spread, spread_nodes};
use crate::cluster::bytes;

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
    let (_cluster, nodes) = spread_nodes(2).await;
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

/// What has no room in one answer comes with the next ones, and what is longer by itself; all in the order of the paths.
#[tokio::test]
async fn values_of_several_containers_are_put_and_got_by_their_paths() {
    let (_cluster, nodes) = spread_nodes(2).await;
    for at in 0..3 {
        nodes.create(&format!("/tmp/t{at}"), CreateOptions::new(NodeType::Table)).await.unwrap();
    }
    let len = |at: usize| [4096, 4000, 17, 0, 4097, 40_000][if at.is_multiple_of(50) { at / 50 % 6 } else { at % 2 }];
    let paths: Vec<String> = (0..1500).map(|at| format!("/tmp/t{}/{at}", at % 3)).collect();
    let mut values: Vec<(&str, Bytes)> =
        paths.iter().enumerate().map(|(at, path)| (path.as_str(), bytes(at as u64, len(at)).into())).collect();
    values.extend([("/tmp/none/a", Bytes::new()), ("/lake/x", Bytes::new()), ("/tmp", Bytes::new())]);
    values.push((paths[5].as_str(), "the last one of its path".into()));
    let put = nodes.put_each(&values).await;
    assert_eq!(put.len(), values.len());
    let wrong = [NodeErrorKind::NotFound, NodeErrorKind::Invalid, NodeErrorKind::WrongType];
    for (at, put) in put.into_iter().enumerate() {
        let expected = if (1500..1503).contains(&at) { Err(wrong[at - 1500]) } else { Ok(()) };
        assert_eq!(put.map_err(|error| error.kind), expected, "{at}");
    }
    values[5].1 = values[1503].1.clone();
    nodes.delete(&paths[7], false).await.unwrap();
    let asked: Vec<&str> = values.iter().map(|(path, _)| *path).collect();
    let got = nodes.get_each(&asked).await;
    assert_eq!(got.len(), values.len());
    for (at, got) in got.into_iter().enumerate() {
        match at {
            7 => assert_eq!(got.unwrap_err().kind, NodeErrorKind::NotFound),
            1500..1503 => assert_eq!(got.unwrap_err().kind, wrong[at - 1500]),
            at => assert!(got.unwrap() == values[at].1, "{at}"),
        }
    }
}

#[tokio::test]
async fn a_snapshot_is_of_one_value() {
    let (_cluster, nodes) = spread_nodes(2).await;
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
    let (_cluster, nodes) = spread_nodes(2).await;
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
    let (cluster, nodes) = spread_nodes(2).await;
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
    let (_cluster, nodes) = spread_nodes(2).await;
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
    let (mut cluster, nodes) = spread_nodes(3).await;
    // The root is with the first worker; containers are spread by their names.
    for name in 0..12 {
        nodes.create(&format!("/tmp/{name}"), CreateOptions::new(NodeType::Table)).await.unwrap();
        nodes.put(&format!("/tmp/{name}/k"), "v").await.unwrap();
    }
    cluster.node.workers.pop().unwrap().shutdown().await;
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
