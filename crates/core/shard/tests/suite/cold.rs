//! A cold file answers as the shard does, in few ranges, and nothing that is damaged passes.

use forebay_shard::{Builder, ColdFile, ColdTail, Key, KeyType, Query, Schema, Shard, Value, ValueType};
use forebay_types::Result;

fn schema(key_type: KeyType) -> Schema {
    let schema = Schema::new("key", key_type).with("name", ValueType::Text).with("kind", ValueType::Int);
    schema.with("note", ValueType::Text).with("few", ValueType::Bool)
}

/// Names that several share, numbers below zero, nulls, long values, and one attribute of two values.
fn record(number: u64) -> Vec<Value> {
    let note = format!("a rather long note about record {number}, which no other record has");
    let kind = if number.is_multiple_of(11) { Value::Null } else { Value::Int(number as i64 % 50 - 25) };
    vec![Value::Text(format!("clerk{}", number * 31 % 97)), kind, Value::Text(note), Value::Bool(number.is_multiple_of(2))]
}

fn key(key_type: KeyType, number: u64) -> Key {
    match key_type {
        // On both sides of what is kept in 32 bits.
        KeyType::U64 => Key::U64(number * number * 1_000_003),
        KeyType::Bytes => Key::Bytes(format!("key {number:06}").into_bytes()),
    }
}

fn build(key_type: KeyType, records: u64) -> (ColdFile, Shard) {
    let mut builder = Builder::new(schema(key_type)).unwrap();
    // Not in order, and some of them twice.
    for number in (0..records).rev().chain(0..records.min(5)) {
        builder.push(&key(key_type, number), &record(number)).unwrap();
    }
    let cold = ColdFile::of(&mut builder).unwrap().unwrap();
    let built = builder.finish(0.01).unwrap();
    (cold, Shard::open(built.base, []).unwrap())
}

fn open(cold: &ColdFile, key_type: KeyType) -> Result<ColdTail> {
    let tail = &cold.bytes[cold.bytes.len() - cold.tail_bytes as usize..];
    ColdTail::open(tail, cold.bytes.len() as u64, &schema(key_type))
}

fn read<'c>(cold: &'c ColdFile, range: &forebay_shard::ColdRange) -> &'c [u8] {
    &cold.bytes[range.bytes.start as usize..range.bytes.end as usize]
}

fn get(cold: &ColdFile, tail: &ColdTail, key: &Key) -> Result<Option<Vec<Value>>> {
    if let Some(range) = tail.block(key) { tail.record(&range, read(cold, &range), key) } else { Ok(None) }
}

/// None where the file has no lists of that attribute.
fn equal(cold: &ColdFile, tail: &ColdTail, attribute: usize, value: &Value) -> Result<Option<Vec<Key>>> {
    let Some(directory) = tail.directory(attribute, value)? else { return Ok(None) };
    let bucket = tail.bucket(attribute, &directory, read(cold, &directory))?;
    tail.keys(attribute, &bucket, read(cold, &bucket), value).map(Some)
}

#[test]
fn records_and_equalities_are_those_of_the_shard() {
    for key_type in [KeyType::U64, KeyType::Bytes] {
        let (cold, shard) = build(key_type, 3000);
        let tail = open(&cold, key_type).unwrap();
        for number in 0..3050 {
            let key = key(key_type, number);
            assert_eq!(get(&cold, &tail, &key).unwrap(), shard.get(&key).unwrap(), "{key}");
        }
        for other in [Key::U64(1), Key::U64(u64::MAX), Key::from(""), Key::from("key 0000015"), Key::from("x")] {
            assert_eq!(get(&cold, &tail, &other).unwrap(), None, "{other}");
        }
        for number in 0..120 {
            for (attribute, value) in record(number * 29).into_iter().enumerate().take(3) {
                let wanted = Query::Eq { attribute, value: value.clone() };
                let Some(keys) = equal(&cold, &tail, attribute, &value).unwrap() else {
                    assert_eq!(value, Value::Null);
                    continue;
                };
                let expected: Vec<Key> = shard.search(&wanted, None, None).unwrap().keys.iter().collect();
                assert_eq!(keys, expected, "{wanted:?}");
            }
        }
        assert_eq!(equal(&cold, &tail, 0, &Value::Text("nobody".into())).unwrap(), Some(vec![]));
        assert_eq!(equal(&cold, &tail, 3, &Value::Bool(true)).unwrap(), None, "half of all records: no list");
        assert!(tail.directory(0, &Value::Int(1)).is_err(), "of another type");
    }
}

