//! Damage is an error with its place, never a panic and never a wrong answer.

use bytes::Bytes;
use forebay_shard::{Key, KeyType, Schema, Shard, Value, ValueType};
use forebay_types::ErrorKind;

use crate::model::Model;

pub fn model() -> Model {
    let record = |key: u64| (Key::U64(key * 3), vec![Value::Text(format!("name {}", key % 7)), Value::Int(key as i64)]);
    let schema = Schema::new("key", KeyType::U64).with("name", ValueType::Text).with("number", ValueType::Int);
    Model::new(schema, (0..200).map(record))
}

#[test]
fn every_flipped_bit_and_every_cut_is_seen() {
    let built = model().build(2.0);
    assert!(!built.layers.is_empty());
    let parts: Vec<Bytes> = built.layers.iter().map(|(_, part)| part.clone()).collect();
    let step = if cfg!(miri) { 997 } else { 13 };
    for at in (0..built.base.len()).step_by(step) {
        let mut damaged = built.base.to_vec();
        damaged[at] ^= 1 << (at % 8);
        // A flip in the padding between sections is no damage; anything else must be seen, where it is used at the latest.
        if let Ok(shard) = Shard::open(damaged.into(), []) {
            let (got, whole) = (shard.get(&Key::U64(3)), shard.verify());
            assert!(got.is_ok() || whole.is_err(), "byte {at}");
            got.into_iter().for_each(|record| assert_eq!(record, model().records.get(&Key::U64(3)).cloned(), "byte {at}"));
        }
        assert!(Shard::open(built.base.slice(..at), []).is_err(), "cut at {at}");
    }
    for part in &parts {
        for at in (0..part.len()).step_by(step) {
            assert!(Shard::open(built.base.clone(), [part.slice(..at)]).is_err(), "cut at {at}");
        }
    }
    let mut damaged = built.base.to_vec();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 16;
    let error = Shard::open(damaged.into(), []).and_then(|shard| shard.verify()).expect_err("damage in the middle");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("section"), "{error}");
}

#[test]
fn a_layer_of_another_shard_is_a_conflict() {
    let built = model().build(2.0);
    let mut other = model();
    other.records.remove(&Key::U64(3));
    let error = Shard::open(other.build(0.0).base, [built.layers[0].1.clone()]).err().expect("not its layer");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(Shard::open(built.layers[0].1.clone(), []).err().map(|error| error.kind()), Some(ErrorKind::Invalid));
}
