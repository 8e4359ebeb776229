//! A merge into another folder: in parts, with the answers of before, in the memory of one part.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use forebay_shard::{Key, Value};
use forebay_shard_store::{Change, Column, ColumnKind, Columns, Packed, Store, merge};
use rand::Rng;

use crate::support::*;

/// Counts what a thread has of the heap, and what it had at most.
struct Counting;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // A thread that ends has none to count with.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: all calls go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What something takes of the heap at most, beyond what is there.
fn peak<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = LIVE.get();
    PEAK.set(before);
    let done = work();
    (done, PEAK.get() - before)
}

fn bases(packed: &Packed) -> usize {
    packed.shard.files.iter().filter(|file| file.name.starts_with("base-")).count()
}

fn merge_into(served: &Store, to: &Path, part_bytes: u64) -> Packed {
    std::fs::create_dir(to).unwrap();
    merge(&served.standing().unwrap(), to, 0.01, part_bytes).unwrap()
}

/// Changes of a served shard, and of the map that knows the right answers.
fn change(served: &Store, records: &mut Records, number: u64, count: usize, seed: u64) {
    let mut random = random(seed);
    for _ in 0..count {
        let key = Key::U64(random.random_range(0..records.len() as u64 * 3));
        let change = match random.random_bool(0.3) {
            true => {
                records.remove(&key);
                Change::Delete(key)
            }
            false => {
                let values = values(&mut random);
                records.insert(key.clone(), values.clone());
                Change::Put(key, values)
            }
        };
        served.add_updates(number, [change]);
    }
}

#[test]
fn merges_in_parts_one_after_the_other_answer_as_a_map_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut records = records(&mut random(1), 3000);
    let mut building = Store::build(&path("0"), columns(), 0.5).unwrap().with_cold();
    records.iter().for_each(|(key, values)| building.push(key.clone(), values.clone()).unwrap());
    building.finish().unwrap();
    for round in 0..4_u64 {
        let served = Store::open(&path(&round.to_string())).unwrap();
        change(&served, &mut records, round + 1, 700, round + 10);
        // Of what has parts already, as well.
        let packed = merge_into(&served, &path(&(round + 1).to_string()), 8 << 10);
        assert!(bases(&packed) > 3, "{} parts", bases(&packed));
        assert_eq!(packed.shard.records, records.len() as u64);
        assert!(packed.shard.cold.is_some(), "cold files are of all parts");
        let merged = Store::open(&path(&(round + 1).to_string())).unwrap();
        check(&merged, &records, round);
        let left = std::fs::read_dir(path(&(round + 1).to_string())).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(left.iter().all(|name| !name.starts_with("noted-")), "{left:?}");
    }
}

#[test]
fn what_is_changed_while_a_merge_goes_on_is_not_in_it_and_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let before = records(&mut random(2), 500);
    build(&path("0"), &before, 0.5);
    let served = Store::open(&path("0")).unwrap();
    let mut merged = before.clone();
    change(&served, &mut merged, 1, 200, 3);
    let standing = served.standing().unwrap();
    let mut later = merged.clone();
    change(&served, &mut later, 2, 200, 4);
    std::fs::create_dir(path("1")).unwrap();
    merge(&standing, &path("1"), 0.01, 4 << 10).unwrap();
    let new = Store::open(&path("1")).unwrap();
    check(&new, &merged, 5);
    check(&served, &later, 6);
    new.adopt_updates(&served);
    check(&new, &later, 7);
}

const LARGE: u64 = 4 << 20;
const PART: u64 = 256 << 10;
/// Symbols of text, its suffixes, and what is made of them.
const BYTES_A_BYTE: i64 = 9;
/// For each record: its key, and where one of its values is.
const BYTES_A_RECORD: i64 = 56;
/// Dictionaries, and buffers.
const BYTES_MORE: i64 = 3 << 20;

#[test]
fn a_merge_takes_the_memory_of_one_part_however_large_the_shard_is() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let all =
        vec![Column::new("id", ColumnKind::Uint), Column::new("text", ColumnKind::Text), Column::new("other", ColumnKind::Text)];
    let mut building = Store::build(&from, Columns::new(all, "id").unwrap(), 0.6).unwrap().with_cold();
    let mut random = random(5);
    let mut records = 0_u64;
    let value = |random: &mut rand::rngs::StdRng| {
        let words: Vec<String> = (0..30).map(|_| format!("w{}", random.random_range(0..4000))).collect();
        vec![Value::Text(words.join(" ")), Value::Text(words[0].clone())]
    };
    while records * 190 < LARGE {
        building.push(Key::U64(records), value(&mut random)).unwrap();
        records += 1;
    }
    building.finish().unwrap();
    let served = Store::open(&from).unwrap();
    let changes: Vec<Change> = (0..records).step_by(9).map(|key| Change::Put(Key::U64(key), value(&mut random))).collect();
    let changed = changes.len() as u64;
    let ((), held) = peak(|| served.add_updates(1, changes));
    let most = 3 * 190 * changed as i64;
    assert!(held < most, "{held} bytes for {changed} changes, {most} at most");
    let (packed, took) = peak(|| merge_into(&served, &to, PART));
    assert!(bases(&packed) >= 15, "{} parts", bases(&packed));
    let most = BYTES_A_BYTE * PART as i64 + BYTES_A_RECORD * records as i64 + BYTES_MORE;
    assert!(took < most, "{took} bytes of heap for parts of {PART}, {most} at most");
    assert!((most as u64) < 2 * LARGE, "the shard as one part takes more");
}
