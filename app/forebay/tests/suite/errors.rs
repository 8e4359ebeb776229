//! Bad input gets a clear error, the right exit code, and loses nothing.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Bucket, Role, csv, forebay, forebay_as, forebay_in, forebay_with, free_port, lake, lake_of, until};

#[test]
fn a_mount_that_does_not_answer() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let nobody = format!("http://{}", free_port());
    let started = Instant::now();
    forebay(&up.address(), &["mount", "add", "away", "s3://data", "--endpoint", &nobody]).fails(1, &["away", &nobody]);
    assert!(started.elapsed() < Duration::from_secs(60));
    // Somebody who accepts and says nothing is no better.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    forebay(&up.address(), &["mount", "add", "silent", "s3://data", "--endpoint", &endpoint]).fails(1, &["silent"]);
    assert_eq!(forebay(&up.address(), &["mount", "ls", "--json"]).ok().lines().len(), 0);
}

#[test]
fn the_address_of_a_worker_is_said_to_be_no_coordinator_s() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    // Run where the data folder is, so that there is something to show.
    forebay_in(home.path(), &["status", "--coordinator", &up.place("worker")])
        .fails(1, &["this is a worker", "the coordinator's address"]);
}

#[test]
fn a_gateway_that_nobody_has_a_key_for_is_said_to_be_off() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(Role::up_with(home.path(), &["--s3", "127.0.0.1:0"]).place("s3"), "off");
}

#[test]
fn a_data_folder_that_is_a_file_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("forebay-data"), "").unwrap();
    forebay_in(home.path(), &["up"]).fails(1, &["data folder ./forebay-data is a file", "--data-dir"]);
    // A command that needs none is not kept from what it does.
    forebay_in(home.path(), &["status", "--coordinator", &free_port()]).fails(1, &["no coordinator answers"]);
}

#[test]
fn wrong_credentials() {
    let home = tempfile::tempdir().unwrap();
    let bucket = Bucket::s3();
    let endpoint = bucket.server().endpoint();
    let mut names = Vec::new();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let profile = "[wrong]\naws_access_key_id = testkey\naws_secret_access_key = not-the-secret\n";
    std::fs::write(home.path().join(".aws/credentials"), profile).unwrap();
    let up = Role::up(home.path());
    for flags in [["--profile", "wrong"], ["--profile", "missing"]] {
        let ran = forebay(&up.address(), &[&["mount", "add", "lake", "s3://data", "--endpoint", &endpoint], &flags[..]].concat());
        names.push(ran.fails(1, &["lake", "credentials"]).stderr);
    }
    assert!(names.iter().all(|message| !message.contains("not-the-secret")), "{names:?}");
    assert!(!up.log().contains("not-the-secret"));
}

#[test]
fn a_bucket_or_a_folder_that_is_not_there() {
    let (_home, up, bucket) = lake_of(&[]);
    let endpoint = bucket.server().endpoint();
    let at = up.address();
    forebay(&at, &["mount", "add", "gone", "s3://nosuchbucket", "--endpoint", &endpoint]).fails(1, &["nosuchbucket"]);
    forebay(&at, &["mount", "add", "gone", "file:///no/such/folder"]).fails(1, &["/no/such/folder"]);
    forebay(&at, &["mount", "add", "gone", "./no/such/folder"]).fails(1, &["no/such/folder"]);
    forebay(&at, &["mount", "add", "gone", "ftp://host/x"]).fails(1, &["ftp"]);
    forebay(&at, &["mount", "add", "lake", "s3://data", "--endpoint", &endpoint]).fails(1, &["lake"]);
    forebay(&at, &["mount", "add", "tmp", "s3://data"]).fails(2, &["tmp", "reserved"]);
    forebay(&at, &["mount", "add", "UPPER", "s3://data"]).fails(2, &["UPPER", "lower-case"]);
    forebay(&at, &["mount", "rm", "gone"]).fails(1, &["gone"]);
    forebay(&at, &["mount", "set", "gone", "--read-only"]).fails(1, &["gone", "mount ls"]);
    let token = forebay(&at, &["token", "add", "etl", "--read", "--mount", "lake", "--mount", "gone", "--mount", "tmp"]).ok();
    assert!(token.stderr.contains("there is no mount gone yet") && !token.stderr.contains("no mount tmp"), "{}", token.stderr);
    assert!(!token.stderr.contains("no mount lake") && token.text().lines().count() == 1, "{}", token.stderr);
}

