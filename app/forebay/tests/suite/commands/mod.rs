//! Every command, in text and as JSON, on a folder and on S3.

mod copy;
mod doctor;
mod loads;
mod machine;
mod pages;
mod plan;
mod savings;
mod table;
mod trace;

use serde_json::json;

use crate::support::{Bucket, Role, csv, forebay, lake};

fn with_both(test: impl Fn(&Role, &Bucket)) {
    for bucket in [Bucket::folder(), Bucket::s3()] {
        let (_home, up, _) = lake(&bucket);
        test(&up, &bucket);
    }
}

#[test]
fn mounts_are_added_changed_listed_and_removed() {
    with_both(|up, bucket| {
        let at = up.address();
        let listed = forebay(&at, &["mount", "ls", "--json"]).ok().json();
        assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("lake")));
        let set = forebay(
            &at,
            &["mount", "set", "lake", "--bandwidth", "80Mbit", "--validate", "always", "--discover", "30s", "--json"],
        )
        .ok()
        .json();
        assert_eq!(set[0]["options"]["bandwidth"], "80Mbit");
        assert_eq!((&set[0]["options"]["validate"], &set[0]["options"]["discover"]), (&json!("always"), &json!("30s")));
        let unset = forebay(&at, &["mount", "set", "lake", "--bandwidth", "none", "--json"]).ok().json();
        assert_eq!((&unset[0]["options"]["bandwidth"], &unset[0]["options"]["validate"]), (&json!(null), &json!("always")));
        let set = |flags: &[&str]| forebay(&at, &[&["mount", "set", "lake", "--json"], flags].concat());
        let young = |ran: crate::support::Ran| ran.ok().json().remove(0)["options"]["young"].clone();
        set(&["--replicas-young", "2"]).fails(2, &["--for"]);
        assert_eq!(young(set(&["--replicas-young", "2", "--for", "7d"])), "2 for 168h");
        assert_eq!(young(set(&["--replicas-young", "3"])), "3 for 168h");
        assert!(forebay(&at, &["mount", "ls"]).ok().text().contains("replicas of what is young: 3 for 168h"));
        assert_eq!(young(set(&["--replicas-young", "none"])), json!(null));
        set(&["--for", "7d"]).fails(2, &["--replicas-young"]);
        bucket.mount_with(&at, "other", &["--read-only"]);
        assert!(forebay(&at, &["ls"]).ok().text().contains("/other/"));
        forebay(&at, &["mount", "rm", "other"]).ok();
        assert_eq!(forebay(&at, &["ls", "--json"]).ok().json().len(), 1);
    });
}

#[test]
fn what_is_there_is_listed() {
    with_both(|up, bucket| {
        let at = up.address();
        for key in ["a.csv", "sales/2023/x.csv", "sales/2024/y.csv", "z.csv"] {
            bucket.put(key, b"n\n1\n");
        }
        assert_eq!(forebay(&at, &["ls", "/lake"]).ok().lines(), ["a.csv", "sales/", "z.csv"]);
        assert_eq!(forebay(&at, &["ls", "/lake/sales"]).ok().lines(), ["2023/", "2024/"]);
        assert_eq!(forebay(&at, &["ls", "-r", "/lake/sales/"]).ok().lines(), ["2023/x.csv", "2024/y.csv"]);
        let long = forebay(&at, &["ls", "-l", "/lake/a.csv"]).ok().text();
        assert!(long.contains("4 B") && long.contains("/lake/a.csv"), "{long}");
        let listed = forebay(&at, &["ls", "--json", "/lake/"]).ok().json();
        let paths: Vec<_> = listed.iter().map(|entry| (&entry["path"], &entry["folder"])).collect();
        assert_eq!(
            paths,
            [
                (&json!("/lake/a.csv"), &json!(false)),
                (&json!("/lake/sales/"), &json!(true)),
                (&json!("/lake/z.csv"), &json!(false))
            ]
        );
        assert_eq!(listed[0]["bytes"], 4);
    });
}

