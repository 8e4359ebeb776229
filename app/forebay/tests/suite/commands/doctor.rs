//! What the commands say that look at a machine instead of at data.

use std::fs;

use serde_json::Value;

use crate::support::{Bucket, Ran, Role, forebay, forebay_in};

fn check<'a>(said: &'a [Value], name: &str) -> &'a Value {
    said.iter().find(|finding| finding["check"] == name).unwrap_or_else(|| panic!("no {name} in {said:?}"))
}

fn said(ran: &Ran) -> Vec<Value> {
    let said = ran.json();
    // What is not well says what to do.
    assert!(said.iter().all(|finding| finding["state"] == "ok" || finding["remedy"].is_string()), "{said:?}");
    said
}

#[test]
fn the_doctor_looks_at_cluster_and_storage() {
    let home = tempfile::tempdir().unwrap();
    let up = Role::up(home.path());
    let bucket = Bucket::s3();
    bucket.put("a", &[7; 100_000]);
    bucket.mount_with(&up.address(), "lake", &[]);
    let ran = forebay(&up.address(), &["doctor", "--json"]);
    let found = said(&ran);
    assert_eq!(check(&found, "coordinator")["state"], "ok");
    assert_eq!(check(&found, "workers")["found"], "1 live, 0 lost");
    let listens = check(&found, "coordinator-listen");
    assert!(listens["state"] == "ok" && listens["found"].as_str().unwrap().contains("a running Forebay, process"), "{listens}");
    let lake = check(&found, "mount /lake/");
    assert!(lake["state"] == "ok" && lake["found"].as_str().unwrap().contains("97.7 KiB in"), "{lake}");

    // A storage that is gone is to be mended, and the command fails.
    drop(bucket);
    let ran = forebay(&up.address(), &["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(check(&said(&ran), "mount /lake/")["state"], "failure");
}

#[test]
fn the_doctor_says_what_to_do_without_a_cluster() {
    let home = tempfile::tempdir().unwrap();
    let ran = forebay_in(home.path(), &["doctor", "--json", "--coordinator", "127.0.0.1:1", "--data-dir", "here"]);
    let found = said(&ran);
    assert_eq!(check(&found, "coordinator")["state"], "warning");
    assert!(check(&found, "data folder")["found"].as_str().unwrap().starts_with("here (would be made in"));
    assert!(!home.path().join("here").exists());
}

#[test]
fn every_command_has_a_manual_page() {
    let home = tempfile::tempdir().unwrap();
    forebay_in(home.path(), &["man", "pages"]).ok();
    let read = |page: &str| fs::read_to_string(home.path().join("pages").join(page)).unwrap();
    assert!(read("forebay.1").contains("forebay\\-mount"));
    assert!(read("forebay-mount-add.1").contains("endpoint"));
    assert!(!home.path().join("pages/forebay-demo-s3-server.1").exists());
}
