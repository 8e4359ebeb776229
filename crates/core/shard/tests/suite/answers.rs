//! Answers are right at every setting of the dial, and while it turns.

use std::cell::Cell;
use std::ops::Bound;

use forebay_shard::{Key, KeyType, LayerId, Query, Record, Schema, Shard, Value, ValueType};
use forebay_types::{Error, ErrorKind};
use proptest::prelude::*;

use crate::model::Model;

fn schema(key: KeyType) -> Schema {
    Schema::new("key", key)
        .with("bytes", ValueType::Bytes)
        .with("number", ValueType::Int)
        .with("text", ValueType::Text)
        .with("more", ValueType::Bytes)
}

fn string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'c')], 0..6),
        1 => prop::collection::vec(any::<u8>(), 0..12),
        1 => prop::collection::vec(0u8..6, 0..4),
        1 => Just(b"penstock".to_vec()),
    ]
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let or_null = |value: BoxedStrategy<Value>| prop_oneof![9 => value, 1 => Just(Value::Null)];
    (
        or_null(string().prop_map(Value::Bytes).boxed()),
        or_null(prop_oneof![(-5i64..5).boxed(), any::<i64>().boxed()].prop_map(Value::Int).boxed()),
        or_null(prop_oneof![Just("grün".to_owned()), "[a-c]{0,5}", Just("∀x".to_owned())].prop_map(Value::Text).boxed()),
        or_null(string().prop_map(Value::Bytes).boxed()),
    )
        .prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

fn bound<T: std::fmt::Debug + Clone>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = Bound<T>> {
    prop_oneof![Just(Bound::Unbounded), value.clone().prop_map(Bound::Included), value.prop_map(Bound::Excluded)]
}

fn query() -> impl Strategy<Value = Query> {
    let strings = || prop_oneof![Just(0usize), Just(3usize)];
    let bytes = || string().prop_map(Value::Bytes).boxed();
    let simple = prop_oneof![
        Just(Query::All),
        (strings(), bytes()).prop_map(|(attribute, value)| Query::eq(attribute, value)),
        (0usize..4).prop_map(|attribute| Query::eq(attribute, Value::Null)),
        (-5i64..5).prop_map(|value| Query::eq(1, Value::Int(value))),
        (strings(), string()).prop_map(|(attribute, prefix)| Query::prefix(attribute, prefix)),
        (strings(), string()).prop_map(|(attribute, suffix)| Query::suffix(attribute, suffix)),
        prop_oneof![Just("n"), Just("ün"), Just("x"), Just("")].prop_map(|suffix| Query::suffix(2, suffix)),
        (strings(), string()).prop_map(|(attribute, bytes)| Query::contains(attribute, bytes)),
        prop_oneof![Just("a+b"), Just("^a"), Just("(bc|cb)$"), Just("ü"), Just("x?b[ac]"), Just("(?i)GR"), Just("(?i)^(?:Ab)")]
            .prop_map(|text| Query::regex(2, text)),
        (strings(), bound(bytes()), bound(bytes())).prop_map(|(attribute, from, to)| Query::range(attribute, from, to)),
        (bound((-6i64..6).prop_map(Value::Int)), bound((-6i64..6).prop_map(Value::Int)))
            .prop_map(|(from, to)| Query::range(1, from, to)),
    ];
    simple.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Query::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Query::Or),
            inner.prop_map(Query::negated),
        ]
    })
}

/// Every layer the shard can have.
fn all_layers(shard: &Shard) -> Vec<LayerId> {
    shard.dial(1e9, &shard.counters())
}

fn build(shard: &Shard, ids: &[LayerId]) -> Vec<bytes::Bytes> {
    let builder = shard.layer_builder(ids).unwrap();
    for step in builder.steps() {
        builder.run(step).unwrap();
    }
    builder.finish().unwrap().into_iter().map(|(_, part)| part).collect()
}

