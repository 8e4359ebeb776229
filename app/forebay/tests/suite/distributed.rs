//! Distributed SQL: `up --cluster`, `sql --priority`, `jobs`, `transfers`, and the roles in processes of their own.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use forebay_transport::{Credential, Guarded, Security};
use forebay_types::ErrorKind;
use serde_json::Value;

use crate::support::http::ask;
use crate::support::{Bucket, Role, forebay, forebay_in, free_port, interrupted, lake, until};

const SUM: &str = "select count(*) as n, max(square) as m from '/lake/t/*.csv'";

/// Scheduler and executors on free ports.
const PORTS: [&str; 6] = ["--scheduler-listen", "127.0.0.1:0", "--executor-listen", "127.0.0.1:0", "--slots", "2"];

fn up(home: &std::path::Path) -> Role {
    Role::up_with(home, &[&["--cluster", "3"], &PORTS[..]].concat())
}

fn jobs(at: &str) -> Vec<Value> {
    forebay(at, &["jobs", "--json"]).ok().json()
}

#[test]
fn statements_run_on_all_executors_and_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    bucket.put_csv("t", 6, 20_000);
    let up = up(home.path());
    bucket.mount(&up);
    let at = up.address();
    let answer = forebay(&at, &["sql", "--csv", "--priority", "5", SUM]).ok().text();
    assert_eq!(answer, "n,m\n120000,399960001\n");
    let job = jobs(&at).remove(0);
    assert_eq!((&job["state"], &job["priority"]), (&"done".into(), &5.into()), "{job}");
    assert_eq!(job["tasks"], job["tasks_done"], "{job}");
    assert!(job["tasks_with_input"].as_u64().unwrap() >= 3, "{job}");
    // The same without the cluster; it is listed no second time.
    assert_eq!(forebay(&at, &["sql", "--csv", "--scheduler", "off", SUM]).ok().text(), answer);
    assert_eq!(jobs(&at).len(), 1);
    let shown = forebay(&at, &["jobs"]).ok().text();
    assert!(shown.contains("done") && shown.contains("select count(*)"), "{shown}");
    // Whoever collects metrics is told the same.
    let (metrics, secret) =
        (up.place("metrics"), std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap());
    let host = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    let text = ask(host, "/metrics", &format!("Authorization: Bearer {}\r\n", secret.trim()));
    let line = |name: &str, number: u64| assert!(text.lines().any(|line| line == format!("{name} {number}")), "{name} in {text}");
    line("forebay_scheduler_executors", 3);
    line("forebay_scheduler_jobs_over_total{outcome=\"done\"}", 1);
    line("forebay_scheduler_tasks_over_total{outcome=\"done\"}", job["tasks"].as_u64().unwrap());
    line("forebay_scheduler_task_input_bytes_total", job["bytes_done"].as_u64().unwrap());
    line("forebay_executor_tasks", 0);
    let ran = text.lines().find_map(|line| line.strip_prefix("forebay_executor_tasks_over_total{outcome=\"done\"} ")).unwrap();
    assert!(ran.parse::<u64>().unwrap() >= job["tasks"].as_u64().unwrap(), "{ran}: a task is done before it is told of");
}

