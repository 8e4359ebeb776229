//! Renames, and paths over many workers: they come to the same wherever containers fall.

use forebay_client::{CreateOptions, NodeErrorKind, NodeType, Nodes};

use super::spread_nodes;

/// So many that containers of a round are with one worker, and the root with the other, in some: less than one time in a hundred
/// thousand in none.
const ROUNDS: usize = 100;

async fn make(nodes: &Nodes, path: &str) {
    nodes.create(path, CreateOptions::new(NodeType::Directory)).await.unwrap();
}

async fn is_there(nodes: &Nodes, path: &str) -> bool {
    nodes.stat(path).await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn renames_come_to_the_same_whichever_workers_have_the_containers() {
    let (_cluster, nodes) = spread_nodes(2).await;
    for round in 0..ROUNDS {
        let (dir, other) = (format!("/tmp/a{round}"), format!("/tmp/b{round}"));
        let (own, to) = (format!("{dir}/d"), format!("{other}/to"));
        for path in [&dir, &own, &other, &to, &format!("{to}/d")] {
            make(&nodes, path).await;
        }
        nodes.put(&format!("{dir}/k"), "value").await.unwrap();
        nodes.create(&format!("{dir}/f"), CreateOptions::new(NodeType::File)).await.unwrap();
        let refused = nodes.rename(&own, &to).await.unwrap_err();
        assert_eq!(refused.kind, NodeErrorKind::Exists, "{refused}");
        assert!(
            is_there(&nodes, &own).await && !is_there(&nodes, &format!("{to}/d/d")).await,
            "a container of its name does not take it in"
        );
        for name in ["k", "f", "d"] {
            nodes.rename(&format!("{dir}/{name}"), &dir).await.unwrap_or_else(|error| panic!("it is there already: {error}"));
        }
        for name in ["k", "f"] {
            let path = format!("{dir}/{name}");
            for below in ["x", "x/y"] {
                let refused = nodes.rename(&path, &format!("{path}/{below}")).await.unwrap_err();
                assert_eq!(refused.kind, NodeErrorKind::NotContainer, "{refused}");
            }
            assert!(is_there(&nodes, &path).await);
        }
        nodes.set_quota(&own, Some(10)).await.unwrap();
        make(&nodes, &format!("{own}/in")).await;
        nodes.put(&format!("{own}/in/k"), "bytes").await.unwrap();
        nodes.put(&format!("{own}/l"), "bytes").await.unwrap();
        nodes.rename(&format!("{own}/in/k"), &own).await.unwrap_or_else(|error| panic!("nothing comes to more: {error}"));
    }
    make(&nodes, "/tmp/a0/b0").await;
    let refused = nodes.rename("/tmp/a0/b0", "/tmp").await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Exists, "{refused}");
    assert!(!is_there(&nodes, "/tmp/b0/b0").await && is_there(&nodes, "/tmp/a0/b0").await);
    assert!(!is_there(&nodes, "/tmp/-").await);
}

/// More often than not the next name is with another worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_hundreds_of_names_leads_to_its_node() {
    let (cluster, nodes) = spread_nodes(3).await;
    let mut path = "/tmp".to_string();
    for _ in 0..200 {
        path.push_str("/d");
        make(&nodes, &path).await;
    }
    path.push_str("/k");
    nodes.put(&path, "deep").await.unwrap();
    // It remembers no part of the way.
    let other = cluster.client(|_| {}).await.nodes();
    assert_eq!(other.get(&path).await.unwrap(), &b"deep"[..]);
}