fn check_all_settings(model: &Model, keys: &[Key], queries: &[Query]) {
    model.check_suffixes(keys, queries);
    let built = model.build(0.0);
    let shard = Shard::open(built.base.clone(), built.layers.into_iter().map(|(_, part)| part)).unwrap();
    model.check(&shard, keys, queries);
    let ids = all_layers(&shard);
    let parts = build(&shard, &ids);
    let every = ids.len().div_ceil(5).max(1);
    // What is built from chains is what is built from the text.
    let at_once = model.build(1e9);
    let mut both: Vec<_> = ids.iter().zip(&parts).map(|(id, _)| *id).collect();
    both.sort();
    assert_eq!(at_once.layers.iter().map(|(id, _)| *id).collect::<Vec<_>>(), both);
    for ((id, at_once), part) in at_once.layers.iter().zip(&parts) {
        assert!(at_once == part, "layer {id}");
    }
    for (step, part) in parts.iter().enumerate() {
        let id = shard.add_layer(part.clone()).unwrap();
        assert!(shard.layers().iter().any(|layer| layer.id == id));
        if step % every == 0 {
            model.check(&shard, keys, queries);
        }
    }
    model.check(&shard, keys, queries);
    for (step, id) in ids.iter().enumerate() {
        shard.replace_layers(&[*id], &[]);
        assert!(shard.layers().iter().all(|layer| layer.id != *id));
        if step % every == every / 2 {
            model.check(&shard, keys, queries);
        }
    }
    assert_eq!(shard.layers(), []);
    // Filled by the queries themselves; what is full is sealed, and is what a builder makes.
    let fillable: Vec<_> = ids.iter().filter(|id| shard.begin_filling(**id).is_ok()).copied().collect();
    model.check(&shard, keys, queries);
    model.check(&shard, keys, queries);
    for id in fillable {
        if let Some(part) = shard.seal(id) {
            let (_, expected) = at_once.layers.iter().find(|(other, _)| *other == id).unwrap();
            assert!(part == expected, "sealed {id}");
            shard.add_layer(part).unwrap();
        }
    }
    model.check(&shard, keys, queries);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn number_keys(
        records in prop::collection::btree_map(prop_oneof![0u64..50, any::<u64>()], values(), 0..40),
        keys in prop::collection::vec(0u64..60, 0..4),
        queries in prop::collection::vec(query(), 8),
    ) {
        let records = records.into_iter().map(|(key, values)| (Key::U64(key), values));
        let keys: Vec<Key> = keys.into_iter().map(Key::U64).collect();
        check_all_settings(&Model::new(schema(KeyType::U64), records), &keys, &queries);
    }

    #[test]
    fn string_keys(
        records in prop::collection::btree_map(string(), values(), 0..60),
        keys in prop::collection::vec(string(), 0..4),
        queries in prop::collection::vec(query(), 8),
    ) {
        let records = records.into_iter().map(|(key, values)| (Key::Bytes(key), values));
        let keys: Vec<Key> = keys.into_iter().map(Key::Bytes).collect();
        check_all_settings(&Model::new(schema(KeyType::Bytes), records), &keys, &queries);
    }
}

#[test]
fn no_record_and_one_record() {
    let queries = [
        Query::All,
        Query::eq(0, Value::Null),
        Query::contains(0, "a"),
        Query::regex(2, "."),
        Query::prefix(3, ""),
        Query::suffix(0, [255]),
        Query::suffix(2, ""),
        Query::Or(Vec::new()),
        Query::negated(Query::contains(0, "a")),
        Query::negated(Query::Or(vec![Query::eq(3, Value::Null), Query::suffix(3, "a")])),
    ];
    let keys = [Key::U64(0), Key::U64(7), Key::U64(u64::MAX)];
    check_all_settings(&Model::new(schema(KeyType::U64), []), &keys, &queries);
    let one = vec![Value::Bytes(vec![0, 255]), Value::Int(i64::MIN), Value::Text(String::new()), Value::Null];
    check_all_settings(&Model::new(schema(KeyType::U64), [(Key::U64(7), one)]), &keys, &queries);
}

#[test]
fn all_byte_values_in_keys_and_values() {
    let record = |byte: u8| {
        (
            Key::Bytes(vec![byte]),
            vec![
                Value::Bytes(vec![byte]),
                Value::Int(i64::from(byte) - 100),
                Value::Text(char::from(byte).to_string()),
                Value::Bytes((byte / 8 * 8..=byte).collect()),
            ],
        )
    };
    let model = Model::new(schema(KeyType::Bytes), (0..=255).map(record));
    let mut queries: Vec<Query> = (0..=255u8).step_by(37).map(|byte| Query::contains(3, [byte])).collect();
    queries.extend((0..=255u8).step_by(37).map(|byte| Query::eq(0, Value::Bytes(vec![byte]))));
    queries.extend((0..=255u8).step_by(29).map(|byte| Query::suffix(3, [byte])));
    queries.extend((0..=255u8).step_by(41).map(|byte| Query::negated(Query::suffix(0, [byte]))));
    queries.push(Query::Or((0..=255u8).step_by(3).map(|byte| Query::eq(0, Value::Bytes(vec![byte]))).collect()));
    queries.push(Query::range(0, Bound::Included(Value::Bytes(vec![3])), Bound::Excluded(Value::Bytes(vec![200]))));
    check_all_settings(&model, &[], &queries);
}