#[test]
fn one_of_several_paths_that_is_missing_keeps_nobody_from_the_others() {
    let (_home, up, bucket) = lake_of(&[]);
    let at = up.address();
    for key in ["a.csv", "c.csv", "folder/x.csv"] {
        bucket.put(key, &csv(100));
    }
    let of = |command: &[&str]| forebay(&at, &[command, &["/lake/a.csv", "/lake/b.csv", "/lake/c.csv"]].concat());
    let stat = of(&["stat", "--json"]).fails(1, &["/lake/b.csv"]);
    let shown: Vec<_> = stat.json().iter().map(|line| line["path"].clone()).collect();
    assert_eq!(shown, ["/lake/a.csv", "/lake/c.csv"]);
    assert_eq!(of(&["load", "--json"]).fails(1, &["/lake/b.csv"]).json().len(), 2);
    forebay(&at, &["rm", "/lake/none.csv", "/lake/folder", "/lake/a.csv"])
        .fails(1, &["/lake/none.csv", "/lake/folder/ is a folder of 1 objects"]);
    forebay(&at, &["stat", "/lake/a.csv"]).fails(1, &["/lake/a.csv"]);
    forebay(&at, &["stat", "/lake/folder/x.csv"]).ok();
}

#[test]
fn a_load_of_more_than_there_is_room_for_does_not_say_that_all_is_there() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_of(home.path(), &["--dram", "16MiB", "--disk", "0B"]);
    let bucket = Bucket::s3();
    bucket.mount(&up);
    for name in ["a", "b", "c", "d"] {
        bucket.put(&format!("large/{name}"), &vec![7; 8 << 20]);
    }
    let load = |path: &str| forebay(&up.address(), &["load", path, "--json"]);
    assert_eq!(load("/lake/large/a").ok().json()[0]["gone_bytes"], 0);
    let all = load("/lake/large/");
    match all.code {
        0 => assert!(all.json()[0]["gone_bytes"].as_u64().unwrap() >= 16 << 20, "{}", all.text()),
        // Too much of it came at once.
        _ => assert!(all.stderr.contains("have no room"), "{}", all.stderr),
    }
}

#[test]
fn who_administers_one_mount_lifts_its_pins_and_they_are_let_go() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_of(home.path(), &["--dram", "16MiB", "--disk", "0B"]);
    let bucket = Bucket::s3();
    bucket.mount(&up);
    bucket.put("a.bin", &vec![7; 9 << 20]);
    bucket.put("b.bin", &vec![7; 9 << 20]);
    let at = up.address();
    let added = forebay(&at, &["token", "add", "boss", "--admin", "--mount", "lake", "--json"]).ok().json();
    let token = added[0]["token"].as_str().unwrap().to_string();
    let asked = |arguments: &[&str]| forebay_as(token.as_str(), &at, arguments).ok();
    asked(&["pin", "/lake/a.bin"]);
    asked(&["pin", "--remove", "/lake/a.bin"]);
    // The worker hears of it within a second.
    until("room of what was pinned", || (forebay(&at, &["load", "/lake/b.bin"]).code == 0).then_some(()));
}

