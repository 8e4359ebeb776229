//! What a page of an answer costs, in steps.

use bytes::Bytes;

use crate::model::key::{Key, KeyType};
use crate::model::schema::Schema;
use crate::model::value::{Value, ValueType};
use crate::query::predicate::Query;
use crate::shard::Shard;
use crate::steps::tests::steps_of;
use crate::{BuiltShard, LayerId, LayerKind};

/// Every second record is a hit.
const RECORDS: u64 = 200_000;
const HITS: usize = 100_000;
const LIMIT: usize = 10;
/// Steps for each key of a page, at most; a look at a record, hit or not, is a walk over its text.
const STEPS_A_HIT: u64 = 100;

fn word(key: u64) -> &'static str {
    if key.is_multiple_of(2) { "odd job" } else { "even" }
}

fn build(ratio: f64, word: impl Fn(u64) -> &'static str) -> BuiltShard {
    let schema = Schema::new("key", KeyType::U64).with("number", ValueType::Int).with("word", ValueType::Text);
    let mut builder = crate::Builder::new(schema).unwrap();
    for key in 0..RECORDS {
        builder.push(&Key::U64(key), &[Value::Int((key % 7) as i64), Value::Text(word(key).to_string())]).unwrap();
    }
    builder.finish(ratio).unwrap()
}

fn open(built: &BuiltShard, with: impl Fn(&LayerId) -> bool) -> Shard {
    let layers: Vec<Bytes> = built.layers.iter().filter(|(id, _)| with(id)).map(|(_, part)| part.clone()).collect();
    Shard::open(built.base.clone(), layers).unwrap()
}

/// A page anywhere in the answer has the right keys, and costs no more than its keys do.
fn check_pages(shard: &Shard, query: &Query, right: &[u64]) {
    assert_eq!(right.len(), HITS);
    for at in [0, 1, HITS / 2, HITS - LIMIT] {
        let after = at.checked_sub(1).map(|before| Key::U64(right[before]));
        let mut page = None;
        let steps = steps_of(|| page = Some(shard.search(query, Some(LIMIT), after.as_ref()).unwrap()));
        let (page, keys) = (page.unwrap(), &right[at..at + LIMIT]);
        assert_eq!(page.keys.iter().collect::<Vec<_>>(), keys.iter().copied().map(Key::U64).collect::<Vec<_>>());
        assert_eq!(page.next, (at + LIMIT < HITS).then(|| Key::U64(keys[LIMIT - 1])));
        assert!(steps <= LIMIT as u64 * STEPS_A_HIT, "{steps} steps for {LIMIT} of {HITS} hits of {query:?}");
    }
}

#[test]
fn what_stands_often_in_records_is_counted_by_a_look_at_each() {
    let often = |key: u64| if key.is_multiple_of(2) { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } else { "even" };
    let shard = open(&build(0.0, often), |_| false);
    for query in [Query::contains(1, b"a"), Query::regex(1, "aa")] {
        let mut count = 0;
        let steps = steps_of(|| count = shard.count(&query).unwrap());
        assert_eq!(count, HITS as u64);
        assert!(steps <= RECORDS * STEPS_A_HIT, "{steps} steps for {query:?}");
        assert_eq!(shard.search(&query, None, None).unwrap().keys.len(), HITS);
    }
}

#[test]
fn a_page_costs_what_its_keys_cost_not_what_all_hits_do() {
    let built = build(1e9, word);
    let even: Vec<u64> = (0..RECORDS).step_by(2).collect();
    let searches = [
        Query::eq(1, Value::Text("odd job".to_string())),
        Query::prefix(1, b"odd"),
        Query::contains(1, b"job"),
        Query::regex(1, "j.b$"),
        Query::And(vec![Query::contains(1, b"d j"), Query::prefix(1, b"od")]),
    ];
    let sets: [&dyn Fn(&LayerId) -> bool; 5] =
        [&|_| false, &|_| true, &|id| id.kind == LayerKind::Postings, &|id| id.kind == LayerKind::Index, &|id| {
            matches!(id.kind, LayerKind::SaAttribute | LayerKind::Blocks)
        }];
    for with in sets {
        let shard = open(&built, with);
        searches.iter().for_each(|query| check_pages(&shard, query, &even));
    }
}

#[test]
fn hits_that_all_come_late_cost_little_more_than_finding_them_all() {
    const FIRST: u64 = RECORDS - 30_000;
    let built = build(0.0, |key| if key < FIRST { "early" } else { "late" });
    let shard = open(&built, |_| false);
    for query in [Query::prefix(1, b"la"), Query::contains(1, b"te"), Query::regex(1, "l.te$")] {
        let right: Vec<Key> = (FIRST..RECORDS).take(LIMIT).map(Key::U64).collect();
        let (mut page, mut all) = (None, None);
        let steps = steps_of(|| page = Some(shard.search(&query, Some(LIMIT), None).unwrap()));
        let steps_all = steps_of(|| all = Some(shard.search(&query, None, None).unwrap()));
        assert_eq!(page.unwrap().keys.iter().collect::<Vec<_>>(), right);
        assert_eq!(all.unwrap().keys.len() as u64, RECORDS - FIRST);
        assert!(steps < 3 * steps_all, "{steps} steps for a page, {steps_all} for all");
    }
}
