//! A page is cut from the whole answer, wherever it begins and however long it is.

use std::ops::Bound;

use forebay_shard::{Key, KeyType, LayerId, LayerKind, Query, Schema, Shard, Value, ValueType};

use crate::model::Model;

const RECORDS: u64 = 3000;

/// Scattered numbers, the same in each run.
fn scattered(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

fn values(record: u64) -> Vec<Value> {
    let word = ["dam", "weir", "sluice", "penstock", ""][(scattered(record) % 5) as usize];
    let number = Value::Int((scattered(record * 3) % 40) as i64);
    // The first half has no early word, and the last one many.
    let phase = if record > RECORDS / 2 { "late" } else { "early" };
    vec![Value::Text(word.into()), if record.is_multiple_of(11) { Value::Null } else { number }, Value::Text(phase.into())]
}

fn queries() -> Vec<Query> {
    let text = |text: &str| Value::Text(text.into());
    vec![
        Query::All,
        Query::eq(0, text("weir")),
        Query::eq(0, text("")),
        Query::eq(0, text("none")),
        Query::eq(1, Value::Null),
        Query::eq(2, text("late")),
        Query::prefix(0, b"s"),
        Query::prefix(2, b"l"),
        Query::contains(0, b"st"),
        Query::contains(2, b"ar"),
        Query::regex(0, "^s.*ce$"),
        Query::regex(2, "[kl]"),
        Query::range(1, Bound::Included(Value::Int(10)), Bound::Excluded(Value::Int(30))),
        Query::range(1, Bound::Excluded(Value::Int(38)), Bound::Unbounded),
        Query::And(vec![Query::eq(0, text("dam")), Query::contains(2, b"t"), Query::All]),
        Query::And(vec![Query::eq(1, Value::Int(5)), Query::eq(2, text("late"))]),
        Query::And(vec![Query::regex(0, "e"), Query::And(vec![Query::prefix(2, b"e"), Query::regex(2, "y$")])]),
        Query::And(vec![]),
        Query::suffix(0, b"r"),
        Query::suffix(2, b"rly"),
        Query::Or(vec![]),
        Query::And(vec![Query::Or(vec![Query::eq(0, text("dam"))])]),
        Query::Or(vec![Query::eq(0, text("dam")), Query::eq(0, text("dam")), Query::eq(2, text("late"))]),
        Query::And(vec![Query::Or(vec![Query::eq(1, Value::Int(3)), Query::eq(1, Value::Int(3)), Query::eq(1, Value::Int(30))])]),
        Query::Or(vec![Query::eq(0, text("dam")), Query::eq(0, text("weir")), Query::eq(0, text("none"))]),
        Query::Or(vec![Query::eq(1, Value::Int(5)), Query::suffix(0, b"ce"), Query::regex(2, "^l.t")]),
        Query::negated(Query::eq(0, text("weir"))),
        Query::negated(Query::contains(0, b"e")),
        Query::negated(Query::And(vec![Query::prefix(2, b"e"), Query::suffix(0, b"m")])),
        Query::And(vec![
            Query::eq(2, text("late")),
            Query::negated(Query::suffix(0, b"r")),
            Query::negated(Query::eq(1, Value::Null)),
        ]),
        Query::And(vec![Query::regex(0, "(?i)WEIR|SLUICE"), Query::negated(Query::regex(2, "e"))]),
    ]
}

fn check(answers: &[(Query, Vec<Key>)], shard: &Shard, keys: &[Key]) {
    for (query, right) in answers {
        for (at, limit) in [(0, 1), (0, 10), (1, 3), (700, 40), (1500, 7), (2400, 2), (2990, 30)] {
            let after = keys.get(at).filter(|_| at > 0);
            let above: Vec<Key> = right.iter().filter(|key| after.is_none_or(|after| *key > after)).cloned().collect();
            let page = shard.search(query, Some(limit), after).unwrap();
            let shown = &above[..limit.min(above.len())];
            assert_eq!(page.keys.iter().collect::<Vec<_>>(), shown, "{query:?} after {after:?}, {limit}");
            assert_eq!(page.next.as_ref(), shown.last().filter(|_| above.len() > limit), "{query:?} after {after:?}, {limit}");
            assert_eq!(shard.search(query, None, after).unwrap().keys.iter().collect::<Vec<_>>(), above, "{query:?}");
        }
        assert!(shard.search(query, Some(0), None).unwrap().keys.is_empty());
    }
}

fn check_all(key_type: KeyType, key: impl Fn(u64) -> Key) {
    let schema =
        Schema::new("key", key_type).with("word", ValueType::Text).with("number", ValueType::Int).with("phase", ValueType::Text);
    let model = Model::new(schema, (0..RECORDS).map(|record| (key(record), values(record))));
    let keys: Vec<Key> = model.records.keys().cloned().collect();
    let answers: Vec<(Query, Vec<Key>)> = queries().into_iter().map(|query| (query.clone(), model.search(&query))).collect();
    let built = model.build(1e9);
    let kinds: [&dyn Fn(&LayerId) -> bool; 5] = [
        &|_| false,
        &|_| true,
        &|id| id.kind == LayerKind::Postings,
        &|id| matches!(id.kind, LayerKind::IsaAttribute | LayerKind::SaAttribute) && id.slice % 2 == 0,
        &|id| id.kind == LayerKind::Blocks,
    ];
    for with in kinds {
        let layers = built.layers.iter().filter(|(id, _)| with(id)).map(|(_, part)| part.clone());
        check(&answers, &Shard::open(built.base.clone(), layers).unwrap(), &keys);
    }
}

#[test]
fn pages_are_cut_from_the_whole_answer_with_number_keys() {
    check_all(KeyType::U64, |record| Key::U64(u64::MAX - record * 3));
}

#[test]
fn pages_are_cut_from_the_whole_answer_with_string_keys() {
    check_all(KeyType::Bytes, |record| Key::Bytes(format!("key {:06}", record * 7 % 10_000).into_bytes()));
}
