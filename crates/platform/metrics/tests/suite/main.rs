//! What is made of metrics elsewhere: the alerts and the board name those of the table, and Prometheus takes their expressions.

mod promtool;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_metrics::{Counter, table};
use serde_json::Value;

fn dist(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../dist").join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(dist(file)).unwrap_or_else(|error| panic!("dist/{file}: {error}"))
}

fn board() -> Value {
    serde_json::from_str(&read("grafana/forebay.json")).expect("the board is JSON")
}

/// The expressions of a board's panels, as Prometheus gets them.
fn expressions(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let text = targets.map(|target| target["expr"].as_str().expect("an expression"));
    text.map(|text| text.replace("$__rate_interval", "5m").replace("$job", ".*")).collect()
}

/// All words of a text that look like metrics.
fn named(text: &str) -> BTreeSet<&str> {
    let is_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_of_a_word(c)).filter(|word| word.starts_with("forebay_")).collect()
}

fn assert_known(what: &str, text: &str) {
    let samples: BTreeSet<String> = table::rows().flat_map(|row| row.sample_names()).collect();
    let unknown: Vec<&str> = named(text).into_iter().filter(|name| !samples.contains(*name)).collect();
    assert!(unknown.is_empty(), "{what} names what no process prints: {unknown:?}");
    assert!(named(text).len() > 5, "{what} names hardly anything");
}

#[test]
fn alerts_are_of_metrics_that_there_are() {
    assert_known("dist/prometheus/alerts.yaml", &read("prometheus/alerts.yaml"));
    assert_known("dist/prometheus/alerts.test.yaml", &read("prometheus/alerts.test.yaml"));
}

#[test]
fn the_board_is_of_metrics_that_there_are() {
    assert_known("dist/grafana/forebay.json", &read("grafana/forebay.json"));
}

#[test]
fn panels_have_a_place_and_a_name_of_their_own() {
    let board = board();
    let panels = board["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    let titles: BTreeSet<&str> = panels.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), titles.len()), (panels.len(), panels.len()));
    let mut taken = BTreeSet::new();
    for panel in panels {
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        let cells = (at("y")..at("y") + at("h")).flat_map(|y| (at("x")..at("x") + at("w")).map(move |x| (x, y)));
        assert!(cells.into_iter().all(|cell| taken.insert(cell)), "{} lies over another one", panel["title"]);
    }
}

#[test]
fn prometheus_has_nothing_against_the_text() {
    ["worker", "coordinator", "gateway", "storage"].into_iter().for_each(forebay_metrics::begin);
    table::WORKER_READ_SECONDS.with(["dram"]).record(Duration::from_micros(5));
    table::WORKER_STORAGE_REQUESTS.show([(["a \"lake\"", "get", "w1"].map(String::from), Counter::at(u64::MAX))]);
    table::WORKER_TIER_USED_BYTES.with(["disk", "w1"]).set(1.5e300);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.txt");
    fs::write(&file, forebay_metrics::text()).unwrap();
    promtool::run(&["check", "metrics"], Some(&file));
}

#[test]
fn prometheus_takes_the_alerts_and_they_come_when_they_should() {
    promtool::run(&["check", "rules", dist("prometheus/alerts.yaml").to_str().unwrap()], None);
    promtool::run(&["test", "rules", dist("prometheus/alerts.test.yaml").to_str().unwrap()], None);
}

#[test]
fn prometheus_takes_the_expressions_of_the_board() {
    // As rules, since that is what its tool checks. A rule is JSON, which is YAML.
    let rules = expressions(&board()).into_iter().enumerate();
    let rules: Vec<Value> = rules.map(|(ix, expr)| serde_json::json!({"record": format!("panel:{ix}"), "expr": expr})).collect();
    assert!(rules.len() > 20, "{} expressions", rules.len());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board.yaml");
    fs::write(&file, serde_json::json!({"groups": [{"name": "board", "rules": rules}]}).to_string()).unwrap();
    promtool::run(&["check", "rules", file.to_str().unwrap()], None);
}