#[test]
fn a_later_record_of_a_key_takes_the_place_of_an_earlier_one() {
    let mut builder = forebay_shard::Builder::new(Schema::new("key", KeyType::U64).with("value", ValueType::Int)).unwrap();
    for (key, value) in [(5, 1), (3, 2), (5, 3), (1, 4), (3, 5)] {
        builder.push(&Key::U64(key), &[Value::Int(value)]).unwrap();
    }
    let built = builder.finish(0.0).unwrap();
    let shard = Shard::open(built.base, []).unwrap();
    assert_eq!(shard.info().records, 3);
    assert_eq!(shard.info().input_bytes, 3 * (8 + 1 + 1));
    for (key, value) in [(1, 4), (3, 5), (5, 3)] {
        assert_eq!(shard.get(&Key::U64(key)).unwrap(), Some(vec![Value::Int(value)]));
    }
}

#[test]
fn the_only_null_of_few_values_may_be_the_first() {
    let schema = Schema::new("key", KeyType::U64).with("few", ValueType::Bool).with("many", ValueType::Text);
    let schema = schema.with("one", ValueType::Text).with("none", ValueType::Text);
    for nulls in 1..4 {
        let few = |at: u64| if at < nulls { Value::Null } else { Value::Bool(at.is_multiple_of(2)) };
        let record =
            |at: u64| (Key::U64(at), vec![few(at), Value::Text(format!("{at:040}")), Value::Text("one".into()), Value::Null]);
        let model = Model::new(schema.clone(), (0..200).map(record));
        let keys: Vec<_> = (0..200).map(Key::U64).collect();
        check_all_settings(&model, &keys, &[Query::eq(0, Value::Null), Query::eq(0, Value::Bool(true))]);
    }
}

#[test]
fn a_search_ends_when_nobody_waits_for_it() {
    let text = |number: u64| Value::Text(format!("x{number}a"));
    let record = |number: u64| (Key::U64(number), vec![Value::Null, Value::Null, text(number), Value::Null]);
    let model = Model::new(schema(KeyType::U64), (0..2000).map(record));
    let shard = Shard::open(model.build(0.0).base, []).unwrap();
    // By a look at each record, and by walks.
    for query in [Query::regex(2, "[a-z][0-9]+[a-z]"), Query::contains(2, "a")] {
        let asked = Cell::new(0);
        let waits = || {
            asked.set(asked.get() + 1);
            Ok(())
        };
        let found = shard.search_while(&query, None, None, &waits).unwrap().keys.iter().count();
        assert!(found == 2000 && asked.get() > 0, "{found}, asked {} times: {query:?}", asked.get());
        let gone = || Err(Error::closed("nobody waits"));
        for limit in [None, Some(1500)] {
            let ended = shard.search_while(&query, limit, None, &gone).unwrap_err();
            assert_eq!(ended.kind(), ErrorKind::Closed, "{query:?}");
        }
        assert_eq!(shard.count_while(&query, &gone).unwrap_err().kind(), ErrorKind::Closed, "{query:?}");
        assert_eq!(shard.search(&query, Some(1500), None).unwrap().keys.iter().count(), 1500);
    }
}

#[test]
fn what_is_not_possible_is_invalid() {
    let model = Model::new(schema(KeyType::U64), [(Key::U64(1), vec![Value::Null; 4])]);
    let shard = Shard::open(model.build(0.0).base, []).unwrap();
    for query in [
        Query::eq(4, Value::Null),
        Query::prefix(1, "a"),
        Query::eq(1, Value::Bool(true)),
        Query::regex(2, "("),
        Query::suffix(1, "a"),
    ] {
        assert_eq!(shard.search(&query, None, None).unwrap_err().kind(), forebay_types::ErrorKind::Invalid, "{query:?}");
        // Also where another part has said already that nothing is found.
        let below = Query::And(vec![Query::Or(Vec::new()), Query::negated(query.clone())]);
        assert!(shard.search(&below, Some(1), None).is_err() && shard.count(&below).is_err(), "{below:?}");
    }
    assert!(shard.get_into(&Key::U64(1), Some(&[4]), &mut Record::new()).is_err());
    assert!("sa.1.0".parse::<LayerId>().is_ok() && "sb.1.0".parse::<LayerId>().is_err());
}
