//! Bar of names over TCP: times of lookup, create and delete, and lookups a second, against fixed limits. `threads` has what several threads come to
//! without TCP.

pub mod threads;

use forebay_client::{CreateOptions, NodeType};

use crate::clock::{p50, rate};
use crate::echo::{Echo, SMALL};
use crate::rig::Rig;
use forebay_bench_harness::{Bar, Figure, at_least, median};

/// Lookup, create (listed) and delete over TCP; the limit is a plain socket that takes and gives a small message.
pub async fn all(requests: usize, rounds: usize) {
    let (rig, echo) = (Rig::start(), Echo::start());
    let nodes = rig.nodes(false).await;
    nodes.create("/tmp/d", CreateOptions::new(NodeType::Directory)).await.unwrap();
    let (mut lookups, mut creates, mut deletes, mut rates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut limit = Vec::new();
    let file = CreateOptions::new(NodeType::File);
    for round in 0..rounds {
        limit.push(echo.plain((SMALL, SMALL), 1, false).p50(requests));
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
    let limit = median(limit);
    let figures = [("lookup p50", lookups, 24.0), ("create, listed, p50", creates, 30.0), ("delete p50", deletes, 30.0)];
    for (name, ours, bar) in figures {
        Figure::new(name, median(ours), "us", "the bar", bar, Bar::RatioAtMost(1.0)).within(limit).print(true);
    }
    at_least("lookups, 128 in flight", "ops/s", median(rates), ("the bar", 150_000.0), 1.0);
}
