//! `forebay plan`: what would be placed where, and which layers shards would get, without a cluster.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Ran, forebay_in};

/// A folder with `counts.json`.
fn home(counts: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("counts.json"), counts).unwrap();
    home
}

fn replicas(home: &Path, flags: &[&str]) -> Ran {
    forebay_in(home, &[&["plan", "replicas", "--counts", "counts.json"], flags].concat())
}

/// The answer, of which everything that holds of each has been looked at.
fn answer(home: &Path, flags: &[&str]) -> Value {
    let answer = replicas(home, &[flags, &["--json"]].concat()).ok().json().remove(0);
    let assignment = answer["assignment"].as_object().unwrap();
    let loads =
        assignment.values().map(|bag| bag.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum::<u64>());
    assert!(loads.max().unwrap() <= answer["capacity"].as_u64().unwrap(), "{answer}");
    let pieces: usize = assignment.values().map(|bag| bag.as_object().unwrap().len()).sum();
    assert_eq!(answer["replicas"], pieces as u64);
    // The bound is that of a plan in which everything has its place.
    if answer["unsatisfied"] == json!({}) {
        assert!(answer["lower_bound"].as_u64() <= answer["replicas"].as_u64(), "{answer}");
    }
    for (segment, routes) in answer["routing"].as_object().unwrap() {
        let routes = routes.as_object().unwrap();
        assert_eq!(routes.values().map(|percent| percent.as_u64().unwrap()).sum::<u64>(), 100, "{segment}");
        for worker in routes.keys() {
            assert!(assignment[worker][segment].is_u64(), "{segment} is routed to {worker}");
        }
    }
    answer
}

