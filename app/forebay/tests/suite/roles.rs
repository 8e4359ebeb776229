//! Starting and stopping: folders, ports, signals, HTTP.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::http::{ask, body, get};
use crate::support::{Bucket, Role, after, command, csv, forebay, forebay_as, forebay_in, forebay_with, free_port, lake};

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
fn too_few_addresses_for_a_tier_are_told_of_with_what_lifts_them() {
    let home = tempfile::tempdir().unwrap();
    // 64 GiB, in KiB: enough for all else.
    let ran = forebay_with(home.path(), &[&["up"], &FREE[..]].concat(), |up| *up = after("ulimit -v 67108864", up), b"");
    ran.fails(1, &["the DRAM tier's", "of addresses can't be set up", "ulimit -v"]);
    // Nothing is left that stands in the way once it is lifted.
    Role::up(home.path());
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
    let waits = forebay(&address, &["sql", "--wait", "2s", "select 1"]);
    assert!(waits.stderr.starts_with(&format!("waiting for the coordinator at {address}, 2s at most")), "{}", waits.stderr);
    waits.fails(1, &[&address, "waited 2s", "forebay up", "--embedded"]);
    forebay(&address, &["sql", "--wait", "0s", "select 1"]).fails(1, &[&address, "forebay up"]);
}

#[test]
fn signals_stop_it_in_order_and_it_comes_back_warm() {
    let bucket = Bucket::s3();
    let data = csv(100_000);
    bucket.put("x.csv", &data);
    let (home, mut up, _) = lake(&bucket);
    forebay(&up.address(), &["sql", "create external table kept stored as csv location '/lake/x.csv'"]).ok();
    assert!(forebay(&up.address(), &["cat", "/lake/x.csv"]).ok().stdout == data);
    // Two at once are one, sent to the process and to its group. What this process ignores, as under `nohup`, that one ignores too.
    let ignored = std::fs::read_to_string("/proc/self/status").unwrap();
    let is_hangup_ignored =
        ignored.lines().any(|line| line.starts_with("SigIgn:") && line.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']));
    let hangup = if is_hangup_ignored { "TERM" } else { "HUP" };
    for signal in ["TERM", "INT", "TERM INT", hangup] {
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
fn the_cluster_is_shown_to_those_who_may_read_and_the_console_is_empty_without() {
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(1000));
    let (_home, up, _) = lake(&bucket);
    for _ in 0..3 {
        forebay(&up.address(), &["cat", "/lake/x.csv"]).ok();
    }
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let page = ask(&host, "/", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("default-src 'none'") && !page.contains("lake"), "{page}");
    let files = ["console.js", "map.js", "jobs.js", "shards.js", "query.js", "console.css", "uplot.js", "uplot.css"];
    let sizes = files.map(|file| {
        let answer = ask(&host, &format!("/console/{file}"), "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("nosniff"), "{file}");
        answer.len()
    });
    assert!(sizes.iter().sum::<usize>() + page.len() < 300 << 10, "{sizes:?}");

    let token =
        |flags: &[&str]| forebay(&up.address(), &[&["token", "add", "--json"], flags].concat()).ok().json()[0]["token"].clone();
    let bearer = |token: &serde_json::Value| format!("Authorization: Bearer {}\r\n", token.as_str().unwrap());
    let (reader, of_mount) = (bearer(&token(&["all", "--read"])), bearer(&token(&["one", "--read", "--mount", "lake"])));
    for path in ["/api/v1/status", "/api/v1/segments", "/api/v1/filled", "/api/v1/events"] {
        for (who, header, status) in [
            ("nobody", "", 401),
            ("a guess", "Authorization: Bearer 0123456789abcdef\r\n", 401),
            ("of a mount", of_mount.as_str(), 403),
        ] {
            assert!(ask(&host, path, header).starts_with(&format!("HTTP/1.1 {status}")), "{who} {path}");
        }
    }
    let seen = |path: &str| body(&ask(&host, path, &reader));
    let status = seen("/api/v1/status");
    assert_eq!((status["mounts"][0]["name"].as_str(), status["workers"][0]["state"].as_str()), (Some("lake"), Some("live")));
    let said = forebay(&up.address(), &["status", "--json"]).ok().json().remove(0);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&status), keys(&said), "as the command prints it");
    assert!(seen("/api/v1/segments?limit=3")["policy"].is_string());
    for wrong in [
        "segments?limit=0",
        "segments?limit=x",
        "segments?more=1",
        "filled?limit=0",
        "filled?limit=101",
        "savings?per_gb=-1",
        "savings?per_gb=NaN",
    ] {
        let answer = ask(&host, &format!("/api/v1/{wrong}"), &reader);
        assert!(answer.starts_with("HTTP/1.1 400") && body(&answer)["error"] == "invalid", "{wrong}: {answer}");
    }
    // Workers tell of themselves once a second.
    let reads = |value: &serde_json::Value| value["reads"].as_u64().unwrap();
    let counted = (0..50).map(|_| seen("/api/v1/savings?per_gb=1000000")).find(|savings| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        reads(savings) >= 3
    });
    let counted = counted.expect("three reads");
    assert!(counted["saved_bytes"].as_u64().unwrap() > 0 && counted["saved_money"].as_f64().unwrap() > 0.0, "{counted}");
    let server = bucket.server().counters();
    assert_eq!(counted["storage_bytes"].as_u64().unwrap(), server.bytes_out, "as the server counts");
    forebay(&up.address(), &["savings", "--per-gb", "0.02"]).ok();
    forebay(&up.address(), &["savings", "--per-gb=-1"]).fails(2, &["prices are numbers"]);
}