#[test]
fn a_job_is_cancelled_and_a_bound_holds_while_it_runs() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    bucket.put_csv("t", 6, 40_000);
    let up = up(home.path());
    bucket.mount(&up);
    let at = up.address();
    forebay(&at, &["mount", "set", "lake", "--bandwidth", "1Mbit"]).ok();
    let asked = {
        let at = at.clone();
        std::thread::spawn(move || forebay(&at, &["sql", "--csv", SUM]))
    };
    let running = || jobs(&at).into_iter().find(|job| job["bytes"].as_u64() > Some(0));
    let job = until("a job", running);
    assert_eq!(job["state"], "running", "{job}");
    let transfers = until("a transfer", || {
        let transfers = forebay(&at, &["transfers", "--json"]).ok().json();
        (!transfers.is_empty()).then_some(transfers)
    });
    assert!(transfers[0]["path"].as_str().unwrap().starts_with("/lake/t/"), "{transfers:?}");
    forebay(&at, &["jobs", "cancel", job["id"].as_str().unwrap()]).ok();
    asked.join().unwrap().fails(1, &["ancelled"]);
    until("the end of the job", || (jobs(&at)[0]["state"] == "failed").then_some(()));
    forebay(&at, &["jobs", "cancel", "0123"]).fails(1, &["0123", "forebay jobs"]);

    // One that is given up is cancelled as well.
    let second = || until("another job", || jobs(&at).iter().any(|job| job["state"] == "running").then_some(()));
    let (code, took) = interrupted(&at, &["sql", "--csv", SUM], second);
    assert!(code == Some(130) && took < Duration::from_secs(5), "{code:?} after {took:?}");
    until("its end", || jobs(&at).iter().all(|job| job["state"] == "failed").then_some(()));

    // The next one is stuck too, until the bound is raised.
    let asked = {
        let at = at.clone();
        std::thread::spawn(move || forebay(&at, &["sql", "--csv", SUM]))
    };
    until("one more job", || (jobs(&at).len() == 3).then_some(()));
    forebay(&at, &["mount", "set", "lake", "--bandwidth", "1Gbit"]).ok();
    assert_eq!(asked.join().unwrap().ok().text(), "n,m\n240000,1599920001\n");
}

#[test]
fn the_roles_run_in_processes_of_their_own_and_one_may_die() {
    let bucket = Bucket::s3();
    bucket.put_csv("t", 4, 20_000);
    let (home, _up, at) = lake(&bucket);
    let none = forebay(&at, &["jobs"]);
    none.fails(1, &["no scheduler", "forebay scheduler"]);
    let role = |name: &str, folder: &str, more: &[&str]| {
        let flags = [name, "--coordinator", &at, "--http", "off", "--data-dir", folder];
        Role::start(home.path(), &[&flags[..], more].concat())
    };
    let _scheduler = role("scheduler", "s", &["--scheduler-listen", "127.0.0.1:0"]);
    until("the scheduler", || (forebay(&at, &["jobs"]).code == 0).then_some(()));
    let listen = ["--executor-listen", "127.0.0.1:0", "--slots", "1"];
    let first = role("executor", "e1", &listen);
    let _second = role("executor", "e2", &listen);
    assert_eq!(forebay(&at, &["sql", "--csv", SUM]).ok().text(), "n,m\n80000,399960001\n");
    first.kill();
    assert_eq!(forebay(&at, &["sql", "--csv", SUM]).ok().text(), "n,m\n80000,399960001\n");
    assert_eq!(jobs(&at).len(), 2);
}

/// What passes between stages is in nodes when that is set, is gone with its job, and also when the scheduler is killed.
#[test]
fn what_passes_between_stages_goes_with_its_job_and_with_its_scheduler() {
    let bucket = Bucket::s3();
    bucket.put_csv("t", 6, 40_000);
    let (home, _up, at) = lake(&bucket);
    let role = |name: &str, more: &[&str]| {
        let flags = [name, "--coordinator", &at, "--http", "off", "--data-dir", name];
        Role::start(home.path(), &[&flags[..], more].concat())
    };
    let scheduler = role("scheduler", &["--scheduler-listen", "127.0.0.1:0", "--shuffle", "nodes"]);
    until("the scheduler", || (forebay(&at, &["jobs"]).code == 0).then_some(()));
    let _executor = role("executor", &["--executor-listen", "127.0.0.1:0", "--slots", "2"]);
    let groups = "select square % 7 as g, count(*) as n from '/lake/t/*.csv' group by g order by g";
    let alone = forebay(&at, &["sql", "--csv", "--scheduler", "off", groups]).ok().text();
    assert_eq!(forebay(&at, &["sql", "--csv", groups]).ok().text(), alone);
    let kept = || forebay(&at, &["node", "ls", "/tmp/shuffle"]).ok().text();
    until("the end of the job's directory", || kept().trim().is_empty().then_some(()));

    // The next one gets stuck.
    bucket.put_csv("u", 6, 40_000);
    forebay(&at, &["mount", "set", "lake", "--bandwidth", "1Mbit"]).ok();
    let asked = {
        let (at, stuck) = (at.clone(), groups.replace("/t/*", "/u/*"));
        std::thread::spawn(move || forebay(&at, &["sql", "--csv", "--wait", "2s", &stuck]))
    };
    until("the directory of the second job", || (!kept().trim().is_empty()).then_some(()));
    scheduler.kill();
    until("the end of the directory of a job without a scheduler", || kept().trim().is_empty().then_some(()));
    let failed = asked.join().unwrap().fails(1, &["waited 2s for the scheduler", "forebay scheduler"]);
    for raw in ["h2", "tonic", "transport error", "status:"] {
        assert!(!failed.stderr.contains(raw), "{}", failed.stderr);
    }
}

