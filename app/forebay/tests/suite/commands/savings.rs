//! What shared storage was spared is what its server says.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::http::{ask, body};
use crate::support::{Bucket, csv, forebay, forebay_as, lake};

/// What is told once nothing changes any more: workers tell of themselves once a second.
fn settled(at: &str) -> Value {
    let began = Instant::now();
    let look = || forebay(at, &["savings", "--json"]).ok().json().remove(0);
    let (mut last, mut since) = (look(), Instant::now());
    while since.elapsed() < Duration::from_millis(2500) {
        assert!(began.elapsed() < Duration::from_secs(60), "{last} goes on");
        std::thread::sleep(Duration::from_millis(250));
        let now = look();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

#[test]
fn savings_are_within_two_percent_of_what_the_server_counts() {
    let bucket = Bucket::s3();
    let (_home, _up, at) = lake(&bucket);
    let data = csv(20_000);
    let keys: Vec<String> = (0..40).map(|number| format!("part-{number}.csv")).collect();
    keys.iter().for_each(|key| bucket.put(key, &data));
    let (before, server_before) = (settled(&at), bucket.server().counters());
    let paths: Vec<String> = keys.iter().map(|key| format!("/lake/{key}")).collect();
    for _ in 0..3 {
        let words: Vec<&str> = ["cat"].into_iter().chain(paths.iter().map(String::as_str)).collect();
        assert_eq!(forebay(&at, &words).ok().stdout.len(), 40 * data.len());
    }
    let (after, server) = (settled(&at), bucket.server().counters());
    let grown = |what: &str| after[what].as_u64().unwrap() - before[what].as_u64().unwrap();
    let (requests, bytes) = (server.requests() - server_before.requests(), server.bytes_out - server_before.bytes_out);
    for (told, counted) in [(grown("storage_requests"), requests), (grown("storage_bytes"), bytes)] {
        assert!(told.abs_diff(counted) * 50 <= counted && counted > 0, "{told} told, {counted} counted: {after}");
    }
    assert!(grown("saved_bytes") > 0, "{after}");
}

#[test]
fn a_token_for_one_mount_is_told_what_that_one_has_saved() {
    let bucket = Bucket::s3();
    let (home, up, at) = lake(&bucket);
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let (lake, more) = (csv(1_000), csv(20_000));
    bucket.put("x.csv", &lake);
    std::fs::write(other.join("y.csv"), &more).unwrap();
    forebay(&at, &["mount", "add", "other", &format!("file://{}", other.display())]).ok();
    forebay(&at, &["cat", "/lake/x.csv", "/lake/x.csv", "/other/y.csv", "/other/y.csv"]).ok();
    let token = forebay(&at, &["token", "add", "one", "--read", "--mount", "lake"]).ok().text().trim().to_string();
    let served = |told: &Value| told["served_bytes"].as_u64().unwrap();
    assert!(served(&settled(&at)) >= 2 * (lake.len() + more.len()) as u64);
    let told = forebay_as(token.as_str(), &at, &["savings", "--json"]).ok().json().remove(0);
    assert!((2 * lake.len() as u64..more.len() as u64).contains(&served(&told)), "{told}");
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let over_http = body(&ask(&host, "/api/v1/savings", &format!("Authorization: Bearer {token}\r\n")));
    assert_eq!(over_http, told);
}