#[test]
fn what_is_read_is_cached_until_it_is_freed() {
    with_both(|up, bucket| {
        let at = up.address();
        let data = csv(20_000);
        bucket.put("x.csv", &data);
        let size = data.len() as u64;
        let cached = || forebay(&at, &["stat", "/lake/x.csv", "--json"]).ok().json()[0]["cached_bytes"].as_u64().unwrap();
        let explained = || forebay(&at, &["explain", "/lake/x.csv", "--json"]).ok().json().remove(0);
        assert_eq!(cached(), 0);
        assert_eq!((&explained()["missing_bytes"], &explained()["segments"][0]["held"]), (&json!(size), &json!([])));
        assert!(forebay(&at, &["cat", "/lake/x.csv"]).ok().stdout == data);
        let (segment, missing) = (explained()["segments"][0].clone(), explained()["missing_bytes"].clone());
        assert_eq!((&missing, &segment["routed_by"]), (&json!(0), &json!("hashing")));
        assert_eq!(segment["held"][0]["worker"], segment["asked"][0]["worker"], "{segment}");
        let said = forebay(&at, &["explain", "/lake/x.csv"]).ok().text();
        assert!(said.contains("by hashing: 127.0.0.1:") && said.contains("nothing comes from shared storage"), "{said}");
        forebay(&at, &["explain", "/lake/y.csv"]).fails(1, &["/lake/y.csv"]);
        assert!(cached() >= size, "{} of {size} bytes are cached", cached());
        let stat = forebay(&at, &["stat", "/lake/x.csv"]).ok().text();
        assert!(stat.contains(&format!("({size} bytes)")), "{stat}");
        let freed = forebay(&at, &["free", "/lake/x.csv", "--json"]).ok().json();
        assert!(freed[0]["freed_bytes"].as_u64().unwrap() >= size);
        assert_eq!(cached(), 0);
    });
}

#[test]
fn ranges_are_those_of_http() {
    with_both(|up, bucket| {
        let at = up.address();
        bucket.put("x", b"0123456789");
        let cat = |range: &str| forebay(&at, &["cat", "--range", range, "/lake/x"]).ok().text();
        assert_eq!((cat("2-4"), cat("7-"), cat("-3"), cat("8-99")), ("234".into(), "789".into(), "789".into(), "89".into()));
        forebay(&at, &["cat", "--range", "4-2", "/lake/x"]).fails(2, &["no range", "FIRST-LAST"]);
    });
}

#[test]
fn a_load_brings_everything_below_into_the_tiers() {
    with_both(|up, bucket| {
        let at = up.address();
        let data = csv(20_000);
        for key in ["sales/a.csv", "sales/b.csv", "salesmen.csv"] {
            bucket.put(key, &data);
        }
        let both = 2 * data.len() as u64;
        let loaded = forebay(&at, &["load", "/lake/sales", "--json"]).ok().json();
        assert_eq!(
            (&loaded[0]["path"], &loaded[0]["objects"], &loaded[0]["bytes"]),
            (&json!("/lake/sales/"), &json!(2), &json!(both))
        );
        for command in [["cat"], ["stat"], ["explain"]] {
            forebay(&at, &[&command[..], &["/lake/sales"]].concat()).fails(1, &["/lake/sales/ is a folder", "forebay ls"]);
        }
        let usage = forebay(&at, &["du", "/lake/sales", "/lake/salesmen.csv", "--json"]).ok().json();
        assert!(usage[0]["cached_bytes"].as_u64().unwrap() >= both, "{usage:?}");
        assert_eq!(usage[1]["cached_bytes"], 0);
        assert_eq!(forebay(&at, &["load", "/lake/sales", "--json"]).ok().json()[0]["fetched_bytes"], 0);
        assert!(forebay(&at, &["du"]).ok().text().contains("/lake/"));
        bucket.put("small/x", b"x");
        forebay(&at, &["load", "/lake/small/"]).ok();
        let text = forebay(&at, &["du", "/lake/small/"]).ok().text();
        assert!(text.contains("(100 %)"), "a page is more than the object has, and no more than all of it: {text}");
    });
}