#[test]
fn metrics_and_health_are_served() {
    let bucket = Bucket::s3();
    bucket.put("x.csv", &csv(1000));
    let (home, up, _) = lake(&bucket);
    forebay(&up.address(), &["cat", "/lake/x.csv"]).ok();
    let metrics = up.place("metrics");
    let host = metrics.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    assert!(get(host, "/healthz").ends_with("ok\n"));
    let ready = ask(host, "/readyz", "");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("ready\n"), "{ready}");
    assert!(ask(host, "/metrics", "").starts_with("HTTP/1.1 401"));
    assert!(ask(host, "/metrics", "Authorization: Bearer a guess of somebody\r\n").starts_with("HTTP/1.1 401"));
    let secret = fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let get = |host: &str, path: &str| {
        let answer = ask(host, path, &format!("Authorization: Bearer {}\r\n", secret.trim()));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    // Workers publish once a second.
    let published = (0..50).map(|_| get(host, "/metrics")).find(|text| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        text.contains("forebay_worker_tier_capacity_bytes")
    });
    let text = published.expect("the worker publishes its numbers");
    for (metric, value) in [
        ("forebay_worker_tier_capacity_bytes{tier=\"dram\",worker=\"", "\"} 268435456"),
        ("forebay_worker_storage_requests_total{mount=\"lake\",method=\"get\",worker=\"", "\"} 1"),
        ("forebay_worker_warnings{worker=\"", "\"} 0"),
        ("forebay_coordinator_workers{state=\"live\"}", " 1"),
        ("forebay_coordinator_mounts", " 1"),
        ("forebay_coordinator_requests_total{kind=\"heartbeat\"}", ""),
        ("forebay_worker_read_seconds_count{served=\"storage\"}", ""),
        ("forebay_storage_request_seconds_count{method=\"get\"}", ""),
        ("forebay_worker_bad_pages_total", " 0"),
    ] {
        assert!(text.lines().any(|line| line.starts_with(metric) && line.ends_with(value)), "no {metric}..{value} in {text}");
    }
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let names: std::collections::BTreeSet<_> = heads.iter().collect();
    assert_eq!(heads.len(), names.len(), "once a metric: {text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("# HELP ")).count(), heads.len());
}

#[test]
fn a_worker_is_not_ready_before_it_has_joined() {
    let home = tempfile::tempdir().unwrap();
    let (http, nobody) = (free_port(), free_port());
    secret_file(&home.path().join("secret"), "a-secret-of-the-cluster\n");
    let mut worker = command(home.path())
        .args(["worker", "--coordinator", &nobody, "--http", &http, "--worker-listen", "127.0.0.1:0"])
        .args(["--cluster-secret-file", "secret", "--dram", "64MiB", "--disk", "0B", "--log-format", "json"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let listens = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::net::TcpStream::connect(&http).is_ok()
    });
    let answers = listens.then(|| (ask(&http, "/healthz", ""), ask(&http, "/readyz", "")));
    worker.kill().unwrap();
    worker.wait().unwrap();
    let (alive, ready) = answers.expect("it listens before it has a coordinator");
    assert!(alive.starts_with("HTTP/1.1 200"), "{alive}");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.ends_with("worker: it is being started\n"), "{ready}");
}