#[test]
fn who_administers_one_mount_frees_its_data_and_no_other() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let bucket = Bucket::s3();
    bucket.mount(&up);
    let other = home.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let at = up.address();
    forebay(&at, &["mount", "add", "other", &format!("file://{}", other.display())]).ok();
    bucket.put("a.bin", &vec![7; 1 << 20]);
    std::fs::write(other.join("b.bin"), vec![7; 1 << 20]).unwrap();
    forebay(&at, &["load", "/lake/a.bin"]).ok();
    forebay(&at, &["pin", "/other/b.bin"]).ok();
    let token = forebay(&at, &["token", "add", "boss", "--admin", "--mount", "lake"]).ok().text().trim().to_string();
    let asked = |arguments: &[&str]| forebay_as(token.as_str(), &at, arguments);
    let cached = |path: &str| forebay(&at, &["du", path, "--json"]).ok().json()[0]["cached_bytes"].as_u64().unwrap();
    assert!(cached("/lake/a.bin") >= 1 << 20);
    asked(&["free", "/lake/a.bin"]).ok();
    assert_eq!(cached("/lake/a.bin"), 0);
    asked(&["free", "/other/b.bin"]).fails(1, &["other"]);
    asked(&["pin", "--remove", "/other/b.bin"]).fails(1, &["other"]);
    assert!(cached("/other/b.bin") >= 1 << 20);
    let writer = forebay(&at, &["token", "add", "writer", "--write"]).ok().text().trim().to_string();
    forebay_as(writer.as_str(), &at, &["free", "/other/b.bin"]).fails(1, &["may not administer mount other"]);
}

#[test]
fn a_pin_of_what_does_not_fit_is_none() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_of(home.path(), &["--dram", "16MiB", "--disk", "0B"]);
    let bucket = Bucket::s3();
    bucket.mount(&up);
    bucket.put("large.bin", &vec![7; 48 << 20]);
    forebay(&up.address(), &["pin", "/lake/large.bin"]).fails(1, &["/lake/large.bin is not pinned", "--no-load"]);
    assert_eq!(forebay(&up.address(), &["pin", "--json"]).ok().lines().len(), 0);
    // What had come of it makes room for others.
    bucket.put("small.bin", &vec![7; 8 << 20]);
    forebay(&up.address(), &["load", "/lake/small.bin"]).ok();
    forebay(&up.address(), &["pin", "/lake/small.bin"]).ok();
    forebay(&up.address(), &["pin", "--remove", "/lake/small.bin"]).ok();
    bucket.put("other.bin", &vec![7; 9 << 20]);
    forebay(&up.address(), &["load", "/lake/other.bin"]).ok();
    forebay(&up.address(), &["pin", "--no-load", "/lake/large.bin"]).ok();
    forebay(&up.address(), &["pin", "/lake/large.bin"]).fails(1, &["/lake/large.bin stays pinned"]);
    assert_eq!(forebay(&up.address(), &["pin", "--json"]).ok().lines().len(), 1);
}

#[test]
fn a_path_outside_every_mount() {
    let (_home, up, _bucket) = lake_of(&[]);
    let at = up.address();
    for command in [["ls"], ["cat"], ["stat"], ["rm"], ["load"], ["pin"], ["free"], ["du"]] {
        forebay(&at, &[&command[..], &["/nosuch/x"]].concat()).fails(1, &["nosuch"]);
    }
    forebay(&at, &["sql", "select * from '/nosuch/x.parquet'"]).fails(1, &["/nosuch/x.parquet", "mount add"]);
    for command in [["ls"], ["cat"], ["stat"], ["rm"]] {
        forebay(&at, &[&command[..], &["/tmp/x"]].concat()).fails(2, &["/tmp/x", "temporary data", "forebay node"]);
    }
    forebay(&at, &["cat", "/lake/missing"]).fails(1, &["/lake/missing"]);
    forebay(&at, &["sql", "select * from '/lake/missing.parquet'"]).fails(1, &["/lake/missing.parquet"]);
}