#[test]
fn a_load_of_columns_and_rows_brings_what_their_query_reads() {
    with_both(|up, _| {
        let at = up.address();
        let table = "select value as id, md5(cast(value as varchar)) as hash from generate_series(1, 100000) as t(value)";
        forebay(&at, &["sql", &format!("copy ({table}) to '/lake/t/a.parquet'")]).ok();
        forebay(&at, &["free", "/lake/t"]).ok();
        let load = |flags: &[&str]| forebay(&at, &[&["load", "/lake/t", "--json"][..], flags].concat()).ok().json().remove(0);
        let none = load(&["--columns", "id,hash", "--where", "id < 0"]);
        assert_eq!((&none["objects"], &none["bytes"]), (&json!(0), &json!(0)));
        let column = load(&["--columns", "id"]);
        assert_eq!((&column["path"], &column["objects"]), (&json!("/lake/t/"), &json!(1)));
        assert!(column["fetched_bytes"].as_u64().unwrap() > 0, "{column}");
        assert_eq!(load(&["--columns", "id"])["fetched_bytes"], 0);
        let whole = load(&[]);
        assert!(column["bytes"].as_u64().unwrap() * 2 < whole["bytes"].as_u64().unwrap(), "{column} of {whole}");
        assert!(whole["fetched_bytes"].as_u64().unwrap() > 0, "{whole}");
        forebay(&at, &["load", "/lake/t", "--columns", "nosuch"]).fails(1, &["nosuch"]);
    });
}

#[test]
fn pins_are_kept_listed_and_lifted() {
    with_both(|up, bucket| {
        let at = up.address();
        bucket.put("dim/a.csv", &csv(1000));
        forebay(&at, &["pin", "/lake/dim"]).ok();
        assert_eq!(forebay(&at, &["pin", "--json"]).ok().json(), [json!({"path": "/lake/dim/", "pinned": true})]);
        let stat = forebay(&at, &["stat", "/lake/dim/a.csv", "--json"]).ok().json();
        assert_eq!(stat[0]["kept"], true, "{stat:?}");
        forebay(&at, &["pin", "--remove", "/lake/dim", "--json"]).ok();
        assert_eq!(forebay(&at, &["pin", "--json"]).ok().lines().len(), 0);
        forebay(&at, &["pin", "--remove", "/lake/dim"]).fails(1, &["/lake/dim"]);
    });
}

#[test]
fn deleting_deletes_from_shared_storage() {
    with_both(|up, bucket| {
        let at = up.address();
        for key in ["x.csv", "old/a.csv", "old/b.csv", "old/c/d/e.csv", "kept/f.csv"] {
            bucket.put(key, b"n\n1\n");
        }
        forebay(&at, &["rm", "-r", "/lake/old/c"]).ok();
        forebay(&at, &["rm", "/lake/kept/f.csv"]).ok();
        forebay(&at, &["rm", "/lake/old"]).fails(2, &["/lake/old/", "rm -r"]);
        let deleted = forebay(&at, &["rm", "-r", "/lake/old", "--json"]).ok().json();
        assert_eq!(deleted, [json!({"deleted": "/lake/old/a.csv"}), json!({"deleted": "/lake/old/b.csv"})]);
        if let Bucket::Folder(folder) = bucket {
            assert!(!folder.path().join("old").exists() && folder.path().join("kept").exists(), "only what was to go as a whole");
        }
        forebay(&at, &["rm", "/lake/x.csv"]).ok();
        forebay(&at, &["rm", "/lake/x.csv"]).fails(1, &["/lake/x.csv"]);
        forebay(&at, &["rm", "-f", "/lake/x.csv"]).ok();
        assert_eq!(forebay(&at, &["ls", "/lake"]).ok().lines().len(), 0);
    });
}

#[test]
fn a_whole_mount_is_emptied_only_with_yes() {
    with_both(|up, bucket| {
        let at = up.address();
        for key in ["x.csv", "old/a.csv"] {
            bucket.put(key, b"n\n1\n");
        }
        for root in ["/lake", "/lake/"] {
            // Not the other path either.
            forebay(&at, &["rm", "-rf", "/lake/old/", root]).fails(2, &["/lake/", "--yes", "forebay mount rm lake"]);
        }
        forebay(&at, &["rm", "--yes", "/lake/x.csv"]).fails(2, &["--recursive"]);
        assert_eq!(forebay(&at, &["du", "/lake", "--json"]).ok().json()[0]["objects"], 2);
        assert_eq!(forebay(&at, &["rm", "-r", "--yes", "/lake", "--json"]).ok().json().len(), 2);
        assert_eq!(forebay(&at, &["ls", "/lake"]).ok().lines().len(), 0);
    });
}

