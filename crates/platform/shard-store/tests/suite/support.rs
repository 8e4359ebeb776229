//! Records, a plain map of them that knows the right answers, and shards of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_shard::{Key, Value};
use forebay_shard_store::{Column, ColumnKind, Columns, Condition, Literal, Store, Test};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

pub type Records = BTreeMap<Key, Vec<Value>>;

/// A key, text, bytes, a number and a day.
pub fn columns() -> Columns {
    let all = vec![
        Column::new("id", ColumnKind::Int),
        Column::new("word", ColumnKind::Text),
        Column::new("bytes", ColumnKind::Binary),
        Column::new("number", ColumnKind::Int),
        Column::new("day", ColumnKind::Date),
    ];
    Columns::new(all, "id").unwrap()
}

pub fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// Values with few letters, so that much is found; now and then null, empty, or any bytes.
pub fn values(random: &mut StdRng) -> Vec<Value> {
    let word: String = (0..random.random_range(0..6)).map(|_| ['a', 'b', 'ü', ' '][random.random_range(0..4)]).collect();
    let bytes: Vec<u8> =
        (0..random.random_range(0..4)).map(|_| [0, 1, 255, random.random()][random.random_range(0..4)]).collect();
    let or_null = |random: &mut StdRng, value| if random.random_bool(0.05) { Value::Null } else { value };
    vec![
        or_null(random, Value::Text(word)),
        or_null(random, Value::Bytes(bytes)),
        {
            let value = Value::Int(random.random_range(-20..20));
            or_null(random, value)
        },
        {
            let value = Value::Date(random.random_range(9000..9030));
            or_null(random, value)
        },
    ]
}

pub fn records(random: &mut StdRng, count: usize) -> Records {
    (0..count).map(|_| (Key::U64(random.random_range(0..count as u64 * 3)), values(random))).collect()
}

/// A shard of so many records in a folder of its own, which is the first of what is given.
pub fn built(seed: u64, count: usize, size: f64) -> (TempDir, PathBuf, Records) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let all = records(&mut random(seed), count);
    build(&path, &all, size);
    (folder, path, all)
}

pub fn build(path: &Path, records: &Records, size: f64) {
    let mut building = Store::build(path, columns(), size).unwrap();
    for (key, values) in records {
        building.push(key.clone(), values.clone()).unwrap();
    }
    building.finish().unwrap();
}

/// A condition at random, with the answer to it.
pub fn condition(random: &mut StdRng, records: &Records) -> (Condition, Vec<Key>) {
    let one = |random: &mut StdRng| {
        let values = values(random);
        let text = |value: &Value| if let Value::Text(text) = value { text.clone() } else { "a".to_string() };
        let literal = |value: &Value| match value {
            Value::Null => Literal::Null,
            Value::Text(text) => Literal::Text(text.clone()),
            Value::Bytes(bytes) => Literal::Bytes(bytes.clone()),
            Value::Int(number) => Literal::Number((*number).into()),
            other => panic!("{other:?}"),
        };
        let column = |column: &str, test| Condition::Column { column: column.to_string(), test };
        match random.random_range(0..12) {
            0 => column("word", Test::Eq(literal(&values[0]))),
            1 => column("bytes", Test::Eq(literal(&values[1]))),
            2 => column("number", Test::Eq(literal(&values[2]))),
            3 => column("word", Test::Prefix(Literal::Text(text(&values[0])))),
            4 => column("word", Test::Contains(Literal::Text(text(&values[0])))),
            5 => column("word", Test::Regex(Literal::Text("a.*b|üü".to_string()))),
            6 => column("word", Test::Suffix(Literal::Text(text(&values[0])))),
            7 => column("number", Test::In([-3, 4, 5, 99].map(|number: i64| Literal::Number(number.into())).to_vec())),
            8 => column("word", Test::In(vec![literal(&values[0]), Literal::Text("ab".into()), Literal::Null])),
            9 => {
                let of: fn(Literal) -> Test = [Test::Eq, Test::Prefix, Test::Suffix, Test::Contains][random.random_range(0..4)];
                column("word", Test::IgnoringCase(Box::new(of(Literal::Text(text(&values[0]).to_uppercase())))))
            }
            _ => {
                let from = random.random_range(-25..20);
                let (from, to) = (Literal::Number(from.into()), Literal::Number((from + 5).into()));
                column("number", Test::Range(Some((from, true)), Some((to, false))))
            }
        }
    };
    let condition = match random.random_range(0..10) {
        0 | 1 => Condition::And(vec![one(random), one(random)]),
        2 => Condition::Or(vec![one(random), one(random), one(random)]),
        3 => Condition::Not(Box::new(one(random))),
        4 => Condition::And(vec![one(random), Condition::Not(Box::new(Condition::Or(vec![one(random), one(random)])))]),
        _ => one(random),
    };
    let answer = answer(&condition, records);
    (condition, answer)
}

