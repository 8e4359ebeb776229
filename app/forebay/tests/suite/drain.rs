//! Workers that are drained by the command line.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Role, forebay, forebay_with, free_port};

/// What the status says of a worker.
fn state(address: &str, worker: &str) -> String {
    let status = forebay(address, &["status", "--json"]).ok().json().remove(0);
    let workers = status["workers"].as_array().unwrap();
    workers.iter().find(|it| it["address"] == worker).unwrap()["state"].as_str().unwrap().to_string()
}

#[test]
fn a_worker_is_drained_and_stopped_and_nothing_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let address = free_port();
    let _coordinator = Role::coordinator(home.path(), &address);
    let first = Role::worker(home.path(), "first", &address);
    let place = first.place("worker");
    let put = |path: &str, value: &[u8]| {
        forebay_with(home.path(), &["node", "put", path, "--coordinator", &address], |_| (), value).ok()
    };
    put("/tmp/small", b"some bytes");
    let large: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    put("/tmp/large", &large);
    // Nobody is there who could take it: it stays, and the command says what and how to undo.
    forebay(&address, &["worker", "drain", &place, "--wait"]).fails(1, &["room", "bytes", "worker resume"]);
    assert_eq!(state(&address, &place), "draining");
    assert_eq!(forebay(&address, &["node", "get", "/tmp/small"]).ok().text(), "some bytes");
    forebay(&address, &["worker", "resume", &place]).ok();
    assert_eq!(state(&address, &place), "live");
    let _second = Role::worker(home.path(), "second", &address);
    let drained = forebay(&address, &["worker", "drain", &place, "--wait", "--json"]).ok().json();
    let last = drained.last().unwrap();
    assert_eq!((&last["state"], &last["bytes_left"], &last["containers"]), (&Value::from("drained"), &0.into(), &0.into()));
    assert_eq!(state(&address, &place), "drained");
    first.signal("TERM");
    assert!(first.wait().success());
    let began = Instant::now();
    assert_eq!(forebay(&address, &["node", "get", "/tmp/small"]).ok().text(), "some bytes");
    assert!(forebay(&address, &["node", "get", "/tmp/large"]).ok().stdout == large);
    assert!(began.elapsed() < Duration::from_secs(20), "at once");
    forebay(&address, &["worker", "drain", &place]).fails(1, &[&place, "no live worker", "forebay status"]);
}
