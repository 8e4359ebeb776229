//! Build, read, update, merge, tune: answers are those of a plain map all the way.

use std::cell::Cell;
use std::rc::Rc;

use forebay_shard::Key;
use forebay_shard_store::{Answered, Batch, Change, Condition, Store, while_waited};
use forebay_types::{Error, ErrorKind};
use rand::Rng;
use rand::rngs::StdRng;

use crate::support::*;

#[test]
fn answers_are_those_of_a_map_at_every_size() {
    let (_folder, path, all) = built(1, 3000, 0.5);
    check(&Store::open(&path).unwrap(), &all, 2);
    let store = Store::open_to_change(&path).unwrap();
    for size in [3.0, 0.1, 1.2, 0.9] {
        store.tune(size).unwrap();
        check(&store, &all, 3);
        check(&Store::open(&path).unwrap(), &all, 4);
    }
}

#[test]
fn a_search_ends_when_nobody_waits_for_it_and_no_other_one_does() {
    let (_folder, path, _) = built(1, 3000, 0.5);
    let store = Store::open(&path).unwrap();
    let condition = Condition::parse("word ~ \"[ab][^c]*\"").unwrap();
    let found = store.search(&condition, None, None).unwrap();
    assert!(!found.is_empty());
    let gone = || Err(Error::closed("nobody waits"));
    let (searched, counted, read) =
        while_waited(gone, || (store.search(&condition, None, None), store.count(&condition), store.get(&found[0], None)));
    assert_eq!(searched.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(counted.unwrap_err().kind(), ErrorKind::Closed);
    assert!(read.unwrap().is_some(), "a get takes no time");
    assert_eq!(while_waited(|| Ok(()), || store.search(&condition, None, None)).unwrap(), found);
    assert_eq!(store.search(&condition, None, None).unwrap(), found, "it was said of those alone");
}

#[test]
fn a_question_weighs_as_much_as_it_has_to_find() {
    let (_folder, path, _) = built(1, 3000, 0.5);
    let store = Store::open(&path).unwrap();
    let steps = |question: &str| Answered::steps(&store, question.as_bytes());
    let many = steps(r#"{"search": {"attr": "word", "contains": "a"}, "limit": 100000}"#);
    let none = steps(r#"{"search": {"attr": "word", "eq": "zz"}, "limit": 100000}"#);
    assert!(many > 1000 && none < 100, "{many}, {none}");
    assert!(steps(r#"{"count": {"attr": "word", "prefix": "a"}}"#) < 100, "its rows tell");
    let others = [r#"{"get": 1}"#, r#"{"count": null}"#, r#"{"search": {"attr": "nothing", "eq": 1}}"#, "no question"];
    assert_eq!(others.map(steps), [1; 4]);
}

/// How often a search asks whether it goes on: once for some hundred rows that it finds.
fn asks(search: impl FnOnce()) -> u32 {
    let asked = Rc::new(Cell::new(0));
    let counted = Rc::clone(&asked);
    while_waited(
        move || {
            counted.set(counted.get() + 1);
            Ok(())
        },
        search,
    );
    asked.get()
}

#[test]
fn a_put_that_waits_to_be_merged_has_no_search_find_more_than_is_wanted() {
    let (_folder, path, _) = built(1, 6000, 0.5);
    let store = Store::open_to_change(&path).unwrap();
    let condition = Condition::parse("word contains a").unwrap();
    let first = || asks(|| assert_eq!(store.search(&condition, None, Some(10)).unwrap().len(), 10));
    let all = || asks(|| assert!(store.search(&condition, None, None).unwrap().len() > 1000));
    let count = || asks(|| assert!(store.count(&condition).unwrap() > 1000));
    let before = [first(), all(), count()];
    assert!(before[0] == 0 && before[1] > 2, "{before:?}");
    store.change(vec![Change::Put(Key::U64(7), values(&mut random(3)))]).unwrap();
    assert_eq!([first(), all()], before[..2], "of ten hits, and all");
    assert!(count() <= before[2] + 1, "{} after {before:?}", count());
}

#[test]
fn a_count_beside_a_few_updates_does_not_find_what_it_counts() {
    let (_folder, path, mut all) = built(1, 6000, 0.5);
    let store = Store::open_to_change(&path).unwrap();
    let steps = |question: &str| Answered::steps(&store, question.as_bytes());
    let counting = r#"{"count": {"attr": "word", "prefix": "a"}}"#;
    let found = steps(r#"{"search": {"attr": "word", "prefix": "a"}, "limit": 100000}"#);
    let mut random = random(5);
    let there: Vec<Key> = all.keys().step_by(900).cloned().collect();
    for (at, key) in there.into_iter().enumerate() {
        // Records of others, new ones, and some that are gone.
        let new = Key::U64(1_000_000 + at as u64);
        let (values, others) = (values(&mut random), values(&mut random));
        let changed = match at % 3 {
            0 => all.remove(&key).map(|_| Change::Delete(key)),
            _ => all.insert(key.clone(), values.clone()).map(|_| Change::Put(key, values)),
        };
        all.insert(new.clone(), others.clone());
        store.change(vec![changed.unwrap(), Change::Put(new, others)]).unwrap();
        assert!(steps(counting) * 2 < found, "{} of {found} after {at} changes", steps(counting));
        let a = Condition::parse("word prefix a").unwrap();
        assert_eq!(store.count(&a).unwrap(), store.search(&a, None, None).unwrap().len() as u64, "after {at} changes");
        assert_eq!(store.count_all().unwrap(), all.len() as u64);
    }
    check(&store, &all, 9);
}

#[test]
fn no_record_and_one_record_are_shards_too() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 1] {
        let path = folder.path().join(count.to_string());
        let all = records(&mut random(7), count);
        build(&path, &all, 1.0);
        let store = Store::open_to_change(&path).unwrap();
        check(&store, &all, 5);
        store.tune(2.0).unwrap();
        check(&store, &all, 5);
    }
}

fn change(random: &mut rand::rngs::StdRng, records: &mut Records, store: &Store) {
    let keys = records.len() as u64 * 3 + 10;
    let changes: Vec<Change> = (0..random.random_range(1..20))
        .map(|_| {
            let key = Key::U64(random.random_range(0..keys));
            if random.random_bool(0.3) {
                records.remove(&key);
                return Change::Delete(key);
            }
            let values = values(random);
            records.insert(key.clone(), values.clone());
            Change::Put(key, values)
        })
        .collect();
    store.change(changes).unwrap();
}

#[test]
fn updates_are_seen_at_once_after_reopening_and_after_merging() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let mut random = random(11);
    let mut all = records(&mut random, 500);
    build(&path, &all, 0.8);
    for round in 0..4 {
        let store = Store::open_to_change(&path).unwrap();
        for _ in 0..30 {
            change(&mut random, &mut all, &store);
        }
        check(&store, &all, round);
        check(&Store::open(&path).unwrap(), &all, round);
        if round % 2 == 1 {
            store.merge().unwrap();
            check(&store, &all, round);
            check(&Store::open(&path).unwrap(), &all, round);
            assert_eq!(store.inspect().unwrap().updates, 0);
        }
        change(&mut random, &mut all, &store);
        check(&store, &all, round);
    }
}

#[test]
fn changes_of_the_wrong_shape_are_refused_and_change_nothing() {
    let (_folder, path, all) = built(13, 50, 0.8);
    let store = Store::open_to_change(&path).unwrap();
    assert!(store.change(vec![Change::Delete(Key::from("text"))]).is_err());
    assert!(store.change(vec![Change::Put(Key::U64(1), vec![])]).is_err());
    check(&store, &all, 1);
    assert!(Store::open(&path).unwrap().change(vec![Change::Delete(Key::U64(1))]).is_err());
}

#[test]
fn one_process_changes_a_shard_at_a_time() {
    let (_folder, path, _) = built(17, 50, 0.8);
    let first = Store::open_to_change(&path).unwrap();
    let error = Store::open_to_change(&path).err().unwrap();
    assert!(error.message().contains("another process"), "{error}");
    drop(first);
    Store::open_to_change(&path).unwrap();
}

#[test]
fn a_shard_is_replaced_as_a_whole_and_half_built_ones_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let (old, new) = (records(&mut random(19), 50), records(&mut random(23), 60));
    build(&path, &old, 0.8);
    assert!(Store::free_for(&path, false).is_err());
    Store::free_for(&path, true).unwrap();
    let mut half = Store::build(&path, columns(), 0.5).unwrap();
    half.push(Key::U64(1), values(&mut random(1))).unwrap();
    drop(half);
    check(&Store::open(&path).unwrap(), &old, 1);
    build(&path, &new, 0.8);
    check(&Store::open(&path).unwrap(), &new, 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let other = folder.path().join("folder");
    std::fs::create_dir(&other).unwrap();
    assert!(Store::free_for(&other, true).unwrap_err().message().contains("not a shard"));
}

#[test]
fn flat_text_is_searched_for_substrings_at_every_size() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("x.shard"), folder.path().join("text"));
    let mut random = random(29);
    let text: Vec<u8> = (0..20_000).map(|_| b"ab\0\xff"[random.random_range(0..4)]).collect();
    std::fs::write(&file, &text).unwrap();
    Store::build_text(&path, &file, 0.6).unwrap();
    let store = Store::open_to_change(&path).unwrap();
    let ask = |bytes: &[u8]| {
        let test = forebay_shard_store::Test::Contains(forebay_shard_store::Literal::Bytes(bytes.to_vec()));
        let condition = forebay_shard_store::Condition::Column { column: "text".to_string(), test };
        let right: Vec<u32> =
            (0u32..).zip(text.windows(bytes.len())).filter(|(_, window)| *window == bytes).map(|(at, _)| at).collect();
        for store in [&store, &Store::open(&path).unwrap()] {
            assert_eq!(store.search_text(&condition, None).unwrap(), right);
            assert_eq!(store.search_text(&condition, Some(2)).unwrap(), right[..2.min(right.len())]);
            assert_eq!(store.count_text(&condition).unwrap(), right.len() as u64);
        }
    };
    for size in [0.6, 3.0, 0.4] {
        store.tune(size).unwrap();
        (1..9).for_each(|length| ask(&text[length * 100..][..length]));
        ask(b"none of it");
    }
    assert!(store.records().is_err());
    assert!(store.inspect().unwrap().input_bytes == 20_000);
}

#[test]
fn flat_text_is_extracted_from_anywhere_at_every_size() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("x.shard"), folder.path().join("text"));
    let mut random = random(31);
    let text: Vec<u8> = (0..5_000).map(|_| b"ab\0\xff\xc3"[random.random_range(0..5)]).collect();
    std::fs::write(&file, &text).unwrap();
    Store::build_text(&path, &file, 0.6).unwrap();
    let store = Store::open_to_change(&path).unwrap();
    for size in [0.6, 3.0, 0.3] {
        store.tune(size).unwrap();
        for (offset, length) in [(0, 0), (0, 1), (0, 5_000), (127, 3), (128, 1), (4_990, 100), (5_000, 1), (u64::MAX, 9)] {
            let from = text.len().min(offset as usize);
            let right = &text[from..text.len().min(from + length)];
            assert_eq!(store.extract_text(offset, length).unwrap(), right, "{length} bytes from {offset} on at {size}");
        }
    }
    assert!(store.extract_text(0, usize::MAX).unwrap_err().message().contains("at most"));
    let records_path = folder.path().join("records");
    build(&records_path, &records(&mut random, 10), 0.5);
    assert!(Store::open(&records_path).unwrap().extract_text(0, 1).is_err());
}

