//! Bar of names over TCP: times of lookup, create and delete, and lookups a second, against fixed limits.

use forebay_client::{CreateOptions, NodeType};

use crate::clock::{p50, rate};
use crate::rig::Rig;
use forebay_bench_harness::{at_least, at_most, median};

/// Lookup, create (listed) and delete over TCP.
pub async fn all(requests: usize, rounds: usize) {
    let rig = Rig::start();
    let nodes = rig.nodes(false).await;
    nodes.create("/tmp/d", CreateOptions::new(NodeType::Directory)).await.unwrap();
    let (mut lookups, mut creates, mut deletes, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let file = CreateOptions::new(NodeType::File);
    for round in 0..rounds {
        // Warm calls come first, so that names come twice.
        let mut made = 0;
        creates.push(
            p50(requests, |_| {
                let path = format!("/tmp/d/{round}-{made}");
                made += 1;
                let (nodes, file) = (&nodes, file.clone());
                async move { nodes.create(&path, file).await.unwrap() }
            })
            .await,
        );
        lookups.push(
            p50(requests, |at| {
                let (nodes, path) = (&nodes, format!("/tmp/d/{round}-{at}"));
                async move { assert!(nodes.stat(&path).await.unwrap().is_some()) }
            })
            .await,
        );
        let lookup = |at| {
            let (nodes, path) = (&nodes, format!("/tmp/d/{round}-{}", at % requests));
            async move { assert!(nodes.stat(&path).await.unwrap().is_some()) }
        };
        rates.push(rate(requests * 5, 128, lookup).await);
        let mut left = made;
        deletes.push(
            p50(requests, |_| {
                left -= 1;
                let (nodes, path) = (&nodes, format!("/tmp/d/{round}-{left}"));
                async move { nodes.delete(&path, false).await.unwrap() }
            })
            .await,
        );
    }
    at_most("lookup p50", "us", median(lookups), ("the bar", 24.0), 1.0);
    at_most("create, listed, p50", "us", median(creates), ("the bar", 30.0), 1.0);
    at_most("delete p50", "us", median(deletes), ("the bar", 30.0), 1.0);
    at_least("lookups, 128 in flight", "ops/s", median(rates), ("the bar", 150_000.0), 1.0);
}
