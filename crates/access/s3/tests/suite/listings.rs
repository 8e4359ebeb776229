//! Listings that go on from where a client says.

use std::net::SocketAddr;

use crate::rig::client::request;
use crate::rig::cluster::{Cluster, gateway_settings};

/// The keys of a page, then its folders.
fn shown(text: &str) -> Vec<String> {
    let of = |mark: &str| -> Vec<String> {
        text.split(mark).skip(1).map(|rest| rest.split_once('<').unwrap().0.to_string()).collect()
    };
    [of("<Contents><Key>"), of("<CommonPrefixes><Prefix>")].concat()
}

/// What pages of one entry each show.
async fn one_by_one(at: SocketAddr, path: &str) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), String::new());
    for _ in 0..20 {
        let text = request("GET", &format!("{path}&max-keys=1{token}")).send(at).await.text();
        all.extend(shown(&text));
        match text.split_once("<NextContinuationToken>") {
            Some((_, rest)) => token = format!("&continuation-token={}", rest.split_once('<').unwrap().0),
            None => return all,
        }
    }
    panic!("pages of {path} without an end: {all:?}");
}

/// Lists what is behind a prefix itself; `marker` says that there is an object `dir/`.
async fn behind_the_prefix(at: SocketAddr, bucket: &str, marker: bool) {
    for key in ["dir/a", "dir/ab", "dir/abc/x", "dir0"] {
        assert_eq!(request("PUT", &format!("/{bucket}/{key}")).body("x").send(at).await.status, 200, "{bucket} {key}");
    }
    let own = if marker { vec!["dir/"] } else { Vec::new() };
    for (prefix, own, flat, grouped) in [
        ("dir/", own, vec!["dir/a", "dir/ab", "dir/abc/x"], vec!["dir/a", "dir/ab", "dir/abc/"]),
        ("dir/a", vec!["dir/a"], vec!["dir/ab", "dir/abc/x"], vec!["dir/ab", "dir/abc/"]),
        ("dir/ab", vec!["dir/ab"], vec!["dir/abc/x"], vec!["dir/abc/"]),
    ] {
        let token = forebay_types::hex(prefix.as_bytes());
        let prefix = prefix.replace('/', "%2F");
        for (delimiter, expected) in [("", flat), ("&delimiter=%2F", grouped)] {
            for from in [
                format!("list-type=2&start-after={prefix}"),
                format!("list-type=2&continuation-token={token}"),
                format!("marker={prefix}"),
            ] {
                let path = format!("/{bucket}?{from}&prefix={prefix}{delimiter}");
                let text = request("GET", &path).send(at).await.text();
                assert_eq!(shown(&text), expected, "{path}: {text}");
            }
            let path = format!("/{bucket}?list-type=2&prefix={prefix}{delimiter}");
            assert_eq!(one_by_one(at, &path).await, [own.clone(), expected].concat(), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_the_prefix_of_a_bucket() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "dir/", b"").unwrap();
    behind_the_prefix(cluster.address(), "lake", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_the_prefix_of_a_folder_and_of_temporary_data() {
    let (_folder, cluster) = Cluster::over_files(gateway_settings()).await;
    behind_the_prefix(cluster.address(), "nas", false).await;
    behind_the_prefix(cluster.address(), "tmp", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_listing_s_prefix_is_shown_as_it_was_given() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "a b", b"x").unwrap();
    let list = async |query: &str| request("GET", &format!("/lake?{query}")).send(cluster.address()).await.text();
    // Clients ask for the encoding by themselves, and do not undo it here.
    assert!(list("encoding-type=url&prefix=%0A").await.contains("<Prefix>\n</Prefix>"));
    let shown = list("encoding-type=url&prefix=a%20b").await;
    assert!(shown.contains("<Prefix>a b</Prefix>") && shown.contains("<Key>a+b</Key>"), "{shown}");
    assert!(list("encoding-type=url&prefix=%01").await.contains("<Prefix>%01</Prefix>"), "XML has no such character");
    assert!(list("list-type=2&encoding-type=url&prefix=a%20b").await.contains("<Prefix>a+b</Prefix>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_are_not_from_1970() {
    let (cluster, _s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let buckets = request("GET", "/").send(cluster.address()).await.text();
    assert!(buckets.contains("<Name>tmp</Name>") && buckets.contains("<Name>lake</Name>"), "{buckets}");
    let year = chrono::Utc::now().format("<CreationDate>%Y-").to_string();
    assert_eq!(buckets.matches(&year).count(), 2, "{buckets}");
}