#[test]
fn dots_in_a_key_are_not_resolved() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let folder = Bucket::folder();
    folder.mount(&up);
    let at = up.address();
    std::fs::write(home.path().join("secret"), "outside").unwrap();
    let out = format!("/lake/../{}/secret", home.path().file_name().unwrap().to_str().unwrap());
    let ran = forebay(&at, &["cat", &out]).fails(1, &[".."]);
    assert!(ran.stdout.is_empty());
    forebay(&at, &["cp", home.path().join("secret").to_str().unwrap(), "/lake/../x"]).fails(1, &[".."]);
    forebay(&at, &["sql", "select * from '/lake/../x.csv'"]).fails(1, &[".."]);
}

#[test]
fn a_truncated_parquet_file() {
    let (_home, up, bucket) = lake_of(&[]);
    let at = up.address();
    forebay(&at, &["sql", "copy (select * from generate_series(1, 100000) as t(n)) to '/lake/whole.parquet'"]).ok();
    let whole = forebay(&at, &["cat", "/lake/whole.parquet"]).ok().stdout;
    bucket.put("cut.parquet", &whole[..whole.len() / 2]);
    bucket.put("tiny.parquet", b"PA");
    forebay(&at, &["sql", "select count(n) from '/lake/cut.parquet'"]).fails(1, &["cut.parquet"]);
    forebay(&at, &["sql", "select * from '/lake/tiny.parquet'"]).fails(1, &["tiny.parquet"]);
    assert_eq!(forebay(&at, &["sql", "--csv", "select count(n) as n from '/lake/whole.parquet'"]).ok().text(), "n\n100000\n");
}

#[test]
fn a_file_overwritten_behind_a_plan() {
    let (_home, up, bucket) = lake_of(&[]);
    let at = up.address();
    forebay(&at, &["mount", "set", "lake", "--validate", "ttl:1h"]).ok();
    bucket.put("x.csv", &csv(1000));
    let count = || forebay(&at, &["sql", "--csv", "select count(*) as n, max(n) as last from '/lake/x.csv'"]);
    assert_eq!(count().ok().text(), "n,last\n1000,999\n");
    // The plan still believes in the old version, whose bytes are nowhere any more.
    bucket.put("x.csv", &csv(2000));
    forebay(&at, &["free", "/lake/x.csv"]).ok();
    let ran = count();
    // Planned once more, or said to have changed; never a mix of both.
    match ran.code {
        0 => assert_eq!(ran.text(), "n,last\n2000,1999\n"),
        _ => drop(ran.fails(1, &["x.csv"])),
    }
    assert_eq!(count().ok().text(), "n,last\n2000,1999\n");
}

#[test]
fn keys_with_spaces_percent_signs_and_letters_of_all_kinds() {
    for bucket in [Bucket::s3(), Bucket::folder()] {
        let (home, _up, at) = lake(&bucket);
        let data = csv(10);
        for key in ["with space.csv", "per%20cent%.csv", "déjà vu/日本.csv", "plus+and&and=.csv", "it's.csv"] {
            let path = format!("/lake/{key}");
            bucket.put(key, &data);
            assert!(forebay(&at, &["cat", &path]).ok().stdout == data, "{key}");
            assert_eq!(forebay(&at, &["ls", "--json", &path]).ok().json()[0]["path"], json!(path));
            let sql = format!("select count(*) as n from '{}'", path.replace('\'', "''"));
            assert_eq!(forebay(&at, &["sql", "--csv", &sql]).ok().text(), "n\n10\n", "{key}");
            forebay_with(home.path(), &["cp", "-", &format!("{path}.copy"), "--coordinator", &at], |_| (), &data).ok();
            assert!(forebay(&at, &["cat", &format!("{path}.copy")]).ok().stdout == data, "{key}");
            forebay(&at, &["rm", &path]).ok();
            forebay(&at, &["cat", &path]).fails(1, &[&path]);
        }
    }
}