#[test]
fn a_token_is_asked_of_everyone_who_is_not_the_owner() {
    let home = tempfile::tempdir().unwrap();
    secret_file(&home.path().join("token"), "a-secret-of-the-administrator\n");
    let up = Role::up_with(home.path(), &["--token-file", "token"]);
    let at = up.address();
    let asked = |token: Option<&str>, arguments: &[&str]| forebay_as(token, &at, arguments);
    let admin = Some("a-secret-of-the-administrator");
    asked(admin, &["status"]).ok();
    for wrong in [None, Some("a guess of somebody"), Some("fb.etl.1.a-guess-of-somebody")] {
        let ran = asked(wrong, &["status"]).fails(1, &["oken"]);
        assert!(!ran.stderr.contains("a-secret-of") && !ran.stderr.contains("a-guess"), "{}", ran.stderr);
    }
    // What an administrator makes.
    let token = asked(admin, &["token", "add", "etl", "--read", "--expires", "30d"]).ok().text().trim().to_string();
    assert!(token.starts_with("fb.etl.1."), "{token}");
    asked(Some(&token), &["status"]).ok();
    asked(Some(&token), &["mount", "add", "lake", "file:///none"]).fails(1, &["token etl.1 may not administer", "--admin"]);
    asked(Some(&token), &["token", "ls"]).fails(1, &["may not administer"]);
    let second = asked(admin, &["token", "add", "etl", "--read", "--json"]).ok().json();
    assert_eq!((second[0]["id"].as_str(), second[0]["role"].as_str()), (Some("etl.2"), Some("read")));
    asked(admin, &["token", "add", "etl", "--write"]).fails(1, &["two tokens etl", "token rm etl.1"]);
    let listed = asked(admin, &["token", "ls", "--json"]).ok().json();
    assert_eq!(listed.iter().map(|token| token["id"].as_str().unwrap()).collect::<Vec<_>>(), ["etl.1", "etl.2"]);
    assert!(listed[0]["expires"].is_string() && listed[1]["expires"].is_null() && listed[0]["token"].is_null());
    asked(admin, &["token", "rm", "etl.1"]).ok();
    asked(Some(&token), &["status"]).fails(1, &["none of this cluster"]);
    asked(second[0]["token"].as_str(), &["status"]).ok();
    for secret in ["a-secret-of-the-administrator", token.rsplit('.').next().unwrap()] {
        assert!(!up.log().contains(secret));
    }
}

#[test]
fn a_secret_that_others_can_read_is_refused_with_the_remedy() {
    let home = tempfile::tempdir().unwrap();
    secret_file(&home.path().join("secret"), "a-secret-of-the-administrator");
    fs::set_permissions(home.path().join("secret"), fs::Permissions::from_mode(0o644)).unwrap();
    for key in ["token-file", "cluster-secret-file", "s3-keys-file"] {
        let flag = format!("--{key}");
        let up = ["up", "--s3", "127.0.0.1:0", &flag, "secret"];
        forebay_in(home.path(), &[&up, &FREE[..]].concat()).fails(2, &[key, "mode 0644", "chmod 600"]);
    }
}