/// Who writes one record must not be found by who looks for another one's value.
#[test]
fn values_that_xxh3_takes_for_one_have_keys_of_their_own() {
    let value = |first: &str, second: &str| format!("{}{first}{}{second}{}", "x".repeat(80), "x".repeat(120), "x".repeat(84));
    let values = [value("bbbb0aaa", "cbbbK-t_"), value("cbbb0aaa", "bbbbK-t_")];
    let [one, other] = values.each_ref().map(|value| xxhash_rust::xxh3::xxh3_128(value.as_bytes()));
    assert_eq!(one, other, "they were chosen so");
    let mut builder = Builder::new(schema(KeyType::U64)).unwrap();
    for (number, value) in (0..).zip(&values) {
        let note = Value::Text(value.clone());
        builder.push(&Key::U64(number), &[Value::Null, Value::Null, note, Value::Null]).unwrap();
    }
    let cold = ColdFile::of(&mut builder).unwrap().unwrap();
    let tail = open(&cold, KeyType::U64).unwrap();
    for (number, value) in (0..).zip(values) {
        assert_eq!(equal(&cold, &tail, 2, &Value::Text(value)).unwrap(), Some(vec![Key::U64(number)]));
    }
}

#[test]
fn a_shard_without_records_has_a_cold_file_too() {
    let (cold, _) = build(KeyType::U64, 0);
    let tail = open(&cold, KeyType::U64).unwrap();
    assert_eq!(get(&cold, &tail, &Key::U64(0)).unwrap(), None);
    assert_eq!(equal(&cold, &tail, 0, &Value::Text("x".into())).unwrap(), None);
}

#[test]
fn what_is_read_of_it_is_small() {
    let (cold, _) = build(KeyType::U64, 100_000);
    let tail = open(&cold, KeyType::U64).unwrap();
    let key = key(KeyType::U64, 77_777);
    let block = tail.block(&key).unwrap().bytes;
    assert!(cold.tail_bytes + block.end - block.start < 48 << 10, "{} and {block:?}", cold.tail_bytes);
    let value = &record(500)[2];
    let directory = tail.directory(2, value).unwrap().unwrap();
    let bucket = tail.bucket(2, &directory, read(&cold, &directory)).unwrap();
    assert!(bucket.bytes.end - bucket.bytes.start < 8 << 10, "{bucket:?}");
}

#[test]
fn no_flipped_bit_passes() {
    let (cold, _) = build(KeyType::Bytes, 60);
    let tail_from = cold.bytes.len() - cold.tail_bytes as usize;
    let value = Value::Text("clerk31".into());
    let key = key(KeyType::Bytes, 35);
    let right = open(&cold, KeyType::Bytes).unwrap();
    let (record, keys) = (get(&cold, &right, &key).unwrap(), equal(&cold, &right, 0, &value).unwrap());
    assert!(record.is_some() && keys.as_ref().is_some_and(|keys| !keys.is_empty()));
    for at in 0..cold.bytes.len() {
        let mut damaged = ColdFile { bytes: cold.bytes.clone(), tail_bytes: cold.tail_bytes };
        damaged.bytes[at] ^= 1;
        match open(&damaged, KeyType::Bytes) {
            Ok(tail) => {
                assert!(at < tail_from, "byte {at} of the tail");
                assert!(get(&damaged, &tail, &key).is_err() || get(&damaged, &tail, &key).unwrap() == record, "byte {at}");
                let equal = equal(&damaged, &tail, 0, &value);
                assert!(equal.is_err() || equal.unwrap() == keys, "byte {at}");
            }
            Err(_) => assert!(at >= tail_from, "byte {at}"),
        }
    }
    for cut in 0..cold.tail_bytes as usize {
        let tail = &cold.bytes[tail_from..tail_from + cut];
        assert!(ColdTail::open(tail, (tail_from + cut) as u64, &schema(KeyType::Bytes)).is_err(), "cut at {cut}");
    }
    assert!(open(&cold, KeyType::U64).is_err(), "of other keys");
}

#[test]
fn ranges_of_one_place_are_not_taken_for_those_of_another() {
    let (cold, _) = build(KeyType::U64, 3000);
    let tail = open(&cold, KeyType::U64).unwrap();
    let (one, other) = (key(KeyType::U64, 10), key(KeyType::U64, 2900));
    let (at, elsewhere) = (tail.block(&one).unwrap(), tail.block(&other).unwrap());
    assert_ne!(at, elsewhere);
    assert!(tail.record(&at, read(&cold, &elsewhere), &one).is_err());
    assert!(tail.record(&at, &[], &one).is_err());
}
