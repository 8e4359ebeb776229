//! `forebay shard reshard` and `refresh` while their process, or a worker, is killed.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http;
use crate::support::{Bucket, Ran, Role, command, forebay_in, free_port};

const DATASET: &str = "/lake/rows.shards";
/// Records that nobody puts.
const ROWS: i64 = 600;
/// What each request to shared storage takes, so that there is time for a kill at each step.
const LATENCY: Duration = Duration::from_millis(20);

/// A dataset on a cluster of processes, and what was acknowledged of it.
struct Bed {
    home: tempfile::TempDir,
    address: String,
    bucket: Bucket,
    coordinator: Role,
    workers: Vec<Role>,
    put: BTreeMap<i64, String>,
}

fn lines(numbers: impl Iterator<Item = i64>, clerk: &str) -> Vec<u8> {
    numbers.map(|id| format!("{}\n", json!({"id": id, "clerk": clerk}))).collect::<String>().into_bytes()
}

impl Bed {
    fn start(workers: usize, create: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (address, bucket) = (free_port(), Bucket::s3());
        let flags = ["--lease", "2s", "--http", "127.0.0.1:0", "--data-dir", "coordinator"];
        let coordinator = Role::start(home.path(), &[&["coordinator", "--coordinator-listen", &address], &flags[..]].concat());
        let workers = (0..workers).map(|number| Role::worker(home.path(), &format!("w{number}"), &address)).collect();
        bucket.mount_with(&address, "lake", &["--validate", "always"]);
        bucket.put("rows/a.jsonl", &lines(0..ROWS, "first"));
        let bed = Self { home, address, bucket, coordinator, workers, put: BTreeMap::new() };
        let made = ["create", DATASET, "--from", "/lake/rows", "--key", "id", "--shards", "3", "--replicas", "0.5,0.5"];
        bed.shard(&[&made[..], create].concat()).ok();
        bed
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        forebay_in(self.home.path(), &[&["--coordinator", &self.address], arguments].concat())
    }