#[test]
fn who_changed_what_and_who_was_refused_is_written_down() {
    let home = tempfile::tempdir().unwrap();
    secret_file(&home.path().join("token"), "a-secret-of-the-administrator");
    secret_file(&home.path().join("keys.toml"), "[[key]]\nid = \"AKONE\"\nsecret = \"of-the-key\"\nread-only = true\n");
    let flags = ["--token-file", "token", "--audit-log", "audit.jsonl", "--s3", "127.0.0.1:0", "--s3-keys-file", "keys.toml"];
    let up = Role::up_with(home.path(), &flags);
    let token = forebay(&up.address(), &["token", "add", "etl", "--read"]).ok().text().trim().to_string();
    let with = |token: &str, arguments: &[&str]| forebay_as(token, &up.address(), arguments);
    with(&token, &["mount", "add", "lake", "file:///none"]).fails(1, &["may not administer"]);
    with("a guess of somebody's", &["status"]).fails(1, &["oken"]);
    with(&token, &["status"]).ok();
    let bucket = Bucket::folder();
    bucket.mount(&up);
    forebay_with(home.path(), &["cp", "-", "/lake/new", "--coordinator", &up.address()], |_| (), b"text").ok();
    forebay(&up.address(), &["node", "mkdir", "/tmp/job"]).ok();
    for command in [["pin", "/lake/new"].as_slice(), &["pin", "--remove", "/lake/new"], &["free", "/lake/new"]] {
        forebay(&up.address(), command).ok();
    }
    let of_lake = forebay(&up.address(), &["token", "add", "one", "--read", "--mount", "lake"]).ok().text().trim().to_string();
    assert_eq!(with(&of_lake, &["cat", "/lake/new"]).ok().text(), "text");
    let (s3, metrics) = (up.place("s3"), up.place("metrics"));
    assert!(ask(s3.trim_start_matches("http://"), "/lake/new", "").starts_with("HTTP/1.1 403"));
    let host = metrics.trim_start_matches("http://").trim_end_matches("/metrics");
    assert!(ask(host, "/metrics", "").starts_with("HTTP/1.1 401"));
    assert!(ask(host, "/api/v1/shards/count?dataset=/lake/x.shards", "").starts_with("HTTP/1.1 401"));

    let log = || fs::read_to_string(home.path().join("audit.jsonl")).unwrap();
    // Who left is seen a moment after it did.
    let began = std::time::Instant::now();
    while !log().contains("\"connection\"") && began.elapsed() < std::time::Duration::from_secs(10) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = log();
    assert!(!text.contains("a-secret-of") && !text.contains(&token) && !text.contains("a guess"), "{text}");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |who: &str, port: &str, what: &str, on: &str, verdict: &str| {
        let wanted = [("who", who), ("port", port), ("what", what), ("on", on), ("verdict", verdict)];
        let found = lines.iter().find(|line| wanted.iter().all(|(field, value)| line[field] == *value));
        let found = found.unwrap_or_else(|| panic!("{wanted:?} is not in\n{text}"));
        assert!(found["timestamp"].is_string() && found["from"].is_string());
        assert_eq!(found["why"].is_string(), verdict == "refused", "{found}");
    };
    told("owner", "control", "token_add", "etl", "allowed");
    told("token etl.1", "control", "mount_add", "lake", "refused");
    told("unknown", "connection", "connect", "", "refused");
    told("owner", "control", "mount_add", "lake", "allowed");
    told("owner", "data", "put", "/lake/new", "allowed");
    told("owner", "data", "create", "/tmp/job", "allowed");
    told("owner", "data", "let_go", "/lake/new", "allowed");
    told("owner", "data", "free", "/lake/new", "allowed");
    told("unknown", "s3", "get_object", "/lake/new", "refused");
    told("unknown", "http", "metrics", "/metrics", "refused");
    told("unknown", "http", "shard_count", "/lake/x.shards", "refused");
    assert!(!text.contains("\"token one.1\""), "who reads copies was refused nothing that it has asked for: {text}");
    assert!(
        !text.contains("heartbeat") && !text.contains("\"status\""),
        "neither what a cluster says to itself nor reading: {text}"
    );
}

#[test]
fn commands_of_the_same_user_need_no_token_from_any_folder() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    forebay(&up.address(), &["status"]).ok();
    let secret = home.path().join("forebay-data/owner.secret");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&secret), mode(secret.parent().unwrap())), (0o600, 0o700));
    // Also after a kill and a start, by a file that was there.
    let before = fs::read(&secret).unwrap();
    up.kill();
    let up = Role::up(home.path());
    forebay(&up.address(), &["status"]).ok();
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn processes_of_a_cluster_know_each_other_by_its_secret_and_by_nothing_else() {
    let (home, away) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = "a secret of the cluster's processes";
    for folder in [&home, &away] {
        secret_file(&folder.path().join("cluster"), secret);
        secret_file(&folder.path().join("other"), "a secret of another cluster");
    }
    let listen = ["--coordinator-listen", "127.0.0.1:0", "--http", "off"];
    let coordinator = Role::start(home.path(), &[&["coordinator", "--cluster-secret-file", "cluster"], &listen[..]].concat());
    let worker = |file: &str| {
        let place = ["worker", "--worker-listen", "127.0.0.1:0", "--http", "off", "--dram", "256MiB", "--disk", "512MiB"];
        [&place[..], &["--coordinator", &coordinator.address(), "--cluster-secret-file", file]].concat().join(" ")
    };
    let arguments = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let good = arguments(&worker("cluster"));
    let _worker = Role::start(away.path(), &good.iter().map(String::as_str).collect::<Vec<_>>());
    let bad = arguments(&worker("other"));
    forebay_in(home.path(), &bad.iter().map(String::as_str).collect::<Vec<_>>()).fails(1, &["does not know the secret"]);
    let status = forebay(&coordinator.address(), &["status", "--json"]).ok().json();
    assert_eq!(status[0]["workers"].as_array().unwrap().len(), 1);
    // The cluster's secret is no administrator's.
    forebay_as(secret, &coordinator.address(), &["status"]).fails(1, &["none of this cluster"]);
}

/// A file that only its user can read.
fn secret_file(path: &Path, secret: &str) {
    fs::write(path, secret).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
