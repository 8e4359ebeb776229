//! `forebay plan tasks` and `forebay simulate mixapart`: jobs and bandwidth, without a cluster.

use crate::support::{Ran, forebay_in};

/// A small cluster for a short time.
fn simulate(home: &std::path::Path, flags: &[&str]) -> Ran {
    let small = ["simulate", "mixapart", "--workers", "100", "--slots", "2", "--bandwidth", "3Gbit", "--job-tasks", "50"];
    forebay_in(home, &[&small[..], &["--duration", "30m"], flags].concat())
}

#[test]
fn the_papers_example_of_parallel_tasks() {
    let home = tempfile::tempdir().unwrap();
    let plan = ["plan", "tasks", "--reuse", "0.8", "--task", "20s", "--bandwidth", "10Gbit"];
    let answer = forebay_in(home.path(), &[&plan[..], &["--json"]].concat()).ok().json().remove(0);
    assert_eq!(answer["tasks"].as_f64().unwrap().round(), 1953.0);
    assert_eq!(answer["fetched_bytes_per_sec"].as_f64().unwrap().round(), 640_000.0);
    let shown = forebay_in(home.path(), &[&plan[..], &["--plot", "capacity.svg"]].concat()).ok();
    assert!(shown.text().contains("1953 in parallel"), "{}", shown.text());
    let svg = std::fs::read_to_string(home.path().join("capacity.svg")).unwrap();
    assert!(svg.contains("20 s tasks, 10 Gbit/s") && svg.contains("<polyline"), "{svg}");
}

#[test]
fn what_is_cached_needs_no_bandwidth() {
    let home = tempfile::tempdir().unwrap();
    let plan = ["plan", "tasks", "--task", "20s", "--bandwidth", "1Gbit", "--reuse"];
    assert!(forebay_in(home.path(), &[&plan[..], &["1"]].concat()).ok().text().contains("any number"));
    assert!(forebay_in(home.path(), &[&plan[..], &["1", "--json"]].concat()).ok().json().remove(0)["tasks"].is_null());
    for wrong in ["1.5", "-1", "nan"] {
        let reuse = format!("--reuse={wrong}");
        forebay_in(home.path(), &[&plan[..plan.len() - 1], &[reuse.as_str()]].concat()).fails(2, &["from 0 to 1"]);
    }
}

#[test]
fn the_data_scheduler_is_compared_and_drawn() {
    let home = tempfile::tempdir().unwrap();
    let rows = simulate(home.path(), &["--reuse", "0.5", "--json", "--csv", "runs.csv", "--plot", "runs.svg"]).ok().json();
    assert_eq!(rows.len(), 2);
    let secs = |at: usize| rows[at]["job_secs"].as_f64().unwrap();
    assert_eq!((&rows[0]["data_scheduler"], &rows[1]["data_scheduler"]), (&true.into(), &false.into()));
    assert!(secs(0) < secs(1), "jobs are faster with it: {rows:?}");
    let csv = std::fs::read_to_string(home.path().join("runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(std::fs::read_to_string(home.path().join("runs.svg")).unwrap().contains("fetched by tasks"));
}

#[test]
fn a_simulation_is_a_function_of_its_flags() {
    let home = tempfile::tempdir().unwrap();
    let flags = ["--reuse", "0.4", "--policy", "fair", "--data-scheduler", "on", "--task", "5s,20s", "--json"];
    let run = |seed: &str| simulate(home.path(), &[&flags[..], &["--seed", seed]].concat()).ok().text();
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn tiers_that_are_too_small_evict_and_it_is_told() {
    let home = tempfile::tempdir().unwrap();
    let set = ["--working-set", "2GB", "--workers", "4", "--tier", "4,0.6", "--data-scheduler", "on", "--bandwidth", "1Gbit"];
    let small = ["simulate", "mixapart", "--slots", "2", "--job-tasks", "10", "--duration", "30m"];
    let run = |flags: &[&str]| forebay_in(home.path(), &[&small[..], &set[..], flags].concat()).ok();
    let rows = run(&["--json", "--csv", "tiers.csv"]).json();
    let evicted = |at: usize| rows[at]["evicted"].as_u64().unwrap();
    assert_eq!((rows.len(), &rows[0]["tier"], evicted(0)), (2, &4.0_f64.into(), 0));
    assert!(evicted(1) > 0 && rows[0]["rate_off"].as_f64().unwrap() < 0.01, "{rows:?}");
    assert!(std::fs::read_to_string(home.path().join("tiers.csv")).unwrap().starts_with("reuse,tier,"));
    let shown = run(&["--disk-tier", "4"]);
    assert!(shown.text().contains("UNREAD WHEN EVICTED"), "{}", shown.text());
}

#[test]
fn simulations_of_nothing_are_wrong_usage() {
    let home = tempfile::tempdir().unwrap();
    for (flags, words) in [
        (["--reuse", "2"], "from 0 to 1"),
        (["--load", "0"], "share above 0"),
        (["--task", "0s"], "1ms at least"),
        (["--task-bytes", "1GiB"], "64MiB or less"),
        (["--task", "10m"], "longer --duration"),
        (["--spread", "1"], "from 0 to below 1"),
        (["--working-set", "1GB"], "use fewer --workers"),
    ] {
        forebay_in(home.path(), &[&["simulate", "mixapart"], &flags[..]].concat()).fails(2, &[words]);
    }
}