#[test]
fn the_papers_example_best_fit_and_first_fit() {
    let home = home(r#"{"S1": 6, "S2": 3, "S3": 2, "S4": 1}"#);
    let best = answer(home.path(), &["--workers", "3", "--policy", "best-fit"]);
    assert_eq!(best["assignment"], json!({"0": {"S1": 4}, "1": {"S2": 3, "S4": 1}, "2": {"S1": 2, "S3": 2}}));
    assert_eq!((&best["replicas"], &best["lower_bound"], &best["capacity"]), (&json!(5), &json!(5), &json!(4)));
    assert_eq!(answer(home.path(), &["--workers", "3", "--policy", "first-fit"])["replicas"], 6);
}

#[test]
fn the_papers_routing_table() {
    let home = home(r#"{"S1": 2, "S2": 2, "S3": 5, "S4": 3}"#);
    let paper = answer(home.path(), &["--workers", "3", "--policy", "getafix-paper"]);
    assert_eq!(paper["routing"], json!({"S1": {"2": 100}, "S2": {"2": 100}, "S3": {"0": 80, "1": 20}, "S4": {"1": 100}}));
}

#[test]
fn fewer_replicas_than_the_paper_has() {
    let home = home(r#"{"a": 3, "b": 3, "c": 2, "d": 2, "e": 2, "f": 2}"#);
    assert_eq!(answer(home.path(), &["--workers", "2", "--policy", "getafix-paper"])["replicas"], 7);
    for flags in [&["--workers", "2"][..], &["--workers", "2", "--capacity", "7"], &["--workers", "2", "--policy", "repack"]] {
        let answer = answer(home.path(), flags);
        assert_eq!((&answer["replicas"], &answer["capacity"]), (&json!(6), &json!(7)), "{flags:?}");
    }
}

#[test]
fn what_is_not_read_is_placed_nowhere() {
    let home = home(r#"{"hot": 9, "cold": 0}"#);
    let some = answer(home.path(), &["--workers", "2", "--capacity", "9"]);
    assert_eq!(some["assignment"], json!({"0": {"hot": 9}, "1": {}}));
    assert_eq!(some["routing"], json!({"hot": {"0": 100}}));
    std::fs::write(home.path().join("counts.json"), "{}").unwrap();
    assert_eq!(answer(home.path(), &["--workers", "2"])["replicas"], 0);
}

#[test]
fn what_is_held_stays() {
    let home = home(r#"{"a": 5, "b": 4, "c": 3}"#);
    std::fs::write(home.path().join("held.json"), r#"{"2": ["a"], "0": ["b", "gone"], "1": ["c"]}"#).unwrap();
    let held = &["--workers", "3", "--capacity", "5", "--policy", "getafix", "--holdings", "held.json"];
    let stays = answer(home.path(), held);
    assert_eq!(stays["assignment"], json!({"0": {"b": 4}, "1": {"c": 3}, "2": {"a": 5}}));
    assert_eq!(stays["bytes_to_move"], 0);
    let fresh = answer(home.path(), &["--workers", "3", "--capacity", "5", "--segment-bytes", "1MiB"]);
    assert_eq!(fresh["bytes_to_move"], 3 << 20);
    std::fs::write(home.path().join("held.json"), r#"{"3": ["a"]}"#).unwrap();
    replicas(home.path(), held).fails(1, &["held.json", "no worker \"3\"", "\"0\" to \"2\""]);
}

#[test]
fn unequal_workers_take_what_they_can() {
    let home = home(r#"{"a": 40, "b": 30, "c": 20, "d": 10}"#);
    let workers = r#"[{"speed": 3, "domain": "one", "bytes": "1GiB"}, {"speed": 1, "domain": "one"}, {"domain": "two"}]"#;
    std::fs::write(home.path().join("workers.json"), workers).unwrap();
    let file = &["--workers-file", "workers.json"];
    let by_speed = answer(home.path(), file);
    assert_eq!(by_speed["capacities"], json!([63, 21, 21]), "3 : 1 : 1 of 100, and 5 %");
    let load =
        |worker: &str| by_speed["assignment"][worker].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert!(load("0") > 50 && load("1") <= 21 && load("2") <= 21, "{by_speed}");
    assert_eq!(by_speed["unsatisfied"], json!({}));
    // Two copies in different domains; a third has nowhere to go, and that is said.
    let apart = answer(home.path(), &[&file[..], &["--minimum", "2"]].concat());
    for (segment, routes) in apart["routing"].as_object().unwrap() {
        assert!(routes.as_object().unwrap().contains_key("2"), "{segment} is in one domain only: {apart}");
    }
    let three = answer(home.path(), &[&file[..], &["--minimum", "3"]].concat());
    assert_eq!(three["unsatisfied"]["a"]["replicas"], 1);
    assert!(three["unsatisfied"]["a"]["why"].as_str().unwrap().contains("domains"));
    // What a worker has for bytes is a hard limit.
    std::fs::write(home.path().join("workers.json"), r#"[{"bytes": "160MiB"}, {"bytes": "64MiB"}]"#).unwrap();
    let small = answer(home.path(), file);
    assert!(small["assignment"]["0"].as_object().unwrap().len() <= 2 && small["assignment"]["1"].as_object().unwrap().len() <= 1);
    assert!(!small["unsatisfied"].as_object().unwrap().is_empty(), "{small}");
    let share = answer(home.path(), &[&file[..], &["--storage-share", "0.8"]].concat());
    assert_eq!(share["assignment"]["1"], json!({}), "80 % of 64 MiB is too little for one");
    for (workers, words) in [
        ("[]", &["0 workers"][..]),
        (r#"[{"speed": -1}]"#, &["worker 0", "-1"]),
        (r#"[{"sped": 1}]"#, &["sped", "speed"]),
        (r#"{"0": 1}"#, &["workers.json", "domain"]),
    ] {
        std::fs::write(home.path().join("workers.json"), workers).unwrap();
        replicas(home.path(), file).fails(1, words);
    }
    replicas(home.path(), &["--workers-file", "workers.json", "--workers", "2"]).fails(2, &["--workers"]);
}

#[test]
fn a_budget_is_spent_where_queues_are_longest() {
    let counts: serde_json::Map<String, Value> = (1..=40).map(|n| (format!("s{n}"), json!(4000 / n))).collect();
    let home = home(&Value::Object(counts).to_string());
    let replicas_of = |answer: &Value, segment: &str| answer["routing"][segment].as_object().unwrap().len();
    let one = answer(home.path(), &["--workers", "8"]);
    let two = answer(home.path(), &["--workers", "8", "--budget", "1.5"]);
    assert!(one["replicas"].as_u64().unwrap() < 45 && (55..=60).contains(&two["replicas"].as_u64().unwrap()), "{two}");
    assert!(replicas_of(&two, "s1") >= 2 && replicas_of(&two, "s40") == 1);
    replicas(home.path(), &["--workers", "8", "--budget", "0.5"]).fails(2, &["budget", "0.5"]);
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    let counts: serde_json::Map<String, Value> = (0..60).map(|n| (format!("s{n}"), json!(n * n % 97 + 1))).collect();
    let home = home(&Value::Object(counts).to_string());
    for policy in ["getafix", "repack", "uniform", "scarlett"] {
        let plan = || replicas(home.path(), &["--workers", "7", "--policy", policy, "--seed", "5", "--json"]).ok().text();
        assert_eq!(plan(), plan(), "{policy}");
    }
}

#[test]
fn an_access_log_is_counted_by_window() {
    let home = tempfile::tempdir().unwrap();
    let log =
        "timestamp,path,bytes\n10,/lake/a,100\n20,/lake/a,300\n70,/lake/a,100\n75,\"/lake/b,c\",200\n76,/lake/big,100000000\n";
    std::fs::write(home.path().join("access.csv"), log).unwrap();
    let plan = ["plan", "replicas", "--from-log", "access.csv", "--workers", "1", "--json"];
    let answer = forebay_in(home.path(), &plan).ok().json().remove(0);
    assert_eq!(answer["assignment"]["0"], json!({"/lake/a": 2, "/lake/b,c": 1, "/lake/big#0": 1, "/lake/big#1": 1}));
    assert_eq!(answer["bytes_to_move"], 100_000_000 + 300 + 200);
    std::fs::write(home.path().join("access.csv"), "10,/lake/a,100\nnoon,/lake/a,5\n").unwrap();
    forebay_in(home.path(), &plan).fails(1, &["access.csv", "line 2", "noon"]);
    std::fs::write(home.path().join("access.csv"), "10,/lake/a,-5\n11,/lake/a,many\n").unwrap();
    forebay_in(home.path(), &plan).fails(1, &["access.csv", "line 1", "-5"]);
    std::fs::write(home.path().join("access.csv"), "").unwrap();
    forebay_in(home.path(), &plan).fails(1, &["no accesses"]);
}

#[test]
fn people_get_a_table() {
    let home = home(r#"{"S1": 6, "S2": 3, "S3": 2, "S4": 1}"#);
    let text = replicas(home.path(), &["--workers", "3", "--policy", "best-fit"]).ok().text();
    for words in ["policy       best-fit", "replicas     5", "lower bound  5", "to move      320 MiB", "WORKER", "4 (100 %)"] {
        assert!(text.contains(words), "{words:?} isn't in {text}");
    }
}

#[test]
fn bad_input_is_explained() {
    let home = home("");
    for (counts, words) in [
        (r#"{"a": -1}"#, &["\"a\"", "negative"][..]),
        (r#"{"a": "x"}"#, &["\"a\"", "isn't a number"]),
        (r#"{"a": null}"#, &["\"a\"", "isn't a number"]),
        (r#"{"a": 1e30}"#, &["\"a\"", "too large"]),
        (r#"{"a": 1, "a": 2}"#, &["\"a\"", "twice"]),
        (r#"{"a": 9007199254740992, "b": 9007199254740992}"#, &["sum"]),
        ("[1, 2]", &["\"segment id\": count"]),
        ("S1: 6", &["\"segment id\": count"]),
    ] {
        std::fs::write(home.path().join("counts.json"), counts).unwrap();
        replicas(home.path(), &["--workers", "2"]).fails(1, words);
    }
    std::fs::write(home.path().join("counts.json"), r#"{"a": 10}"#).unwrap();
    replicas(home.path(), &["--workers", "2", "--capacity", "4"]).fails(1, &["10 accesses", "--capacity 5"]);
    replicas(home.path(), &["--workers", "0"]).fails(2, &["--workers"]);
    replicas(home.path(), &["--workers", "two"]).fails(2, &["--workers"]);
    replicas(home.path(), &["--workers", "2", "--policy", "best"]).fails(2, &["best-fit"]);
    replicas(home.path(), &["--workers", "2", "--slack", "7"]).fails(2, &["slack"]);
    replicas(home.path(), &["--workers", "2", "--slack", "0.1", "--capacity", "9"]).fails(2, &["--slack", "--capacity"]);
    replicas(home.path(), &["--workers", "2", "--replicas", "2"]).fails(2, &["uniform"]);
    replicas(home.path(), &[]).fails(2, &["--workers"]);
    forebay_in(home.path(), &["plan", "replicas", "--workers", "2"]).fails(2, &["--counts", "--from-log"]);
    forebay_in(home.path(), &["plan", "replicas", "--workers", "2", "--counts", "none.json"]).fails(1, &["none.json"]);
}

#[test]
fn a_worker_s_shards_get_the_layers_that_their_queues_ask_for() {
    let home = tempfile::tempdir().unwrap();
    let levels = json!([{"bytes": "100MiB", "us": 100_000}, {"bytes": "110MiB", "us": 1_000}]);
    let busy = json!({"shard": "orders/0", "levels": levels, "queue": vec![200; 20], "arrived": vec![200; 20]});
    let idle = json!({"shard": "orders/1", "levels": levels, "level": 1, "queue": vec![0; 20]});
    let worker = json!({"room": "210MiB", "replicas": [busy, idle]});
    std::fs::write(home.path().join("worker.json"), worker.to_string()).unwrap();
    let plan = ["plan", "shards", "worker.json"];
    let decisions = forebay_in(home.path(), &[&plan[..], &["--json"]].concat()).ok().json();
    assert_eq!(decisions.len(), 40);
    let moved: Vec<_> = decisions.iter().filter(|one| one["from"] != one["to"]).map(|one| (&one["shard"], &one["to"])).collect();
    assert_eq!(moved, [(&json!("orders/0"), &json!(1)), (&json!("orders/1"), &json!(0))]);
    let text = forebay_in(home.path(), &plan).ok().text();
    assert!(text.contains("orders/1 gave room") && text.contains("went to orders/0"), "{text}");
    forebay_in(home.path(), &[&plan[..], &["--target", "0s"]].concat()).fails(2, &["target_us"]);
    std::fs::write(home.path().join("worker.json"), "[]").unwrap();
    forebay_in(home.path(), &plan).fails(1, &["worker.json", "\"replicas\""]);
}
