//! `forebay shard` with datasets of a mount: made, asked, replaced, and served on while a worker is killed.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Bucket, Ran, Role, forebay, forebay_in, forebay_with, free_port, http, lake};

const ROWS: i64 = 1200;

fn row(number: i64) -> Value {
    let season = ["spring", "summer", "autumn"][number as usize % 3];
    json!({"id": number - 300, "clerk": format!("clerk{:02}", number % 13), "note": format!("line {number} of {season}")})
}

fn lines(numbers: std::ops::Range<i64>) -> Vec<u8> {
    numbers.map(|number| format!("{}\n", row(number))).collect::<String>().into_bytes()
}

fn ask(home: &Path, address: &str, arguments: &[&str]) -> Ran {
    forebay_in(home, &[&["--coordinator", address, "shard"], arguments].concat())
}

/// Asks the dataset and a shard of the same records in a folder, which have to say the same.
fn same(home: &Path, address: &str, command: &str, arguments: &[&str]) {
    let served = ask(home, address, &[&[command, "/lake/rows.shards"], arguments].concat()).ok().text();
    let here = ask(home, address, &[&[command, "rows.shard"], arguments].concat()).ok().text();
    assert_eq!(served, here, "{command} {arguments:?}");
    assert!(!served.is_empty(), "{command} {arguments:?}");
}

fn all_the_same(home: &Path, address: &str) {
    same(home, address, "get", &["5", "-300", "899", "--json"]);
    same(home, address, "get", &["7", "--columns", "note"]);
    same(home, address, "count", &[]);
    same(home, address, "count", &["clerk = clerk07 and note *= spring"]);
    same(home, address, "count", &["(clerk = clerk07 or note $= autumn) and not note i*= \"SPRING\""]);
    same(home, address, "search", &["clerk = clerk07", "--json"]);
    same(home, address, "search", &["clerk in (clerk07, clerk08, none) and not note suffix spring", "--limit", "7"]);
    same(home, address, "search", &["note ~ \"line [0-9]*9 of (spring|autumn)\"", "--limit", "9", "--columns", "*"]);
    same(home, address, "search", &["clerk >= clerk11", "--after", "-4", "--limit", "5"]);
    same(home, address, "scan", &["--json"]);
    same(home, address, "scan", &["--after", "-4", "--limit", "5", "--columns", "*"]);
}

fn orders_hold(home: &Path, address: &str) {
    let order = |arguments: &[&str]| ask(home, address, arguments);
    let pinned = order(&["pin", "/lake/rows.shards", "--size", "0.8", "--json"]).ok().json().remove(0);
    assert_eq!((&pinned["orders"], &pinned["here"]), (&json!({"pin": {"size": 0.8}}), &pinned["replicas"]));
    let frozen = order(&["freeze", "/lake/rows.shards"]).ok().text();
    assert!(frozen.contains("pinned at 0.800") && frozen.contains("frozen"), "{frozen}");
    let status = order(&["status", "/lake/rows.shards"]).ok().text();
    assert!(status.contains("pinned at 0.800") && status.contains("frozen"), "{status}");
    let of_replica = order(&["status", "/lake/rows.shards", "--json"]).ok().json().remove(0)["replicas"][0].clone();
    assert_eq!((&of_replica["least"], &of_replica["is_frozen"]), (&json!(0.8), &json!(true)));
    order(&["unpin", "/lake/rows.shards"]).ok();
    let free = order(&["thaw", "/lake/rows.shards"]).ok().text();
    assert!(free.contains("follow their load"), "{free}");
    let two = order(&["ack", "/lake/rows.shards", "two-workers"]).ok().text();
    assert!(two.contains("the disks of two workers"), "{two}");
    assert_eq!(order(&["status", "/lake/rows.shards", "--json"]).ok().json()[0]["ack"], "two-workers");
    order(&["ack", "/lake/rows.shards", "one-worker"]).fails(2, &["two-workers"]);
    let nothing = order(&["forgo", "/lake/rows.shards", "--json"]).ok().json().remove(0);
    assert_eq!(nothing["given_up"], json!([]));
    let storage = order(&["ack", "/lake/rows.shards", "storage"]).ok().text();
    assert!(storage.contains("acknowledged when shared storage has them") && !storage.contains("load"), "{storage}");
    order(&["pin", "/lake/none.shards"]).fails(1, &["there is no dataset of shards"]);
}

