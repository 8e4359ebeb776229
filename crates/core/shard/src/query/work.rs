//! What questions are estimated to take, in steps along psi of a shard without layers: known after the backward search, before any
//! record is found. What layers spare of it shows in the time that a step takes.

use std::cell::Cell;

use super::CHECK_COST;
use super::test::Test;
use crate::base::Base;

/// Of a get beside those along its record.
const GET_STEPS: u64 = 8;
/// Of the backward search of one test.
const SEARCH_STEPS: u64 = 16;
/// Walks from hits to the start of their record go side by side.
const OVERLAP: u64 = 3;
/// A question is estimated to take no more, so that sums of many fit.
const STEPS_MAX: u64 = 1 << 30;

thread_local!(static WORKED: Cell<u64> = const { Cell::new(0) });

/// The estimated steps of all that this thread has begun to answer: what it is more than before is of what was asked in between.
pub fn worked() -> u64 {
    WORKED.get()
}

/// A question of this thread is estimated to take so many steps.
pub(crate) fn begins(steps: u64) {
    debug_assert!(steps <= STEPS_MAX, "{steps} steps of one question");
    WORKED.set(WORKED.get().wrapping_add(steps));
}

/// Steps that a get is estimated to take, of a shard of so many records with so many symbols, or bytes, in all.
pub fn steps_of_get(symbols: u64, records: u64) -> u64 {
    GET_STEPS.saturating_add(symbols / records.max(1)).min(STEPS_MAX)
}

/// The same for finding so many hits.
pub(crate) fn of_hits(base: &Base, hits: u64) -> u64 {
    let (symbols, records) = (base.numbers.symbols, base.numbers.records.max(1));
    // A hit is half a record away from its start.
    let each = (symbols / records / 2 / OVERLAP).max(1);
    hits.saturating_mul(each).saturating_add(SEARCH_STEPS).min(STEPS_MAX)
}

/// The same for finding the first `count` records that pass a test, as they are found.
pub(crate) fn of_search(base: &Base, test: &Test<'_>, count: usize) -> u64 {
    let (records, count) = (base.numbers.records, count as u64);
    let Some(fewest) = test.parts().first() else { return (SEARCH_STEPS + count.min(records)).min(STEPS_MAX) };
    let all = rows_of(test, records);
    let rows = match fewest.rows() {
        0 => 0,
        // How many of them pass it is not known.
        usize::MAX => all,
        // So many records are looked at until there are enough, where hits are evenly among them.
        rows => all.min(count.saturating_mul(records).div_ceil(rows as u64).saturating_mul(CHECK_COST as u64)),
    };
    (of_hits(base, rows) + SEARCH_STEPS * searches(test)).min(STEPS_MAX)
}

/// The same for counting all that pass it.
pub(crate) fn of_count(base: &Base, test: &Test<'_>) -> u64 {
    match test.count(base.records()) {
        Some(_) => (SEARCH_STEPS * searches(test)).clamp(1, STEPS_MAX),
        None => of_search(base, test, usize::MAX),
    }
}

/// Rows that have to be found for all records that pass a test, a look at a record counted as some.
fn rows_of(test: &Test<'_>, records: u64) -> u64 {
    let (rows, check) = (test.rows() as u64, CHECK_COST as u64);
    let every = records.saturating_mul(check);
    match test {
        Test::Rows { .. } | Test::Ends { .. } => rows,
        Test::Contains { .. } => rows.min(every),
        Test::Matches { .. } => rows.saturating_mul(1 + check).min(every),
        Test::All(tests) => {
            let Some((first, others)) = tests.split_first() else { return 0 };
            let look = (first.rows() as u64).min(records).saturating_mul(check);
            others.iter().fold(rows_of(first, records), |all, other| all.saturating_add(rows_of(other, records).min(look)))
        }
        Test::Any(tests) => tests.iter().fold(0, |all: u64, test| all.saturating_add(rows_of(test, records))),
        Test::Not(test) => rows_of(test, records),
    }
}