#[test]
fn a_batch_extracts_flat_text() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (folder.path().join("x.shard"), folder.path().join("text"));
    std::fs::write(&file, b"the forebay keeps the turbine fed \xff").unwrap();
    Store::build_text(&path, &file, 1.0).unwrap();
    let mut batch = Batch::open(&path).unwrap();
    assert_eq!(batch.answer(br#"{"extract": 4, "length": 7}"#), "forebay");
    assert_eq!(batch.answer(br#"{"extract": 99, "length": 7}"#), "");
    assert_eq!(batch.answer(br#"{"extract": 34, "length": 1}"#), serde_json::json!({"base64": "/w=="}));
    for wrong in [&br#"{"extract": -1, "length": 7}"#[..], br#"{"extract": 4}"#, br#"{"extract": 4, "length": 7, "limit": 1}"#] {
        assert_eq!(batch.answer(wrong)["error"], "invalid", "{}", String::from_utf8_lossy(wrong));
    }
}

/// All hits of a condition, by pages of three.
fn by_pages(store: &Store, condition: &Condition) -> Vec<Key> {
    let mut all: Vec<Key> = Vec::new();
    loop {
        let page = store.search(condition, all.last(), Some(3)).unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

#[test]
fn keys_below_zero_come_first_in_pages_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let mut random = random(8);
    let number = |key: &Key| match key {
        Key::U64(key) => *key as i64,
        Key::Bytes(_) => panic!("{key}"),
    };
    let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    let keys: Vec<i64> = edges.into_iter().chain((0..150).map(|_| random.random_range(-90..90))).collect();
    let (first, later): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(at, _)| at % 3 > 0);
    let of = |keys: Vec<(usize, &i64)>, random: &mut StdRng| -> Records {
        keys.into_iter().map(|(_, key)| (Key::U64(*key as u64), values(random))).collect()
    };
    let (mut all, later) = (of(first, &mut random), of(later, &mut random));
    build(&path, &all, 0.3);
    let store = Store::open_to_change(&path).unwrap();
    for round in 0..2 {
        for _ in 0..25 {
            let (condition, mut right) = condition(&mut random, &all);
            right.sort_unstable_by_key(number);
            assert_eq!(store.search(&condition, None, None).unwrap(), right, "{condition:?}");
            assert_eq!(by_pages(&store, &condition), right, "{condition:?}");
            let after = Key::U64(random.random_range(-100_i64..100) as u64);
            let above: Vec<Key> = right.iter().filter(|key| number(key) > number(&after)).cloned().collect();
            assert_eq!(store.search(&condition, Some(&after), None).unwrap(), above, "{condition:?} after {after}");
        }
        if round == 0 {
            store.change(later.iter().map(|(key, values)| Change::Put(key.clone(), values.clone())).collect()).unwrap();
            all.extend(later.clone());
        }
    }
}