#[test]
fn a_dataset_answers_as_a_shard_of_a_folder_does() {
    let bucket = Bucket::s3();
    let (home, up, address) = lake(&bucket);
    bucket.put("rows/a.jsonl", &lines(0..700));
    bucket.put("rows/b.jsonl", &lines(700..ROWS));
    // What engines leave beside what they write is no record.
    bucket.put("rows/_SUCCESS", b"done");
    std::fs::write(home.path().join("rows.jsonl"), lines(0..ROWS)).unwrap();
    ask(home.path(), &address, &["build", "rows.jsonl", "--key", "id", "--out", "rows.shard"]).ok();
    let create = ["create", "/lake/rows.shards", "--from", "/lake/rows", "--key", "id", "--shards", "3"];
    let made = ask(home.path(), &address, &[&create[..], &["--json"]].concat()).ok().json().remove(0);
    assert_eq!((&made["records"], &made["shards"], &made["manifest"]), (&json!(ROWS), &json!(3), &json!(1)));
    all_the_same(home.path(), &address);
    ask(home.path(), &address, &["count", "/lake/rows.shards", "clerk ~ '['"]).fails(1, &["forebay: the expression \"[\""]);
    let operations =
        b"{\"get\": 5}\n{\"count\": null}\n{\"search\": {\"attr\": \"clerk\", \"eq\": \"clerk07\"}, \"limit\": 2}\n{}\n";
    let batch =
        |shard| forebay_with(home.path(), &["--coordinator", &address, "shard", "batch", shard], |_| {}, operations).ok().lines();
    let (served, here) = (batch("/lake/rows.shards"), batch("rows.shard"));
    assert_eq!((&served[..3], served.len()), (&here[..3], 4));
    assert!(served[3].contains("invalid"), "{}", served[3]);
    let status = ask(home.path(), &address, &["status", "/lake/rows.shards", "--json"]).ok().json();
    assert_eq!(status.iter().map(|shard| shard["records"].as_i64().unwrap()).sum::<i64>(), ROWS);
    assert!(status.iter().all(|shard| shard["replicas"][0]["bytes"].as_u64().unwrap() > 0), "{status:?}");
    orders_hold(home.path(), &address);
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let secret = std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", secret.trim());
    let path = "/api/v1/shards/count?dataset=/lake/rows.shards&condition=clerk%20%3D%20clerk07";
    let printed = ask(home.path(), &address, &["count", "/lake/rows.shards", "clerk = clerk07", "--json"]).ok().json();
    assert_eq!(http::body(&http::ask(&host, path, &bearer)), printed[0], "over HTTP");
    let resharded = http::body(&http::post(&host, "/api/v1/shards/reshard?dataset=/lake/rows.shards&to=2", &bearer, ""));
    assert_eq!((&resharded["state"], &resharded["resharded"]["shards"]), (&json!("done"), &json!(2)), "{resharded}");
    all_the_same(home.path(), &address);
    // SQL knows it by what is in its folder, too.
    ask(home.path(), &address, &["create", "/lake/plain", "--from", "/lake/rows", "--key", "id", "--columns", "clerk"]).ok();
    let count = ["--coordinator", &address, "sql", "--csv", "select count(*) as n, count(clerk) as c from '/lake/plain'"];
    assert_eq!(forebay_with(home.path(), &count, |_| {}, b"").ok().text(), format!("n,c\n{ROWS},{ROWS}\n"));
    ask(home.path(), &address, &create).fails(1, &["/lake/rows.shards is there already", "--replace"]);
    ask(home.path(), &address, &[&create[..], &["--replace"]].concat()).ok();
    all_the_same(home.path(), &address);
}

