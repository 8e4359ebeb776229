//! A coordinator and its standby, with what they must not forget in PostgreSQL.

use std::fs;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use forebay_testing::Postgres;

use crate::support::{Bucket, Ran, Role, forebay, forebay_in, free_port, lake};

/// What a failover may take.
const FAILOVER: Duration = Duration::from_secs(15);

/// Two places of a coordinator, which every process here finds in its configuration.
struct Pair {
    home: tempfile::TempDir,
    places: [String; 2],
    server: Postgres,
}

impl Pair {
    fn new() -> Self {
        let (home, server) = (tempfile::tempdir().unwrap(), Postgres::with_password());
        let places = [free_port(), free_port()];
        let database = server.database("meta").unwrap();
        let settings = format!(
            "coordinator = \"{}, {}\"\nmetadata = \"{database}\"\n\
             cluster-secret = \"known to the cluster alone\"\ntoken = \"known to administrators\"\n",
            places[0], places[1]
        );
        fs::write(home.path().join("forebay.toml"), settings).unwrap();
        Self { home, places, server }
    }

    /// Starts the coordinator of a place. It says that it is up when it leads.
    fn coordinator(&self, at: usize) -> JoinHandle<Role> {
        let (home, place) = (self.home.path().to_path_buf(), self.places[at].clone());
        let folder = format!("coordinator{at}");
        std::thread::spawn(move || {
            let flags = ["coordinator", "--coordinator-listen", &place, "--data-dir", &folder];
            Role::start(&home, &[&flags[..], &["--http", "off"]].concat())
        })
    }

    fn role(&self, name: &str, more: &[&str]) -> Role {
        Role::start(self.home.path(), &[&[name, "--data-dir", name, "--http", "off"], more].concat())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        forebay_in(self.home.path(), arguments)
    }

    /// How long it takes until something that changes the metadata goes well.
    fn until_it_mounts(&self, name: &str, folder: &Path) -> Duration {
        let (began, add) = (Instant::now(), ["mount", "add", name, folder.to_str().unwrap()]);
        loop {
            let ran = self.run(&add);
            if ran.code == 0 {
                return began.elapsed();
            }
            assert!(began.elapsed() < 2 * FAILOVER, "no coordinator leads: {}", ran.stderr);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_standby_takes_over_and_whoever_knows_both_places_finds_it() {
    let pair = Pair::new();
    let lake = pair.home.path().join("lake");
    fs::create_dir(&lake).unwrap();
    fs::write(lake.join("rows.csv"), "a\n1\n2\n").unwrap();

    let first = pair.coordinator(0).join().unwrap();
    let standby = pair.coordinator(1);
    let _worker = pair.role("worker", &["--worker-listen", "127.0.0.1:0", "--dram", "64MiB", "--disk", "0"]);
    let _scheduler = pair.role("scheduler", &["--scheduler-listen", "127.0.0.1:0"]);
    let _executor = pair.role("executor", &["--executor-listen", "127.0.0.1:0", "--slots", "1"]);
    pair.run(&["mount", "add", "lake", lake.to_str().unwrap()]).ok();
    fs::write(pair.home.path().join("value"), "as it was").unwrap();
    pair.run(&["node", "put", "/tmp/kept", "value"]).ok();
    let sum = "select sum(a) as s from '/lake/rows.csv'";
    assert_eq!(pair.run(&["sql", "--csv", sum]).ok().text(), "s\n3\n");
    assert!(!standby.is_finished(), "the first leads");

    first.kill();
    let took = pair.until_it_mounts("more", &lake);
    assert!(took < FAILOVER, "{took:?}");
    let second = standby.join().unwrap();
    assert_eq!(pair.run(&["cat", "/lake/rows.csv"]).ok().text(), "a\n1\n2\n");
    assert_eq!(pair.run(&["cat", "/more/rows.csv"]).ok().text(), "a\n1\n2\n");
    assert_eq!(pair.run(&["node", "get", "/tmp/kept"]).ok().text(), "as it was", "no worker was taken for lost");
    assert_eq!(pair.run(&["sql", "--csv", sum]).ok().text(), "s\n3\n");

    // The one that was killed comes back as the standby, and leads again.
    let standby = pair.coordinator(0);
    second.kill();
    let took = pair.until_it_mounts("again", &lake);
    assert!(took < FAILOVER, "{took:?}");
    let first = standby.join().unwrap();

    // With the database gone nobody knows who leads: it ends, and goes on when both are there again.
    pair.server.crash().unwrap();
    assert_eq!(first.wait().code(), Some(1));
    pair.server.resume().unwrap();
    let _first = pair.coordinator(0).join().unwrap();
    assert_eq!(pair.run(&["mount", "ls", "--json"]).ok().lines().len(), 3);
}

#[test]
fn a_scheduler_that_stands_by_takes_over_with_the_executors() {
    let bucket = Bucket::s3();
    bucket.put_csv("t", 2, 10_000);
    let (home, _up, at) = lake(&bucket);
    let role = |name: &str, folder: &str, more: &[&str]| {
        let flags = [name, "--coordinator", &at, "--http", "off", "--data-dir", folder];
        Role::start(home.path(), &[&flags[..], more].concat())
    };
    let first = role("scheduler", "s1", &["--scheduler-listen", "127.0.0.1:0"]);
    let _executor = role("executor", "e", &["--executor-listen", "127.0.0.1:0", "--slots", "1"]);
    let groups = |by: u32| {
        let statement = format!("select square % {by} as g, count(*) as n from '/lake/t/*.csv' group by g order by g");
        (forebay(&at, &["sql", "--csv", "--scheduler", "off", &statement]).ok().text(), statement)
    };
    let jobs = || forebay(&at, &["jobs", "--json"]).ok().json().len();
    let (alone, statement) = groups(3);
    assert_eq!(forebay(&at, &["sql", "--csv", &statement]).ok().text(), alone);
    assert_eq!(jobs(), 1);

    let _second = role("scheduler", "s2", &["--scheduler-listen", "127.0.0.1:0"]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(jobs(), 1, "the first serves, which knows of a job");
    first.kill();
    let began = Instant::now();
    let (alone, statement) = groups(5);
    assert_eq!(forebay(&at, &["sql", "--csv", &statement]).ok().text(), alone);
    assert!(began.elapsed() < FAILOVER, "{:?}", began.elapsed());
    assert_eq!(jobs(), 1, "the second knows of this one");
}
