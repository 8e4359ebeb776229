//! Processes of a cluster that are killed while queries of it run: the queries wait, run again, and answer right.

mod standby;

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bucket, Ran, Role, forebay, free_port, until};

/// Two stages, one of which passes on to the other.
const GROUPS: &str = "select square % 7 as g, count(*) as n from '/lake/t/*.csv' group by g order by g";

/// A coordinator, a worker, a scheduler and two executors, each in a process of its own, and six files.
struct Cluster {
    home: tempfile::TempDir,
    at: String,
    scheduler_at: String,
    bucket: Bucket,
    files: usize,
    coordinator: Option<Role>,
    scheduler: Option<Role>,
    executors: Vec<Role>,
    _worker: Role,
}

fn role(home: &Path, name: &str, folder: &str, at: &str, more: &[&str]) -> Role {
    let flags = [name, "--coordinator", at, "--http", "off", "--data-dir", folder];
    Role::start(home, &[&flags[..], more].concat())
}

impl Cluster {
    fn start() -> Self {
        Self::of(6, &[])
    }

    /// With so many files, and more flags for the scheduler.
    fn of(files: usize, flags: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let bucket = Bucket::s3();
        bucket.put_csv("t", files, 40_000);
        let (at, scheduler_at) = (free_port(), free_port());
        let coordinator = Role::coordinator(home.path(), &at);
        let worker = Role::worker(home.path(), "w", &at);
        bucket.mount(&coordinator);
        let listen = ["--scheduler-listen", scheduler_at.as_str()];
        let scheduler = role(home.path(), "scheduler", "s", &at, &[&listen[..], flags].concat());
        let executor = |folder| role(home.path(), "executor", folder, &at, &["--executor-listen", "127.0.0.1:0", "--slots", "2"]);
        let executors = vec![executor("e1"), executor("e2")];
        let (coordinator, scheduler) = (Some(coordinator), Some(scheduler));
        Self { home, at, scheduler_at, bucket, files, coordinator, scheduler, executors, _worker: worker }
    }

    /// What a process alone answers of the same rows under another name, so that the query's own are not cached.
    fn alone(&self) -> String {
        self.bucket.put_csv("same", self.files, 40_000);
        forebay(&self.at, &["sql", "--csv", "--scheduler", "off", &GROUPS.replace("/t/", "/same/")]).ok().text()
    }

    fn bandwidth(&self, bound: &str) {
        forebay(&self.at, &["mount", "set", "lake", "--bandwidth", bound]).ok();
    }

    fn query(&self) -> JoinHandle<Ran> {
        let at = self.at.clone();
        std::thread::spawn(move || forebay(&at, &["sql", "--csv", GROUPS]))
    }

    /// Waits until a query has a task on an executor.
    fn until_it_runs(&self) {
        self.until("a job runs", |job| job["tasks_running"].as_u64() > Some(0));
    }

    /// Waits until this is so of a query that runs.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let runs = |job: &Value| job["state"] == "running" && is_so(job);
        until(what, || forebay(&self.at, &["jobs", "--json"]).ok().json().iter().any(runs).then_some(()));
    }
}

#[test]
fn a_query_goes_on_when_its_scheduler_is_killed_and_comes_back() {
    let mut cluster = Cluster::start();
    let alone = cluster.alone();
    cluster.bandwidth("1Mbit");
    let asked = cluster.query();
    cluster.until_it_runs();
    cluster.scheduler.take().unwrap().kill();
    std::thread::sleep(Duration::from_secs(2));
    let at = ["--scheduler-listen", &cluster.scheduler_at];
    cluster.scheduler = Some(role(cluster.home.path(), "scheduler", "s", &cluster.at, &at));
    cluster.bandwidth("1Gbit");
    let ran = asked.join().unwrap().ok();
    assert_eq!(ran.text(), alone);
    assert!(
        ran.stderr.contains(&format!("waiting for the scheduler at {}, 60s at most", cluster.scheduler_at)),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_query_follows_its_scheduler_to_another_address() {
    let mut cluster = Cluster::start();
    let alone = cluster.alone();
    cluster.bandwidth("1Mbit");
    let asked = cluster.query();
    cluster.until_it_runs();
    cluster.scheduler.take().unwrap().kill();
    // Executors know one scheduler: those of the new one are new, too.
    cluster.executors.clear();
    cluster.scheduler = Some(role(cluster.home.path(), "scheduler", "s", &cluster.at, &["--scheduler-listen", &free_port()]));
    let flags = [
        "--executor-listen",
        "127.0.0.1:0",
        "--slots",
        "2",
        "--scheduler",
        &cluster.scheduler.as_ref().unwrap().place("scheduler"),
    ];
    cluster.executors.push(role(cluster.home.path(), "executor", "e3", &cluster.at, &flags));
    cluster.bandwidth("1Gbit");
    assert_eq!(asked.join().unwrap().ok().text(), alone);
}

#[test]
fn a_query_waits_for_a_coordinator_that_is_away() {
    let mut cluster = Cluster::start();
    let alone = cluster.alone();
    cluster.coordinator.take().unwrap().kill();
    let asked = cluster.query();
    std::thread::sleep(Duration::from_secs(3));
    cluster.coordinator = Some(Role::coordinator(cluster.home.path(), &cluster.at));
    let ran = asked.join().unwrap().ok();
    assert_eq!(ran.text(), alone);
    assert!(ran.stderr.contains(&format!("waiting for the coordinator at {}, 60s at most", cluster.at)), "{}", ran.stderr);
    // It ran on the cluster: a coordinator that has just come back is given the time to hear of its scheduler.
    assert_eq!(forebay(&cluster.at, &["jobs", "--json"]).ok().json().len(), 1);
}

#[test]
fn a_query_goes_on_when_an_executor_is_killed() {
    let mut cluster = Cluster::start();
    let alone = cluster.alone();
    cluster.bandwidth("1Mbit");
    let asked = cluster.query();
    cluster.until_it_runs();
    cluster.executors.remove(0).kill();
    cluster.bandwidth("1Gbit");
    assert_eq!(asked.join().unwrap().ok().text(), alone);
}

#[test]
fn what_a_stopped_executor_runs_is_done_elsewhere_before_it_is_missed() {
    // Eight tasks for four slots, that fetch what they read, so that each takes its time.
    let cluster = Cluster::of(16, &["--no-data-scheduler"]);
    let alone = cluster.alone();
    cluster.bandwidth("24Mbit");
    let asked = cluster.query();
    // Half of the tasks that read are done, and the rest are more than one executor has slots.
    cluster.until("the second half runs", |job| {
        let count = |name: &str| job[name].as_u64().unwrap();
        count("tasks_done") * 2 >= count("tasks") && count("tasks_running") >= 3
    });
    cluster.executors[0].signal("STOP");
    let stopped = Instant::now();
    cluster.bandwidth("1Gbit");
    let ran = asked.join().unwrap().ok();
    let took = stopped.elapsed();
    assert_eq!(ran.text(), alone);
    let jobs = forebay(&cluster.at, &["jobs", "--json"]).ok().json();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert!(jobs[0]["tasks_copied"].as_u64() > Some(0) && jobs[0]["tasks_again"] == 0, "{jobs:?}");
    assert!(took < Duration::from_secs(12), "it was waited until the executor was missed: {took:?}");
    // It goes on, and what it says of tasks that were done elsewhere changes nothing.
    cluster.executors[0].signal("CONT");
    assert_eq!(cluster.query().join().unwrap().ok().text(), alone);
}