    fn shard(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["shard"], arguments].concat())
    }

    /// Runs a command until it goes well, a few times at most: what meets the loss of a worker may have to be given again.
    fn until_done(&self, arguments: &[&str]) -> Ran {
        for _ in 0..10 {
            let ran = self.shard(arguments);
            if ran.code == 0 {
                return ran;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        self.shard(arguments).ok()
    }

    /// A command that is not waited for.
    fn begin(&self, arguments: &[&str]) -> Child {
        let mut begun = command(self.home.path());
        begun.args(["--coordinator", &self.address, "shard"]).args(arguments);
        begun.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Puts records for so long, each of which is acknowledged, and one at least.
    fn put_for(&mut self, time: Duration) {
        let began = Instant::now();
        loop {
            // Beside those of objects, and over some of them.
            let number = self.put.len() as i64;
            let id = if number % 4 == 0 { number % ROWS } else { 10_000 + number };
            let clerk = format!("put {number}");
            self.shard(&["put", DATASET, &json!({"id": id, "clerk": clerk}).to_string()]).ok();
            self.put.insert(id, clerk);
            if began.elapsed() >= time {
                return;
            }
        }
    }

    /// Each acknowledged record is read, and there are no others than those and what the dataset was made of.
    fn all_is_there(&self, rows: i64, what: &str) {
        let ids: Vec<String> = self.put.keys().map(i64::to_string).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let read = self.shard(&[&["get", DATASET], &ids[..], &["--json"]].concat()).ok().json();
        let read: BTreeMap<_, _> = read.iter().map(|record| (record["id"].as_i64().unwrap(), clerk_of(record))).collect();
        assert_eq!(read, self.put, "{what}");
        let more = self.put.keys().filter(|id| **id >= rows).count() as i64;
        let count = self.shard(&["count", DATASET, "--json"]).ok().json().remove(0);
        assert_eq!(count["count"], rows + more, "{what}");
    }

    /// How it stands with the shards: over HTTP, as the last manifest has it.
    fn shards(&self) -> Value {
        let host = self.coordinator.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
        let secret = std::fs::read_to_string(self.home.path().join("coordinator/owner.secret")).unwrap();
        let bearer = format!("Authorization: Bearer {}\r\n", secret.trim());
        http::body(&http::ask(&host, &format!("/api/v1/shards/reshard?dataset={DATASET}"), &bearer))
    }

    /// The dataset is given so many shards, whatever was begun before, and nothing of that is named any more.
    fn has_shards(&self, count: &str) {
        self.until_done(&["reshard", DATASET, "--shards", count]);
        // What is open there is looked at anew after a second.
        std::thread::sleep(Duration::from_millis(1200));
        let shards = self.shards();
        assert_eq!((shards["shards"].to_string(), &shards["next"]), (count.to_string(), &Value::Null), "{shards}");
    }

    /// What a refresh did that comes after whatever was begun before.
    fn refresh(&self) -> Value {
        for _ in 0..10 {
            self.let_go();
            let ran = self.shard(&["refresh", DATASET, "--json"]);
            if ran.code == 0 {
                return ran.json().remove(0);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        self.shard(&["refresh", DATASET, "--json"]).ok().json().remove(0)
    }

    /// Workers don't refresh it by themselves.
    fn only_when_called(&self) {
        self.shard(&["refresh", DATASET, "--every", "off"]).ok();
    }

    /// Has a refresh that was killed be one of long ago, for which others would wait ten minutes.
    fn let_go(&self) {
        let said = self.run(&["cat", &format!("{DATASET}/refresh")]);
        if said.code != 0 {
            return;
        }
        let mut state: Value = serde_json::from_slice(&said.stdout).unwrap();
        state["held_until_ms"] = json!(0);
        self.bucket.put("rows.shards/refresh", state.to_string().as_bytes());
        // A worker that was killed hears of nothing until it is known to be gone.
        for _ in 0..20 {
            if self.run(&["refresh", &format!("{DATASET}/")]).code == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        self.run(&["refresh", &format!("{DATASET}/")]).ok();
    }
}

fn clerk_of(record: &Value) -> String {
    record["clerk"].as_str().unwrap().to_string()
}

/// Kills it, and says whether that came before its end.
fn kill(mut child: Child) -> bool {
    let runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    runs
}

#[test]
fn a_reshard_that_is_killed_loses_nothing_and_the_next_one_ends_it() {
    let mut bed = Bed::start(1, &[]);
    bed.bucket.server().set_latency(LATENCY);
    let mut killed = 0;
    for (to, millis) in [("5", 100), ("2", 600), ("4", 1200), ("6", 1800), ("3", 2500)] {
        let begun = bed.begin(&["reshard", DATASET, "--shards", to]);
        bed.put_for(Duration::from_millis(millis));
        killed += usize::from(kill(begun));
        bed.put_for(Duration::ZERO);
        bed.all_is_there(ROWS, &format!("killed on its way to {to} shards after {millis} ms"));
    }
    assert!(killed >= 2, "{killed} were killed before their end");
    bed.bucket.server().set_latency(Duration::ZERO);
    bed.has_shards("4");
    bed.put_for(Duration::ZERO);
    bed.all_is_there(ROWS, "at the end");
}

#[test]
fn who_interrupts_a_reshard_is_told_that_it_may_be_given_again() {
    let mut bed = Bed::start(1, &[]);
    bed.put_for(Duration::ZERO);
    // There is much left to do when it has begun.
    bed.bucket.server().set_latency(Duration::from_millis(500));
    bed.bucket.server().reset_counters();
    let begun = bed.begin(&["reshard", DATASET, "--shards", "5"]);
    let since = Instant::now();
    // The new shards are stored, or about to be.
    while bed.bucket.server().counters().puts == 0 {
        assert!(since.elapsed() < Duration::from_secs(120), "nothing is stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupted = Command::new("kill").args(["-INT", &begun.id().to_string()]).status().unwrap();
    let ended = begun.wait_with_output().unwrap();
    assert!(interrupted.success() && ended.status.code() == Some(130), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("give the command again"), "{ended:?}");
    bed.bucket.server().set_latency(Duration::ZERO);
    bed.has_shards("5");
    bed.all_is_there(ROWS, "at the end");
}

#[test]
fn a_worker_that_is_killed_amid_a_reshard_loses_nothing() {
    let mut bed = Bed::start(3, &[]);
    bed.bucket.server().set_latency(LATENCY);
    for (to, millis) in [("5", 400), ("2", 1500)] {
        let begun = bed.begin(&["reshard", DATASET, "--shards", to]);
        bed.put_for(Duration::from_millis(millis));
        bed.workers.remove(0).kill();
        bed.put_for(Duration::from_millis(500));
        bed.all_is_there(ROWS, &format!("a worker was killed after {millis} ms"));
        // It goes on with those that are left, or says that it is to be given again.
        let ended = begun.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let is_told = ended.status.code().is_some() && said.contains("again");
        assert!(ended.status.success() || is_told, "{ended:?}");
        bed.has_shards(to);
        bed.all_is_there(ROWS, &format!("with {to} shards"));
    }
}

#[test]
fn a_refresh_that_is_killed_is_made_good_by_the_next_one() {
    let mut bed = Bed::start(1, &["--refresh", "1h"]);
    bed.only_when_called();
    bed.bucket.server().set_latency(LATENCY);
    let mut killed = 0;
    let mut rows = ROWS;
    for (round, millis) in [(1, 100), (2, 400), (3, 900), (4, 1500)] {
        // New objects, one that changes, and none that anybody puts to.
        for part in 0..6 {
            bed.bucket.put(&format!("rows/{round}-{part}.jsonl"), &lines(rows..rows + 50, "followed"));
            rows += 50;
        }
        bed.bucket.put("rows/b.jsonl", &lines(9_000..9_010, &format!("round {round}")));
        let begun = bed.begin(&["refresh", DATASET]);
        std::thread::sleep(Duration::from_millis(millis));
        killed += usize::from(kill(begun));
        let done = bed.refresh();
        assert_eq!(done["errors"], json!([]), "{done}");
        let changed = bed.shard(&["count", DATASET, &format!("clerk = \"round {round}\""), "--json"]).ok().json().remove(0);
        assert_eq!(changed["count"], 10, "killed after {millis} ms");
        let followed = bed.shard(&["count", DATASET, "clerk = followed", "--json"]).ok().json().remove(0);
        assert_eq!(followed["count"], rows - ROWS, "killed after {millis} ms");
    }
    assert!(killed >= 2, "{killed} were killed before their end");
    let again = bed.shard(&["refresh", DATASET, "--json"]).ok().json().remove(0);
    assert_eq!(
        (&again["added"], &again["replaced"], &again["changes"]),
        (&json!(0), &json!(0), &json!(0)),
        "nothing is doubtful"
    );
    bed.put_for(Duration::ZERO);
    let clerk = bed.shard(&["get", DATASET, "0", "--json"]).ok().json().remove(0);
    assert_eq!(clerk_of(&clerk), "put 0");
}

#[test]
fn a_worker_that_is_killed_amid_a_refresh_loses_nothing() {
    let mut bed = Bed::start(3, &["--refresh", "1h"]);
    bed.only_when_called();
    bed.put_for(Duration::from_millis(500));
    bed.bucket.server().set_latency(LATENCY);
    let mut rows = 2_000;
    for millis in [300, 900] {
        for part in 0..6 {
            bed.bucket.put(&format!("rows/{millis}-{part}.jsonl"), &lines(rows..rows + 50, "followed"));
            rows += 50;
        }
        let begun = bed.begin(&["refresh", DATASET]);
        std::thread::sleep(Duration::from_millis(millis));
        bed.workers.remove(0).kill();
        let ended = begun.wait_with_output().unwrap();
        assert!(ended.status.code().is_some(), "it ends by itself: {ended:?}");
        let done = bed.refresh();
        assert_eq!(done["errors"], json!([]), "{done}");
        let followed = bed.shard(&["count", DATASET, "clerk = followed", "--json"]).ok().json().remove(0);
        assert_eq!(followed["count"], rows - 2_000, "a worker was killed after {millis} ms");
        for (id, clerk) in &bed.put {
            let record = bed.shard(&["get", DATASET, &id.to_string(), "--json"]).ok().json().remove(0);
            assert_eq!(clerk_of(&record), *clerk, "{id}");
        }
    }
}