/// In the order in which each waits for all that come after it.
#[test]
fn processes_that_start_before_their_peers_wait_for_them() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    bucket.put_csv("t", 4, 1_000);
    let secret = home.path().join("secret");
    std::fs::write(&secret, "a secret of this cluster alone").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let at = free_port();
    let start = |role: &'static str, listen: &'static str, more: &'static [&'static str]| {
        let (home, at, listen) = (home.path().to_path_buf(), at.clone(), format!("--{listen}-listen=127.0.0.1:0"));
        let starting = std::thread::spawn(move || {
            let flags =
                [role, "--coordinator", &at, "--http", "off", "--data-dir", role, "--cluster-secret-file", "secret", &listen];
            Role::start(&home, &[&flags[..], more].concat())
        });
        std::thread::sleep(Duration::from_millis(500));
        assert!(!starting.is_finished(), "{role} does not wait");
        starting
    };
    let executor = start("executor", "executor", &["--slots", "2"]);
    let scheduler = start("scheduler", "scheduler", &[]);
    let worker = start("worker", "worker", &["--dram", "64MiB", "--disk", "0"]);
    let listen = ["--coordinator-listen", &at, "--http", "off", "--data-dir", "coordinator", "--cluster-secret-file", "secret"];
    let coordinator = Role::start(home.path(), &[&["coordinator"], &listen[..]].concat());
    let _roles = [worker, scheduler, executor].map(|starting| starting.join().unwrap());
    bucket.mount(&coordinator);
    assert_eq!(forebay(&at, &["sql", "--csv", SUM]).ok().text(), "n,m\n4000,998001\n");
    assert_eq!(jobs(&at).len(), 1, "it ran on the cluster");
}

#[test]
fn an_executor_without_a_scheduler_says_so() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let flags = "--http off --executor-listen 127.0.0.1:0 --data-dir e --wait 2s";
    let line = format!("executor --coordinator {} {flags}", up.address());
    let words: Vec<_> = line.split(' ').collect();
    forebay_in(home.path(), &words).fails(1, &["no scheduler", "forebay scheduler", "--scheduler"]);
}

#[test]
fn whoever_reaches_a_scheduler_that_starts_is_let_in() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let token = forebay(&up.address(), &["token", "add", "early", "--read", "--json"]).ok().json()[0]["token"].clone();
    let security = Security::holder(Credential::token(token.as_str().unwrap()).unwrap());
    let (folder, coordinator, place) = (home.path().to_path_buf(), up.address(), free_port());
    let listen = place.clone();
    let starting = std::thread::spawn(move || {
        let flags = ["--http", "off", "--scheduler-listen", &listen, "--data-dir", "scheduler"];
        Role::start(&folder, &[&["scheduler", "--coordinator", &coordinator], &flags[..]].concat())
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // As soon as the port is there.
    let began = Instant::now();
    let reached = loop {
        match runtime.block_on(Guarded::connect(&place, &security)) {
            Err(error) if error.kind() == ErrorKind::Retry && began.elapsed() < Duration::from_secs(30) => {}
            reached => break reached.map(drop),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(reached.map_err(|error| error.to_string()), Ok(()));
    drop(starting.join().unwrap());
}