#[test]
fn an_empty_file() {
    let (_home, up, bucket) = lake_of(&[]);
    let at = up.address();
    bucket.put("empty.csv", b"");
    bucket.put("empty.parquet", b"");
    assert_eq!(forebay(&at, &["cat", "/lake/empty.csv"]).ok().stdout, b"");
    assert_eq!(forebay(&at, &["stat", "/lake/empty.csv", "--json"]).ok().json()[0]["bytes"], 0);
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    forebay(&at, &["cp", "/lake/empty.csv", copy.to_str().unwrap()]).ok();
    assert_eq!(std::fs::read(copy).unwrap(), b"");
    forebay(&at, &["load", "/lake/"]).ok();
    forebay(&at, &["sql", "select * from '/lake/empty.parquet'"]).fails(1, &["empty.parquet"]);
}

#[test]
fn writes_to_a_read_only_mount() {
    let (_home, up, bucket) = lake_of(&[]);
    let at = up.address();
    bucket.put("x.csv", b"n\n1\n");
    forebay(&at, &["mount", "set", "lake", "--read-only"]).ok();
    forebay(&at, &["rm", "/lake/x.csv"]).fails(1, &["read-only"]);
    forebay(&at, &["cp", "/lake/x.csv", "/lake/y.csv"]).fails(1, &["read-only"]);
    forebay(&at, &["sql", "copy (select 1) to '/lake/y.parquet'"]).fails(1, &["read-only"]);
    forebay(&at, &["cat", "/lake/x.csv"]).ok();
    assert_eq!(bucket.server().counters().puts, 0);
}

#[test]
fn wrong_usage() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["cat"][..], "<PATH>"),
        (&["mount", "add", "lake"], "<URL>"),
        (&["sql", "--json", "--csv", "select 1"], "--csv"),
        (&["mount", "add", "lake", "s3://x", "--bandwidth", "fast"], "400Mbit"),
        (&["mount", "add", "lake", "s3://x", "--validate", "never"], "immutable"),
        (&["demo", "--queries", "23"], "1 to 22"),
    ] {
        forebay_in(home.path(), arguments).fails(2, &[words]);
    }
}

#[test]
fn a_file_that_is_larger_than_any_object_is_named_and_harms_nobody() {
    // Only a file system in memory takes such a length.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::File::create(folder.path().join("huge")).unwrap().set_len(300_000_000_000_000_000).unwrap();
    let bucket = Bucket::Folder(folder);
    bucket.put("small", b"small");
    let (_home, up, at) = lake(&bucket);
    let started = Instant::now();
    // The second time it is listed already.
    for _ in 0..2 {
        let listed = forebay(&at, &["ls", "/lake/", "--json"]).ok().json();
        let told: Vec<_> = listed.iter().map(|entry| (&entry["path"], &entry["bytes"])).collect();
        let huge = (json!("/lake/huge"), json!(300_000_000_000_000_000_u64));
        let small = (json!("/lake/small"), json!(5));
        assert_eq!(told, [(&huge.0, &huge.1), (&small.0, &small.1)]);
        forebay(&at, &["stat", "/lake/huge"]).fails(1, &["/lake/huge", "too large"]);
        forebay(&at, &["du", "/lake/"]).fails(1, &["/lake/huge", "too large"]);
        assert_eq!(forebay(&at, &["stat", "/lake/small", "--json"]).ok().json()[0]["bytes"], 5);
        assert_eq!(forebay(&at, &["du", "/lake/small", "--json"]).ok().json()[0]["bytes"], 5);
        assert_eq!(forebay(&at, &["cat", "/lake/small"]).ok().stdout, b"small");
    }
    assert!(started.elapsed() < Duration::from_secs(60), "nothing goes through five billion segments");
    forebay(&at, &["status"]).ok();
    assert!(!up.log().contains("panicked"), "{}", up.log());
}