#[test]
fn a_refresh_shows_what_others_wrote() {
    with_both(|up, bucket| {
        let at = up.address();
        bucket.put("x.csv", b"old");
        forebay(&at, &["mount", "set", "lake", "--validate", "ttl:1h"]).ok();
        assert_eq!(forebay(&at, &["cat", "/lake/x.csv"]).ok().text(), "old");
        assert_eq!(forebay(&at, &["ls", "/lake"]).ok().lines(), ["x.csv"]);
        bucket.put("x.csv", b"newer");
        bucket.put("y.csv", b"2");
        assert_eq!(forebay(&at, &["cat", "/lake/x.csv"]).ok().text(), "old");
        let refreshed = forebay(&at, &["refresh", "/lake/", "--json"]).ok().json();
        assert_eq!(refreshed, [json!({"refreshed": "/lake/"})]);
        assert_eq!(forebay(&at, &["cat", "/lake/x.csv"]).ok().text(), "newer");
        assert_eq!(forebay(&at, &["ls", "/lake"]).ok().lines(), ["x.csv", "y.csv"]);
    });
}

#[test]
fn the_status_names_mounts_workers_and_tiers() {
    with_both(|up, bucket| {
        let at = up.address();
        bucket.put("x.csv", &csv(1000));
        forebay(&at, &["cat", "/lake/x.csv"]).ok();
        // Workers report once a second.
        let counted = (0..50).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let status = forebay(&at, &["status", "--json"]).ok().json().remove(0);
            (status["workers"][0]["reads"].as_u64() > Some(0)).then_some(status)
        });
        let status = counted.expect("the worker reports its reads");
        assert_eq!((&status["metadata"], &status["mounts"][0]["name"]), (&json!("sqlite"), &json!("lake")));
        assert_eq!(status["workers"][0]["state"], "live");
        assert_eq!(status["workers"][0]["dram"]["capacity_bytes"], 256 << 20);
        let text = forebay(&at, &["status"]).ok().text();
        assert!(text.contains("/lake/") && text.contains("live") && text.contains("sqlite"), "{text}");
        let text = forebay(&at, &["top"]).ok().text();
        assert!(text.contains("/lake/") && text.contains("no transfers now"), "once, where no terminal is: {text}");
        let looks = forebay(&at, &["top", "--json", "--count", "2", "--interval", "50ms"]).ok().json();
        assert_eq!(looks.len(), 2);
        assert!(looks[0]["rates"].is_null() && looks[1]["rates"]["reads"].is_u64(), "{looks:?}");
        let id = looks[1]["status"]["workers"][0]["id"].as_str().unwrap();
        assert!(looks[1]["queues"][id].is_u64() && looks[1]["workers"][id]["served_bytes"].is_u64(), "{looks:?}");
        assert_eq!(looks[1]["mounts"]["lake"]["sent_bytes"], 0);
        forebay(&at, &["top", "--count", "2"]).fails(2, &["--json"]);
    });
}

#[test]
fn savings_are_what_the_storage_itself_counts() {
    let bucket = Bucket::s3();
    (0..20).for_each(|part| bucket.put(&format!("t/{part}.csv"), &csv(5_000)));
    let (_home, _up, at) = lake(&bucket);
    // Workers tell of themselves once a second.
    let settled = || {
        std::thread::sleep(std::time::Duration::from_millis(2500));
        (forebay(&at, &["savings", "--json"]).ok().json().remove(0), bucket.server().counters())
    };
    let (before, server_before) = settled();
    forebay(&at, &["ls", "-l", "/lake/t/"]).ok();
    for _ in 0..3 {
        for part in 0..20 {
            forebay(&at, &["cat", &format!("/lake/t/{part}.csv")]).ok();
        }
        forebay(&at, &["sql", "select count(*), max(square) from '/lake/t/*.csv'"]).ok();
    }
    forebay(&at, &["cp", "/lake/t/1.csv", "/lake/copy.csv"]).ok();
    forebay(&at, &["load", "/lake/t/"]).ok();
    let (after, server) = settled();
    let grown = |field: &str| after[field].as_f64().unwrap() - before[field].as_f64().unwrap();
    for (said, counted) in [
        (grown("storage_bytes"), server.bytes_out - server_before.bytes_out),
        (grown("storage_requests"), server.requests() - server_before.requests()),
    ] {
        let counted = counted as f64;
        assert!(counted > 0.0 && (said - counted).abs() <= 0.02 * counted, "{said} and not {counted}: {after}, {server:?}");
    }
    let all = |field: &str| after[field].as_u64().unwrap();
    assert_eq!(all("saved_bytes"), all("served_bytes") - all("storage_bytes"));
    assert!(
        grown("saved_bytes") >= 1.5 * (server.bytes_out - server_before.bytes_out) as f64,
        "of each file readings were spared: {after}"
    );
}
