//! What was asked steers which layers there are, from one process to the next.

use std::collections::BTreeSet;
use std::path::Path;

use forebay_shard::{Key, LayerId};
use forebay_shard_store::{Change, Condition, Store};

use crate::support::{Records, build, check, columns, random, records, values};

/// A size at which not all layers fit, so that those for gets and those for searches are others.
const SIZE: f64 = 1.1;
/// Enough that the one question in sixteen that is counted is counted often.
const QUESTIONS: usize = 2000;

fn shard(path: &Path) -> Records {
    let all = records(&mut random(5), 2000);
    build(path, &all, SIZE);
    all
}

fn layers(path: &Path) -> BTreeSet<LayerId> {
    Store::open(path).unwrap().layers().iter().map(|layer| layer.id).collect()
}

/// Looks for words, in a process that only reads.
fn search(path: &Path) {
    let store = Store::open(path).unwrap();
    let condition = Condition::parse("word = ab").unwrap();
    (0..QUESTIONS).for_each(|_| drop(store.search(&condition, None, None).unwrap()));
}

/// The same with whole records.
fn get(path: &Path) {
    let store = Store::open(path).unwrap();
    (0..QUESTIONS as u64).for_each(|key| drop(store.get(&Key::U64(key), None).unwrap()));
}

fn tune(path: &Path) {
    Store::open_to_change(path).unwrap().tune_with(SIZE, 1).unwrap();
}

fn merge(path: &Path) {
    let store = Store::open_to_change(path).unwrap();
    let change = Change::Put(Key::U64(1_000_000), values(&mut random(9)));
    store.change(vec![change]).unwrap();
    store.merge().unwrap();
}

/// The layers of a shard that was asked and tuned.
fn tuned(path: &Path, ask: fn(&Path)) -> BTreeSet<LayerId> {
    shard(path);
    ask(path);
    tune(path);
    layers(path)
}

#[test]
fn a_tune_knows_what_other_processes_were_asked() {
    let folder = tempfile::tempdir().unwrap();
    let searched = tuned(&folder.path().join("searched"), search);
    let got = tuned(&folder.path().join("got"), get);
    let unasked = tuned(&folder.path().join("unasked"), |_| ());
    assert_ne!(searched, got);
    assert_ne!(searched, unasked);
    // A second time it is the same: what was asked is kept, not used up.
    tune(&folder.path().join("searched"));
    assert_eq!(layers(&folder.path().join("searched")), searched);
}

#[test]
fn a_shard_tells_when_its_questions_call_for_other_layers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let wants = || Store::open(&path).unwrap().wants_other_layers().unwrap();
    shard(&path);
    assert!(!wants(), "nothing was asked");
    search(&path);
    assert!(wants());
    tune(&path);
    assert!(!wants());
}

#[test]
fn a_shard_elsewhere_has_the_layers_of_the_one_that_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (asked, other) = (folder.path().join("asked"), folder.path().join("other"));
    let wanted = tuned(&asked, search);
    shard(&other);
    assert!(Store::open(&other).unwrap().what_was_asked().is_none(), "too little to go by");
    assert_ne!(layers(&other), wanted);
    let shares = Store::open(&asked).unwrap().what_was_asked().unwrap();
    Store::begin_asked(&other, &shares).unwrap();
    tune(&other);
    assert_eq!(layers(&other), wanted);
    // What a shard knows by itself stays.
    let of_gets = folder.path().join("of_gets");
    tuned(&of_gets, get);
    Store::begin_asked(&of_gets, &shares).unwrap();
    assert!(!Store::open(&of_gets).unwrap().wants_other_layers().unwrap());
}

#[test]
fn a_merge_makes_the_layers_that_a_tune_would() {
    let folder = tempfile::tempdir().unwrap();
    for ask in [search, get] {
        let path = folder.path().join("x.shard");
        let mut all = shard(&path);
        ask(&path);
        merge(&path);
        let merged = layers(&path);
        tune(&path);
        assert_eq!(layers(&path), merged);
        all.insert(Key::U64(1_000_000), values(&mut random(9)));
        check(&Store::open(&path).unwrap(), &all, 1);
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn a_shard_that_is_built_anew_serves_the_questions_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("x.shard"), folder.path().join("other"));
    let before = tuned(&path, search);
    let all = shard(&path);
    assert_eq!(layers(&path), before);
    // The next one too; one of other columns has nothing to go by.
    shard(&path);
    assert_eq!(layers(&path), before);
    shard(&other);
    assert_ne!(layers(&other), before);
    let mut building = Store::build(&path, columns(), SIZE).unwrap();
    all.iter().for_each(|(key, values)| building.push(key.clone(), values.clone()).unwrap());
    building.finish().unwrap();
    assert_eq!(layers(&path), before);
}

#[test]
fn damaged_counters_are_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let searched = tuned(&path, search);
    let file = path.join("counters");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    get(&path);
    tune(&path);
    assert_ne!(layers(&path), searched);
    search(&path);
    std::fs::write(&file, b"").unwrap();
    tune(&path);
    std::fs::remove_file(&file).unwrap();
    search(&path);
    tune(&path);
    assert_eq!(layers(&path), searched);
}
