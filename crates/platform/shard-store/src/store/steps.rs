//! The process ends between any two steps of a change on disk: what is left is the state before or the one after.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use forebay_shard::{Key, Value};

use super::Store;
use crate::columns::{Column, ColumnKind, Columns};
use crate::folder::STEPS_LEFT;
use crate::update::Change;

const FOLDER: &str = "FOREBAY_TEST_STEPS_FOLDER";
const STEPS: &str = "FOREBAY_TEST_STEPS";
const RECORDS: u64 = 200;

fn value(key: u64) -> Vec<Value> {
    vec![Value::Text(format!("word {}", key % 7)), Value::Int(key as i64)]
}

fn build(path: &Path) {
    let columns =
        vec![Column::new("id", ColumnKind::Int), Column::new("word", ColumnKind::Text), Column::new("number", ColumnKind::Int)];
    let mut building = Store::build(path, Columns::new(columns, "id").unwrap(), 0.6).unwrap();
    (0..RECORDS).for_each(|key| building.push(Key::U64(key), value(key)).unwrap());
    building.finish().unwrap();
}

fn check(path: &Path, keys: u64) {
    let store = Store::open(path).unwrap();
    assert_eq!(store.count_all().unwrap(), keys);
    for key in 0..keys {
        assert_eq!(store.get(&Key::U64(key), None).unwrap(), Some(value(key)));
    }
}

/// The process that ends; in any other run it has nothing to do.
#[test]
fn child() {
    let (Ok(folder), Ok(steps)) = (std::env::var(FOLDER), std::env::var(STEPS)) else { return };
    let store = Store::open_to_change(Path::new(&folder)).unwrap();
    STEPS_LEFT.store(steps.parse().unwrap(), Ordering::Relaxed);
    store.tune_with(2.5, 1).unwrap();
    store.tune_with(0.5, 1).unwrap();
    store.merge().unwrap();
    println!("done");
}

#[test]
fn a_change_is_there_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    build(&path);
    let mut keys = RECORDS;
    let mut ended = 0;
    for steps in 0.. {
        // An update that is only in the log, so that there is something to merge each time.
        {
            let store = Store::open_to_change(&path).unwrap();
            store.change(vec![Change::Put(Key::U64(keys), value(keys))]).unwrap();
            keys += 1;
        }
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::steps::child", "--nocapture"])
            .env(FOLDER, &path)
            .env(STEPS, steps.to_string())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        check(&path, keys);
        drop(Store::open_to_change(&path).unwrap());
        check(&path, keys);
        // What was left behind is gone after that.
        let manifest = crate::folder::Manifest::read(&path).unwrap();
        let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        for file in files.filter(|file| !["manifest", "lock", "counters"].contains(&file.as_str()) && !file.starts_with("log-")) {
            assert!(manifest.files().any(|entry| entry.file == file), "{file} was left after {steps} steps");
        }
        if String::from_utf8_lossy(&ran.stdout).contains("done") {
            break;
        }
        ended += 1;
    }
    assert!(ended > 10, "{ended}");
}
