//! Replicas that follow popularity, while processes are killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_client::{Address, Client, ClientSettings, Security};
use forebay_types::ObjectVersion;
use serde_json::Value;

use crate::support::http::{ask, body};
use crate::support::{Bucket, Role, csv, forebay, free_port, lake_with};

const OBJECTS: usize = 12;
const BYTES: usize = 1 << 20;

fn content(object: usize) -> Vec<u8> {
    let word = |at: usize| (((object as u64) << 32) | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..BYTES / 8).flat_map(word).collect()
}

fn coordinator(home: &std::path::Path, address: &str) -> Role {
    let flags = ["--window", "1s", "--poll", "500ms", "--lease", "2s", "--http", "127.0.0.1:0", "--data-dir", "coordinator"];
    Role::start(home, &[&["coordinator", "--coordinator-listen", address], &flags[..]].concat())
}

fn segments(address: &str) -> Value {
    forebay(address, &["status", "--segments", "--json"]).ok().json().remove(0)
}

/// Waits until the placement of the hot object is as wanted, and gives it.
fn wait_for(address: &str, what: &str, holds: impl Fn(&Value, &Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let status = segments(address);
        let hot = status["segments"].as_array().unwrap().iter().find(|it| it["path"] == "/lake/o/0");
        if let Some(hot) = hot.filter(|hot| holds(&status, hot)) {
            return hot.clone();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "not {what}: {status}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[derive(Default)]
struct Tally {
    stop: AtomicBool,
    reads: AtomicU64,
    failures: std::sync::Mutex<Vec<String>>,
}

/// Reads object 0 most of the time, and the others else; every byte is compared.
async fn read_on(client: Client, versions: Arc<Vec<ObjectVersion>>, tally: Arc<Tally>, mut turn: usize) {
    let contents: Vec<_> = (0..OBJECTS).map(content).collect();
    while !tally.stop.load(Relaxed) {
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let object = if !(turn >> 33).is_multiple_of(4) { 0 } else { (turn >> 40) % OBJECTS };
        let start = (turn >> 20) % (BYTES - 65_536);
        let range = start as u64..start as u64 + 65_536;
        match client.read(client.operation(), &versions[object], range).await {
            Ok(bytes) if bytes[..] == contents[object][start..start + 65_536] => {}
            Ok(_) => tally.failures.lock().unwrap().push(format!("wrong bytes of object {object}")),
            Err(error) => tally.failures.lock().unwrap().push(error.to_string()),
        }
        tally.reads.fetch_add(1, Relaxed);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[test]
fn counts_and_routing_go_on_when_a_worker_and_then_the_coordinator_are_killed() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    (0..OBJECTS).for_each(|object| bucket.put(&format!("o/{object}"), &content(object)));
    let address = free_port();
    let first = coordinator(home.path(), &address);
    let mut workers: Vec<_> = (0..3).map(|n| Role::worker(home.path(), &format!("worker-{n}"), &address)).collect();
    bucket.mount_with(&address, "lake", &["--validate", "immutable"]);

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tally = Arc::new(Tally::default());
    let readers = runtime.block_on(async {
        let coordinator = Address::Tcp(address.clone());
        let secret = std::fs::read_to_string(home.path().join("coordinator/owner.secret")).unwrap();
        let security = Security::owner(&secret).unwrap();
        let settings = ClientSettings { security, in_place: false, ..ClientSettings::new(coordinator) };
        let client = Client::connect(settings).await.unwrap();
        let mut versions = Vec::new();
        for object in 0..OBJECTS {
            versions.push(client.open(&format!("/lake/o/{object}").parse().unwrap()).await.unwrap().version);
        }
        let versions = Arc::new(versions);
        let read = |turn| tokio::spawn(read_on(client.clone(), Arc::clone(&versions), Arc::clone(&tally), turn));
        (0..4).map(read).collect::<Vec<_>>()
    });
    let workers_of = |hot: &Value| hot["routing"].as_array().unwrap().len();
    wait_for(&address, "replicated", |_, hot| workers_of(hot) >= 2);
    workers.remove(0).kill();
    // The two that are left serve it, as planned anew.
    wait_for(&address, "planned on who is left", |status, hot| {
        let lost = forebay(&address, &["status", "--json"]).ok().json().remove(0);
        let live = lost["workers"].as_array().unwrap().iter().filter(|worker| worker["state"] == "live").count();
        live == 2 && workers_of(hot) == 2 && status["runs"].as_u64() >= Some(2)
    });
    // A checkpoint of this.
    std::thread::sleep(Duration::from_millis(2500));
    let before = wait_for(&address, "popular", |_, hot| hot["popularity"].as_f64() > Some(10.0));
    first.kill();
    let reads = tally.reads.load(Relaxed);
    std::thread::sleep(Duration::from_secs(2));
    assert!(tally.reads.load(Relaxed) > reads + 50, "reads go on without a coordinator");
    let _second = coordinator(home.path(), &address);
    let after = wait_for(&address, "known", |_, _| true);
    let popularity = |hot: &Value| hot["popularity"].as_f64().unwrap();
    assert!(popularity(&after) > popularity(&before) / 8.0, "counts go on: {before} {after}");
    wait_for(&address, "planned by the second coordinator", |status, hot| {
        status["runs"].as_u64() >= Some(2) && workers_of(hot) == 2 && hot["operations"].as_u64() > Some(0)
    });
    tally.stop.store(true, Relaxed);
    runtime.block_on(async {
        for reader in readers {
            reader.await.unwrap();
        }
    });
    let failures = tally.failures.lock().unwrap();
    assert!(failures.is_empty(), "{} of {} reads failed: {}", failures.len(), tally.reads.load(Relaxed), failures[0]);
}

#[test]
fn what_is_held_is_told_by_mount_and_table() {
    const KEYS: [&str; 3] = ["sales/dt=1/a.csv", "sales/dt=2/a.csv", "dim/a.csv"];
    let bucket = Bucket::s3();
    KEYS.iter().for_each(|key| bucket.put(key, &csv(1000)));
    let (_home, up, _) = lake_with(&bucket, &["--window", "1s"]);
    let token = forebay(&up.address(), &["token", "add", "console", "--read", "--json"]).ok().json().remove(0);
    let reader = format!("Authorization: Bearer {}\r\n", token["token"].as_str().unwrap());
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let started = Instant::now();
    loop {
        for key in KEYS {
            forebay(&up.address(), &["cat", &format!("/lake/{key}")]).ok();
        }
        let filled = body(&ask(&host, "/api/v1/filled?limit=5", &reader));
        let held = |part: &Value| (part["path"].as_str().unwrap().to_string(), part["held"]["bytes"].as_u64().unwrap());
        let of = |what: &str| filled[what].as_array().unwrap().iter().map(held).collect::<Vec<_>>();
        // Objects of one size: the table of two of them first.
        if let ([(mount, all)], [(sales, two), (dim, one)]) = (&of("mounts")[..], &of("tables")[..])
            && (*two, *all) == (2 * one, 3 * one)
            && *one > 0
        {
            assert_eq!((mount.as_str(), sales.as_str(), dim.as_str()), ("/lake/", "/lake/sales/", "/lake/dim/"));
            assert_eq!(filled["mounts"][0]["by_worker"], serde_json::json!([all]));
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{filled}");
    }
}