#[test]
fn a_dataset_is_changed_as_a_shard_of_a_folder_is_and_a_kill_loses_nothing() {
    let bucket = Bucket::s3();
    let (home, up, address) = lake(&bucket);
    bucket.put("rows/a.jsonl", &lines(0..ROWS));
    std::fs::write(home.path().join("rows.jsonl"), lines(0..ROWS)).unwrap();
    ask(home.path(), &address, &["build", "rows.jsonl", "--key", "id", "--out", "rows.shard"]).ok();
    ask(home.path(), &address, &["create", "/lake/rows.shards", "--from", "/lake/rows", "--key", "id", "--shards", "3"]).ok();
    let many: String =
        (0..2000).map(|id| format!("{}\n", json!({"id": id, "clerk": "clerk07", "note": format!("new {id}")}))).collect();
    for shard in ["/lake/rows.shards", "rows.shard"] {
        let given = |arguments: &[&str], input: &str| {
            forebay_with(home.path(), &[&["--coordinator", &address, "shard"], arguments].concat(), |_| {}, input.as_bytes())
                .ok();
        };
        given(&["put", shard], &many);
        given(&["put", shard, r#"{"id": 5, "clerk": "me"}"#], "");
        given(&["delete", shard, "6", "1999", "123456"], "");
        given(&["batch", shard], "{\"put\": {\"id\": 7, \"note\": \"by batch\"}}\n{\"delete\": -300}\n");
        given(&["put", shard, r#"{"id": -300, "note": "again"}"#], "");
    }
    all_the_same(home.path(), &address);
    let put = |more: &[&str]| ask(home.path(), &address, &[&["put", "/lake/rows.shards", r#"{"id": 5}"#], more].concat());
    put(&["--if-absent"]).fails(1, &["/lake/rows.shards", "there is a record already"]);
    put(&["--if-version", "0"]).fails(1, &["read it again"]);
    ask(home.path(), &address, &["put", "rows.shard", r#"{"id": 5}"#, "--if-absent"]).fails(1, &["datasets"]);
    up.kill();
    let up = Role::up(home.path());
    all_the_same(home.path(), &up.address());
    ask(home.path(), &up.address(), &["merge", "/lake/rows.shards"]).ok();
    ask(home.path(), &up.address(), &["merge", "rows.shard"]).ok();
    all_the_same(home.path(), &up.address());
    has_other_shards(home.path(), &up.address());
}

fn has_other_shards(home: &Path, address: &str) {
    let reshard = |arguments: &[&str]| ask(home, address, &[&["reshard", "/lake/rows.shards"], arguments].concat());
    let made = reshard(&["--shards", "5", "--json"]).ok().json().remove(0);
    assert_eq!((&made["before"], &made["shards"]), (&json!(3), &json!(5)));
    all_the_same(home, address);
    let one = reshard(&["--size", "1GiB"]).ok().text();
    assert!(one.contains("1 shards in place of 5"), "{one}");
    all_the_same(home, address);
    let again = reshard(&["--shards", "1"]).ok().text();
    assert!(again.contains("it has 1 shards already"), "{again}");
    reshard(&["--shards", "0"]).fails(1, &["1 to 4096 shards, not 0"]);
    reshard(&[]).fails(2, &["--shards", "--size"]);
    reshard(&["--shards", "2", "--size", "1GiB"]).fails(2, &["--size"]);
}

#[test]
fn a_dataset_by_ranges_of_keys_answers_so_too_and_its_ranges_are_cut_and_joined() {
    let bucket = Bucket::s3();
    let (home, up, address) = lake(&bucket);
    bucket.put("rows/a.jsonl", &lines(0..ROWS));
    std::fs::write(home.path().join("rows.jsonl"), lines(0..ROWS)).unwrap();
    let run = |arguments: &[&str]| ask(home.path(), &address, arguments);
    run(&["build", "rows.jsonl", "--key", "id", "--out", "rows.shard"]).ok();
    let create = ["create", "/lake/rows.shards", "--from", "/lake/rows", "--key", "id", "--shards", "4", "--by"];
    run(&[&create[..], &["order"]].concat()).fails(2, &["hash", "range"]);
    let made = run(&[&create[..], &["range", "--json"]].concat()).ok().json().remove(0);
    assert_eq!((&made["records"], &made["shards"]), (&json!(ROWS), &json!(4)));
    let status = || run(&["status", "/lake/rows.shards", "--json"]).ok().json();
    let shards = status();
    for (shard, next) in shards.iter().zip(&shards[1..]) {
        assert_eq!(shard["range"]["below"], next["range"]["from"], "one begins where the other ends");
        assert!((150..450).contains(&shard["records"].as_i64().unwrap()), "{shard}");
    }
    assert_eq!((&shards[0]["range"]["from"], &shards[3]["range"]["below"]), (&Value::Null, &Value::Null));
    let words = run(&["status", "/lake/rows.shards"]).ok().text();
    assert!(words.contains(&format!("shard 0: keys below {}\n", shards[0]["range"]["below"])), "{words}");
    all_the_same(home.path(), &address);
    let split = run(&["reshard", "/lake/rows.shards", "--split", "1"]).ok().text();
    assert!(split.contains("5 shards in place of 4"), "{split}");
    assert_eq!(status()[0]["range"], shards[0]["range"], "others stay as they are");
    all_the_same(home.path(), &address);
    run(&["reshard", "/lake/rows.shards", "--merge", "4"]).fails(1, &["there is no shard 5"]);
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let secret = std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", secret.trim());
    let merged = http::body(&http::post(&host, "/api/v1/shards/reshard?dataset=/lake/rows.shards&to=merge:0", &bearer, ""));
    assert_eq!((&merged["state"], &merged["resharded"]["shards"]), (&json!("done"), &json!(4)), "{merged}");
    let put = json!({"id": 4000, "clerk": "clerk07", "note": "line 0 of spring"}).to_string();
    run(&["put", "/lake/rows.shards", &put]).ok();
    run(&["put", "rows.shard", &put]).ok();
    all_the_same(home.path(), &address);
}

/// Whether the process keeps in mind that it refreshes a dataset.
fn listed(home: &Path, dataset: &str) -> bool {
    std::fs::read_to_string(home.join("forebay-data/refreshed")).is_ok_and(|list| list.lines().any(|line| line == dataset))
}

#[test]
fn a_dataset_follows_the_objects_that_it_was_made_from() {
    let home = tempfile::tempdir().unwrap();
    let (up, bucket) = (Role::up(home.path()), Bucket::s3());
    let address = up.address();
    bucket.mount_with(&address, "lake", &["--validate", "always"]);
    let run = |arguments: &[&str]| ask(home.path(), &address, arguments);
    bucket.put("rows/a.jsonl", &lines(0..700));
    std::fs::write(home.path().join("rows.jsonl"), lines(0..10)).unwrap();
    let create = ["create", "/lake/rows.shards", "--key", "id", "--shards", "2", "--refresh", "1h", "--from"];
    run(&[&create[..], &["rows.jsonl"]].concat()).fails(1, &["files of this machine"]);
    bucket.put("rows/notes.txt", b"no records");
    bucket.put("rows/_half.jsonl", &lines(ROWS..ROWS + 5));
    run(&[&create[..], &["/lake/rows/*.jsonl"]].concat()).ok();
    let status = run(&["status", "/lake/rows.shards"]).ok().text();
    assert!(status.contains("follows /lake/rows/*.jsonl (1 objects): looked at every 1h"), "{status}");
    let count = || run(&["count", "/lake/rows.shards", "--json"]).ok().json().remove(0)["count"].as_i64();
    bucket.put("rows/b.jsonl", &lines(700..ROWS));
    let done = run(&["refresh", "/lake/rows.shards", "--json"]).ok().json().remove(0);
    assert_eq!((&done["objects"], &done["added"], &done["errors"]), (&json!(2), &json!(1), &json!([])));
    assert_eq!(count(), Some(ROWS));
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let secret = std::fs::read_to_string(home.path().join("forebay-data/owner.secret")).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", secret.trim());
    let over_http = http::body(&http::post(&host, "/api/v1/shards/refresh?dataset=/lake/rows.shards", &bearer, ""));
    assert_eq!((&over_http["state"], &over_http["refreshed"]["objects"]), (&json!("done"), &json!(2)), "{over_http}");
    // From now on the worker does it.
    run(&["refresh", "/lake/rows.shards", "--every", "1s"]).ok();
    bucket.put("rows/a.jsonl", &lines(0..300));
    let began = std::time::Instant::now();
    while count() != Some(ROWS - 400) {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", count());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(listed(home.path(), "/lake/rows.shards"), "what is followed is known over a restart");
    let off = run(&["refresh", "/lake/rows.shards", "--every", "off"]).ok().text();
    assert!(off.contains("only when"), "{off}");
    let status = run(&["status", "/lake/rows.shards", "--json"]).ok().json().pop().unwrap();
    assert_eq!((&status["every_ms"], &status["objects"]), (&json!(0), &json!(2)));
    assert!(status["refresh"]["done_ms"].as_i64().unwrap() > 0, "{status}");
}

#[test]
fn names_of_folders_are_columns_of_a_dataset() {
    let home = tempfile::tempdir().unwrap();
    let (up, bucket) = (Role::up(home.path()), Bucket::s3());
    let address = up.address();
    bucket.mount_with(&address, "lake", &["--validate", "always"]);
    let run = |arguments: &[&str]| ask(home.path(), &address, arguments);
    bucket.put("h/day=1/kind=a b/x.csv", b"id,n\n1,10\n2,20\n");
    bucket.put("h/day=__HIVE_DEFAULT_PARTITION__/kind=c/x.csv", b"id,n\n3,30\n");
    let create = ["create", "/lake/h.shards", "--key", "id", "--refresh", "1h", "--from", "/lake/h/"];
    run(&create).ok();
    let get = |key: &str| run(&["get", "/lake/h.shards", key, "--json"]).ok().json().remove(0);
    assert_eq!(get("2"), json!({"id": 2, "n": 20, "day": 1, "kind": "a b"}));
    assert_eq!(get("3")["day"], json!(null));
    bucket.put("h/day=4/kind=d/x.csv", b"id,n\n4,40\n");
    let done = run(&["refresh", "/lake/h.shards", "--json"]).ok().json().remove(0);
    assert_eq!((&done["added"], &done["errors"]), (&json!(1), &json!([])), "{done}");
    assert_eq!(get("4"), json!({"id": 4, "n": 40, "day": 4, "kind": "d"}));
    let some = ["create", "/lake/some.shards", "--key", "id", "--columns", "id,day", "--from", "/lake/h/"];
    run(&some).ok();
    let got = run(&["get", "/lake/some.shards", "1", "--json"]).ok().json().remove(0);
    assert_eq!(got, json!({"id": 1, "day": 1}));
}

#[test]
fn what_is_no_dataset_says_what_to_do() {
    let bucket = Bucket::folder();
    let (home, _up, address) = lake(&bucket);
    let run = |arguments: &[&str]| ask(home.path(), &address, arguments);
    run(&["get", "/lake/none.shards", "1"]).fails(1, &["/lake/none.shards", "forebay shard create"]);
    run(&["status", "/nowhere/x"]).fails(1, &["nowhere", "mount add"]);
    run(&["get", "none.shard", "1"]).fails(1, &["none.shard", "no such shard"]);
    run(&["create", "/lake/x", "--from", "/lake/none", "--key", "id"]).fails(1, &["/lake/none"]);
    run(&["create", "/lake/x", "--from", "none.jsonl", "--key", "id"]).fails(1, &["none.jsonl", "no such file"]);
    bucket.put("rows.jsonl", &lines(0..10));
    run(&["create", "/lake/x", "--from", "/lake/rows.jsonl", "--key", "nothing"])
        .fails(1, &["forebay: /lake/rows.jsonl: ", "nothing", "id"]);
    run(&["create", "/lake/x", "--from", "/lake/rows.jsonl", "--key", "id", "--replicas", "0"]).fails(2, &["--replicas"]);
    run(&["create", "/lake/x", "--from", "/lake/rows.jsonl", "--key", "id", "--shards", "5000"]).fails(1, &["4096"]);
    let left = std::fs::read_dir(match &bucket {
        Bucket::Folder(folder) => folder.path().join("x"),
        Bucket::S3(_) => unreachable!("it is a folder"),
    });
    assert!(left.is_err(), "nothing is left of a dataset that was not made");
}

#[test]
fn a_killed_worker_is_passed_over() {
    let home = tempfile::tempdir().unwrap();
    let (address, bucket) = (free_port(), Bucket::s3());
    let flags = ["--lease", "2s", "--http", "127.0.0.1:0", "--data-dir", "coordinator"];
    let _coordinator = Role::start(home.path(), &[&["coordinator", "--coordinator-listen", &address], &flags[..]].concat());
    let mut workers: Vec<Role> = (0..3).map(|number| Role::worker(home.path(), &format!("w{number}"), &address)).collect();
    bucket.mount_with(&address, "lake", &[]);
    bucket.put("rows/all.jsonl", &lines(0..ROWS));
    std::fs::write(home.path().join("rows.jsonl"), lines(0..ROWS)).unwrap();
    ask(home.path(), &address, &["build", "rows.jsonl", "--key", "id", "--out", "rows.shard"]).ok();
    let create = ["create", "/lake/rows.shards", "--from", "/lake/rows", "--key", "id", "--shards", "4", "--replicas", "0.5"];
    ask(home.path(), &address, &create).ok();
    all_the_same(home.path(), &address);
    for _ in 0..2 {
        workers.remove(0).kill();
        all_the_same(home.path(), &address);
    }
    drop(forebay(&address, &["status"]).ok());
}