/// How many tests there are to search for.
fn searches(test: &Test<'_>) -> u64 {
    match test {
        Test::All(tests) | Test::Any(tests) => tests.iter().map(searches).sum(),
        Test::Not(test) => searches(test),
        Test::Rows { rows, .. } => rows.intervals.len() as u64,
        Test::Ends { .. } | Test::Contains { .. } | Test::Matches { .. } => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;
    use crate::model::key::{Key, KeyType};
    use crate::model::schema::Schema;
    use crate::model::value::{Value, ValueType};
    use crate::query::predicate::Query;
    use crate::shard::Shard;

    const RECORDS: u64 = 2000;

    /// One record in ten has the word, one in a thousand the name of its own.
    fn shard() -> Shard {
        let schema = Schema::new("key", KeyType::U64).with("word", ValueType::Text).with("name", ValueType::Text);
        let mut builder = crate::Builder::new(schema).unwrap();
        for key in 0..RECORDS {
            let word = if key % 10 == 0 { "often" } else { "else" };
            let values = [word.to_string(), format!("name {}", key % 1000)].map(Value::Text);
            builder.push(&Key::U64(key), &values).unwrap();
        }
        Shard::open(builder.finish(0.0).unwrap().base, Vec::<bytes::Bytes>::new()).unwrap()
    }

    fn often() -> Query {
        Query::eq(0, Value::Text("often".into()))
    }

    fn rare() -> Query {
        Query::eq(1, Value::Text("name 7".into()))
    }

    /// What a call is counted as while it is answered.
    fn worked_in(call: impl FnOnce()) -> u64 {
        let before = worked();
        call();
        worked() - before
    }

    #[test]
    fn a_search_of_many_hits_weighs_more_after_its_backward_search() {
        let shard = shard();
        let [many, few] = [often(), rare()].map(|query| shard.search_steps(&query, None).unwrap());
        assert!(many > 5 * few, "{many} steps for 200 hits, {few} for 2");
        assert!(shard.search_steps(&Query::eq(0, Value::Text("none".into())), None).unwrap() <= few);
        let page = shard.search_steps(&often(), Some(1)).unwrap();
        assert!(page < many, "two are found by a look at twenty records: {page} of {many}");
        assert!(shard.count_steps(&often()).unwrap() <= SEARCH_STEPS, "its rows tell");
        assert!(shard.count_steps(&Query::contains(0, b"ften")).unwrap() > 100);
        assert!(shard.search_steps(&Query::regex(1, "[0-9]"), None).unwrap() >= RECORDS, "each record is looked at");
        assert!(shard.search_steps(&Query::regex(0, "("), None).is_err());
    }

    #[test]
    fn what_it_is_weighed_as_is_what_it_counts_for_while_it_is_answered() {
        let shard = shard();
        let from = Bound::Included(Value::Text("name 2".into()));
        let queries = [
            Query::All,
            often(),
            rare(),
            Query::prefix(1, b"name 1"),
            Query::suffix(1, b"7"),
            Query::contains(0, b"te"),
            Query::regex(1, "e 1.7$"),
            Query::range(1, from, Bound::Unbounded),
            Query::And(vec![often(), Query::contains(1, b"11")]),
            Query::Or(vec![Query::suffix(1, b"7"), often()]),
            Query::negated(Query::contains(1, b"7")),
        ];
        for query in &queries {
            for limit in [None, Some(0), Some(3), Some(5000)] {
                let counted = worked_in(|| drop(shard.search(query, limit, None).unwrap()));
                assert_eq!(counted, shard.search_steps(query, limit).unwrap(), "{query:?}, {limit:?}");
                assert!(counted > 0);
                if limit.is_some() {
                    assert!(counted <= shard.search_steps(query, None).unwrap(), "a limit makes nothing longer: {query:?}");
                }
            }
            let counted = worked_in(|| assert!(shard.count(query).unwrap() <= RECORDS));
            assert_eq!(counted, shard.count_steps(query).unwrap(), "{query:?}");
        }
        let counted = worked_in(|| assert!(shard.get(&Key::U64(7)).unwrap().is_some()));
        assert_eq!((counted, shard.get_steps() > GET_STEPS), (shard.get_steps(), true));
    }

    #[test]
    fn what_a_manifest_says_of_a_shard_makes_no_get_endless() {
        assert_eq!((steps_of_get(1000, 10), steps_of_get(0, 0)), (GET_STEPS + 100, GET_STEPS));
        assert_eq!(steps_of_get(u64::MAX, 0), STEPS_MAX);
    }
}