/// The right answer, by looking at every record.
pub fn answer(condition: &Condition, records: &Records) -> Vec<Key> {
    records.iter().filter(|(_, values)| meets(condition, values)).map(|(key, _)| key.clone()).collect()
}

fn meets(condition: &Condition, values: &[Value]) -> bool {
    let (column, test) = match condition {
        Condition::And(all) => return all.iter().all(|one| meets(one, values)),
        Condition::Or(all) => return all.iter().any(|one| meets(one, values)),
        Condition::Not(one) => return !meets(one, values),
        Condition::Column { column, test: Test::In(wanted) } => {
            let one = |wanted: &Literal| Condition::Column { column: column.clone(), test: Test::Eq(wanted.clone()) };
            return wanted.iter().any(|wanted| meets(&one(wanted), values));
        }
        Condition::Column { column, test } => (column.as_str(), test),
    };
    let value = &values[["word", "bytes", "number", "day"].iter().position(|name| *name == column).unwrap()];
    match (test, value) {
        (Test::Eq(Literal::Null), value) => *value == Value::Null,
        (_, Value::Null) => false,
        (Test::Eq(Literal::Text(wanted)), Value::Text(text)) => text == wanted,
        (Test::Eq(Literal::Bytes(wanted)), Value::Bytes(bytes)) => bytes == wanted,
        (Test::Eq(Literal::Number(wanted)), Value::Int(number)) => wanted.as_i64() == Some(*number),
        (Test::Prefix(Literal::Text(wanted)), Value::Text(text)) => text.starts_with(wanted.as_str()),
        (Test::Contains(Literal::Text(wanted)), Value::Text(text)) => text.contains(wanted.as_str()),
        (Test::Suffix(Literal::Text(wanted)), Value::Text(text)) => text.ends_with(wanted.as_str()),
        (Test::IgnoringCase(test), Value::Text(text)) => {
            let text = text.to_lowercase();
            match test.as_ref() {
                Test::Eq(Literal::Text(wanted)) => text == wanted.to_lowercase(),
                Test::Prefix(Literal::Text(wanted)) => text.starts_with(&wanted.to_lowercase()),
                Test::Suffix(Literal::Text(wanted)) => text.ends_with(&wanted.to_lowercase()),
                Test::Contains(Literal::Text(wanted)) => text.contains(&wanted.to_lowercase()),
                other => panic!("{other:?}"),
            }
        }
        (Test::Regex(_), Value::Text(text)) => {
            text.contains("üü") || text.find('a').is_some_and(|first| text[first..].contains('b'))
        }
        (Test::Range(Some((Literal::Number(from), true)), Some((Literal::Number(to), false))), Value::Int(number)) => {
            (from.as_i64().unwrap()..to.as_i64().unwrap()).contains(number)
        }
        other => panic!("{other:?}"),
    }
}

/// Everything that is asked must be answered as the map answers it.
#[track_caller]
pub fn check(store: &Store, records: &Records, seed: u64) {
    let mut random = random(seed);
    assert_eq!(store.count_all().unwrap(), records.len() as u64);
    for _ in 0..40 {
        let key = Key::U64(random.random_range(0..records.len() as u64 * 3 + 3));
        assert_eq!(store.get(&key, None).unwrap().as_ref(), records.get(&key), "{key}");
        let two = store.get(&key, Some(&[3, 0])).unwrap();
        assert_eq!(two, records.get(&key).map(|values| vec![values[3].clone(), values[0].clone()]), "{key}");
    }
    for _ in 0..25 {
        let (condition, right) = condition(&mut random, records);
        assert_eq!(store.search(&condition, None, None).unwrap(), right, "{condition:?}");
        assert_eq!(store.count(&condition).unwrap(), right.len() as u64, "{condition:?}");
        let after = right.get(right.len() / 3);
        let page: Vec<Key> = right.iter().filter(|key| after.is_none_or(|after| *key > after)).take(5).cloned().collect();
        assert_eq!(store.search(&condition, after, Some(5)).unwrap(), page, "{condition:?}");
    }
}
