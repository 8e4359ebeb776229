//! Several processes: workers that are killed, a coordinator that goes away.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bucket, Role, Terminal, csv, forebay, free_port, until};

const ROWS: u64 = 300_000;
const FILES: u64 = 6;

struct Cluster {
    home: tempfile::TempDir,
    address: String,
    coordinator: Option<Role>,
    workers: Vec<Role>,
    bucket: Bucket,
}

impl Cluster {
    fn start(workers: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let bucket = Bucket::s3();
        for file in 0..FILES {
            bucket.put(&format!("t/{file}.csv"), &csv(ROWS));
        }
        let address = free_port();
        let coordinator = Role::coordinator(home.path(), &address);
        let start = |n| Role::worker(home.path(), &format!("worker-{n}"), &address);
        let workers = (0..workers).map(start).collect();
        bucket.mount_with(&address, "lake", &["--validate", "ttl:1h"]);
        Self { home, address, coordinator: Some(coordinator), workers, bucket }
    }

    fn live(&self) -> usize {
        let status = forebay(&self.address, &["status", "--json"]).ok().json().remove(0);
        let workers = status["workers"].as_array().unwrap();
        workers.iter().filter(|worker| worker["state"] == "live").count()
    }

    fn wait_for_live(&self, count: usize) {
        until(&format!("{count} live workers"), || (self.live() == count).then_some(()));
    }

    fn query(&self) -> Vec<Value> {
        forebay(&self.address, &["sql", "--json", QUERY]).ok().json()
    }
}

const QUERY: &str = "select count(*) as n, sum(square % 1000) as s, count(distinct word) as w from '/lake/t/*.csv'";

fn expected() -> Vec<Value> {
    let sum: u64 = (0..ROWS).map(|n| n * n % 1000).sum();
    vec![serde_json::json!({"n": FILES * ROWS, "s": FILES * sum, "w": 7})]
}

#[test]
fn a_query_survives_the_death_of_a_worker_in_its_middle() {
    let mut cluster = Cluster::start(3);
    assert_eq!(cluster.live(), 3);
    // Slow enough to be in the middle of it: some 50 MB at 20 MB/s.
    cluster.bucket.server().set_bandwidth(Some(20_000_000));
    let address = cluster.address.clone();
    let query = std::thread::spawn(move || forebay(&address, &["sql", "--json", QUERY]));
    until("what the query reads", || (cluster.bucket.server().counters().bytes_out >= 5_000_000).then_some(()));
    cluster.workers.remove(0).kill();
    assert!(!query.is_finished(), "the query ended before the worker did");
    assert_eq!(query.join().unwrap().ok().json(), expected());
    cluster.bucket.server().set_bandwidth(None);
    assert_eq!(cluster.query(), expected());
    cluster.wait_for_live(2);
    // It comes back under its old name.
    cluster.workers.push(Role::worker(cluster.home.path(), "worker-0", &cluster.address));
    cluster.wait_for_live(3);
    assert_eq!(cluster.query(), expected());
}

#[test]
fn without_any_worker_clients_read_shared_storage_themselves() {
    let mut cluster = Cluster::start(2);
    assert_eq!(cluster.query(), expected());
    cluster.workers.drain(..).for_each(Role::kill);
    assert_eq!(cluster.query(), expected());
}

#[test]
fn reads_go_on_without_a_coordinator_and_everything_does_after_its_restart() {
    let mut cluster = Cluster::start(2);
    // A client that is connected already reads on while nobody coordinates.
    let mut terminal = Terminal::open(cluster.home.path(), &cluster.address, "--csv");
    let answer = format!("{},{},7", FILES * ROWS, expected()[0]["s"]);
    terminal.line(&format!("{QUERY};"));
    terminal.wait_for(&answer, 1);
    cluster.coordinator.take().unwrap().kill();
    terminal.line(&format!("{QUERY};"));
    terminal.wait_for(&answer, 2);
    // Past every lease as well.
    std::thread::sleep(Duration::from_secs(6));
    terminal.line(&format!("{QUERY};"));
    terminal.wait_for(&answer, 3);
    cluster.coordinator = Some(Role::coordinator(cluster.home.path(), &cluster.address));
    cluster.wait_for_live(2);
    cluster.bucket.server().reset_counters();
    assert_eq!(cluster.query(), expected());
    assert_eq!(cluster.bucket.server().counters().bytes_out, 0, "what the workers held is held still");
    terminal.line(&format!("{QUERY};"));
    terminal.wait_for(&answer, 4);
    terminal.quit();
    forebay(&cluster.address, &["mount", "rm", "lake"]).ok();
}

const KEYS: usize = 6;

/// A worker is stopped, all keys are overwritten, and it goes on after `stopped`: nobody reads an old one then.
fn overwrite_past_a_stopped_worker(stopped: Duration) {
    let cluster = Cluster::start(2);
    cluster.wait_for_live(2);
    let path = |key: usize| format!("/lake/keys/{key}");
    let old = cluster.home.path().join("old");
    std::fs::write(&old, "old").unwrap();
    for key in 0..KEYS {
        forebay(&cluster.address, &["cp", old.to_str().unwrap(), &path(key)]).ok();
        assert_eq!(forebay(&cluster.address, &["cat", &path(key)]).ok().text(), "old");
    }
    let new = cluster.home.path().join("new");
    std::fs::write(&new, "new").unwrap();
    let worker = &cluster.workers[1];
    worker.signal("STOP");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(stopped);
            worker.signal("CONT");
        });
        for key in 0..KEYS {
            let began = Instant::now();
            forebay(&cluster.address, &["cp", new.to_str().unwrap(), &path(key)]).ok();
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
            assert_eq!(forebay(&cluster.address, &["cat", &path(key)]).ok().text(), "new");
        }
    });
    for _ in 0..5 {
        for key in 0..KEYS {
            assert_eq!(forebay(&cluster.address, &["cat", &path(key)]).ok().text(), "new");
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_worker_that_was_stopped_for_a_moment_does_not_answer_with_what_was_overwritten() {
    overwrite_past_a_stopped_worker(Duration::from_millis(1200));
}

#[test]
fn a_worker_that_was_stopped_for_longer_than_its_lease_does_not_answer_with_what_was_overwritten() {
    overwrite_past_a_stopped_worker(Duration::from_secs(9));
}
