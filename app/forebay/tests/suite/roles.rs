//! Starting and stopping: folders, ports, signals, HTTP.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::{Bucket, Role, csv, forebay, forebay_in, forebay_with, free_port};

const FREE: [&str; 8] =
    ["--coordinator-listen", "127.0.0.1:0", "--worker-listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--flight", "127.0.0.1:0"];

#[test]
fn two_processes_never_share_a_data_folder() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    forebay_in(home.path(), &[&["up"], &FREE[..]].concat()).fails(1, &["forebay-data", "in use", "--data-dir"]);
    forebay_in(home.path(), &["sql", "--embedded", "select 1"]).fails(1, &["forebay-data", "in use"]);
    // The first one is none the worse for it.
    forebay(&up.address(), &["status"]).ok();
    up.kill();
    Role::up(home.path());
}

#[test]
fn a_data_folder_of_a_newer_version_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("forebay-data");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("format"), "2\n").unwrap();
    fs::write(folder.join("kept"), "as it is").unwrap();
    forebay_in(home.path(), &[&["up"], &FREE[..]].concat()).fails(1, &["forebay-data", "newer version", "--data-dir"]);
    assert_eq!(fs::read_to_string(folder.join("kept")).unwrap(), "as it is");
    assert_eq!(fs::read_to_string(folder.join("format")).unwrap(), "2\n");
}

#[test]
fn a_port_in_use_is_named_with_its_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (at, flag) in [(1, "--coordinator-listen"), (3, "--worker-listen"), (5, "--http"), (7, "--flight")] {
        let home = tempfile::tempdir().unwrap();
        let mut arguments = FREE;
        arguments[at] = &address;
        forebay_in(home.path(), &[&["up"], &arguments[..]].concat()).fails(1, &[&address, "in use", flag]);
    }
}

#[test]
fn a_role_takes_all_the_open_files_that_it_may_have() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_after(home.path(), "ulimit -Sn 256");
    let limits = fs::read_to_string(format!("/proc/{}/limits", up.id())).unwrap();
    let files: Vec<&str> =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap().split_whitespace().collect();
    assert_eq!(files[0], files[1], "soft and hard limit");
}

#[test]
fn without_a_coordinator_commands_say_how_to_start_one() {
    let address = free_port();
    forebay(&address, &["ls"]).fails(1, &[&address, "forebay up"]);
    forebay(&address, &["sql", "select 1"]).fails(1, &[&address, "forebay up", "--embedded"]);
}

#[test]
fn signals_stop_it_in_order_and_it_comes_back_warm() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    let data = csv(100_000);
    bucket.put("x.csv", &data);
    let mut up = Role::up(home.path());
    bucket.mount(&up);
    forebay(&up.address(), &["sql", "create external table kept stored as csv location '/lake/x.csv'"]).ok();
    assert!(forebay(&up.address(), &["cat", "/lake/x.csv"]).ok().stdout == data);
    for signal in ["TERM", "INT"] {
        up.signal(signal);
        let status = up.wait();
        assert!(status.success(), "SIG{signal}: {status}");
        up = Role::up(home.path());
        // Warm: shared storage sends nothing of it again.
        bucket.server().reset_counters();
        let count = forebay(&up.address(), &["sql", "--csv", "select count(*) as n, max(square) as m from kept"]).ok().text();
        assert_eq!(count, "n,m\n100000,9999800001\n");
        assert_eq!(bucket.server().counters().bytes_out, 0, "after {signal}");
    }
}

#[test]
fn metrics_and_health_are_served() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(1000));
    let up = Role::up(home.path());
    bucket.mount(&up);
    forebay(&up.address(), &["cat", "/lake/x.csv"]).ok();
    let metrics = up.place("metrics");
    let host = metrics.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(get(host, "/healthz").ends_with("ok\n"));
    // Workers publish once a second.
    let published = (0..50).map(|_| get(host, "/metrics")).find(|text| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        text.contains("forebay_worker_storage_requests")
    });
    let text = published.expect("the worker publishes its numbers");
    for (metric, value) in [
        ("forebay_worker_tier_capacity_bytes{tier=\"dram\",worker=\"", "\"} 268435456"),
        ("forebay_worker_storage_requests{mount=\"lake\",kind=\"get\",worker=\"", "\"} 1"),
        ("forebay_worker_warnings{worker=\"", "\"} 0"),
        ("forebay_coordinator_workers{state=\"live\"}", " 1"),
        ("forebay_coordinator_mounts", " 1"),
        ("forebay_coordinator_requests{kind=\"heartbeat\"}", ""),
    ] {
        assert!(text.lines().any(|line| line.starts_with(metric) && line.ends_with(value)), "no {metric}..{value} in {text}");
    }
}

#[test]
fn a_token_is_asked_of_everyone() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("token"), "secret-of-the-cluster\n").unwrap();
    let up = Role::up_with(home.path(), &["--token-file", "token"]);
    let at = up.address();
    let asked = |token: Option<&str>| {
        let change = |command: &mut std::process::Command| {
            token.map(|token| command.env("FOREBAY_TOKEN", token));
        };
        forebay_with(home.path(), &["status", "--coordinator", &at], change, b"")
    };
    asked(Some("secret-of-the-cluster")).ok();
    for wrong in [None, Some("guess")] {
        let ran = asked(wrong).fails(1, &["token"]);
        assert!(!ran.stderr.contains("secret-of-the-cluster"));
    }
    assert!(!up.log().contains("secret-of-the-cluster"));
}

fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}
