//! No room for what is written: an error that names the file, and nothing acknowledged is lost.

use std::process::{Command, Stdio};

use forebay_shard::{Key, Value};
use forebay_shard_store::{Change, Store};

use crate::support::*;

const FOLDER: &str = "FOREBAY_TEST_FULL_FOLDER";
/// Records put together.
const BATCH: u64 = 40;
/// Batches, which together are longer than a file may be.
const BATCHES: u64 = 150;

fn put(key: u64) -> Vec<Value> {
    values(&mut random(key * 31 + 7))
}

/// The process that may write no large files; in any other run it has nothing to do.
#[test]
fn writer() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let store = Store::open_to_change(std::path::Path::new(&folder)).unwrap();
    for batch in 0..BATCHES {
        let keys = batch * BATCH..(batch + 1) * BATCH;
        match store.change(keys.map(|key| Change::Put(Key::U64(key), put(key))).collect()) {
            Ok(()) => eprintln!("acknowledged {batch}"),
            Err(error) => {
                eprintln!("refused {error}");
                break;
            }
        }
    }
    let before = store.count_all().unwrap();
    eprintln!("merge {}", store.merge().unwrap_err());
    assert_eq!(store.count_all().unwrap(), before);
}

#[test]
fn without_room_nothing_is_lost_and_the_error_names_the_file() {
    let (_folder, path, mut all) = built(41, 20_000, 0.5);
    // A limit on the size of files is what every user may set; the signal that comes with it is not for us.
    let ran = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 48; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full::writer", "--nocapture"])
        .env(FOLDER, &path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    let line = |what: &str| said.lines().find(|line| line.starts_with(what)).unwrap_or_else(|| panic!("no {what} in {said}"));
    let place = path.display().to_string();
    assert!(line("refused").contains(&format!("{place}/log-")), "{said}");
    assert!(line("merge").contains(&format!("{place}/base-")) && line("merge").contains("nothing was changed"), "{said}");
    let acknowledged = said.lines().filter(|line| line.starts_with("acknowledged")).count() as u64;
    assert!(acknowledged > 0, "{said}");
    all.extend((0..acknowledged * BATCH).map(|key| (Key::U64(key), put(key))));
    check(&Store::open(&path).unwrap(), &all, 1);
    // With room again it goes on.
    let store = Store::open_to_change(&path).unwrap();
    check(&store, &all, 2);
    store.merge().unwrap();
    check(&store, &all, 3);
}
