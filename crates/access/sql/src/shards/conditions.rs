//! What of a statement's conditions a dataset of shards answers.

use std::collections::BTreeSet;

use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown as PushDown};
use datafusion::scalar::ScalarValue;
use forebay_shard::{Key, KeyRange};
use forebay_shard_store::{Columns, Condition, Literal, Test};

use super::ranges::ranges_of;
use super::tested::{and, column, literal, not, tested};

/// What a dataset is asked: records by their keys, or those that meet all conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// None where keys don't say it.
    pub(super) keys: Option<BTreeSet<Key>>,
    pub(super) conditions: Vec<Condition>,
    /// Ranges that have all keys; none where nothing says it.
    pub(super) ranges: Option<Vec<KeyRange>>,
}

/// Whether a dataset answers a filter: the rows of one that it answers exactly need no other look. Says the same of a filter
/// whatever stands beside it, as the engine asks again for what it has not handed down yet.
pub(super) fn verdict(filter: &Expr, columns: &Columns) -> PushDown {
    match (keys(filter, columns), conditions(filter, columns)) {
        (Some(_), _) | (None, Some((_, true))) => PushDown::Exact,
        (None, Some((_, false))) => PushDown::Inexact,
        (None, None) => PushDown::Unsupported,
    }
}

/// What to ask for `filters`, and which of them are still to be looked at, by their place.
///
/// Keys go before all else: reading the few records that they name is less than any search.
pub(super) fn asked(filters: &[Expr], columns: &Columns) -> (Asked, Vec<usize>) {
    let by_key: Vec<_> = filters.iter().map(|filter| keys(filter, columns)).collect();
    let all = by_key.iter().flatten().cloned().reduce(|all, keys| all.intersection(&keys).cloned().collect());
    if all.is_some() {
        let left = by_key.iter().enumerate().filter(|(_, keys)| keys.is_none()).map(|(place, _)| place).collect();
        return (Asked { keys: all, ..Asked::default() }, left);
    }
    let (mut conditions, mut left) = (Vec::<Condition>::new(), Vec::new());
    for (place, filter) in filters.iter().enumerate() {
        // The engine makes filters simpler once they are handed down: what is none to a shard any more is looked at above it.
        let Some((more, _)) = self::conditions(filter, columns) else {
            left.push(place);
            continue;
        };
        let both: Vec<Condition> = conditions.iter().cloned().chain(more).collect();
        // Together they may be more than a shard is asked at once.
        if Condition::And(both.clone()).check().is_ok() { conditions = both } else { left.push(place) }
    }
    (Asked { keys: None, conditions, ranges: ranges_of(filters, columns) }, left)
}

/// The keys that a filter names, where it names keys and nothing else.
fn keys(filter: &Expr, columns: &Columns) -> Option<BTreeSet<Key>> {
    let key = |value: &Expr| match literal(value)? {
        // Nothing is equal to null.
        Literal::Null => Some(None),
        literal => columns.key_of(&literal).ok().map(Some),
    };
    let is_key = |expr: &Expr| column(expr).is_some_and(|name| name == columns.key().name);
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let value = if is_key(left) { right } else { is_key(right).then_some(left)? };
            key(value).map(|key| key.into_iter().collect())
        }
        Expr::InList(InList { expr, list, negated: false }) if is_key(expr) => {
            list.iter().map(key).collect::<Option<Vec<_>>>().map(|keys| keys.into_iter().flatten().collect())
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(keys(left, columns)?.into_iter().chain(keys(right, columns)?).collect())
        }
        // What the engine makes of `key = null`: true of no key.
        Expr::Literal(value, _) if value.is_null() || *value == ScalarValue::Boolean(Some(false)) => Some(BTreeSet::new()),
        _ => None,
    }
}

/// The conditions that all rows of a filter meet, and whether those that meet them are its rows.
fn conditions(filter: &Expr, columns: &Columns) -> Option<(Vec<Condition>, bool)> {
    let (condition, is_all) = condition(filter, true, 0, columns)?;
    let conditions = match condition {
        Condition::And(all) => all,
        one => vec![one],
    };
    Condition::And(conditions.clone()).check().is_ok().then_some((conditions, is_all))
}

/// What stands deeper in a filter is left to the engine.
const DEPTH_MAX: usize = 16;

/// What all rows meet of which a filter is true, or false, and whether those that meet it are these rows. A filter of nulls is neither,
/// where a shard's `not` holds of them.
fn condition(filter: &Expr, truth: bool, depth: usize, columns: &Columns) -> Option<(Condition, bool)> {
    if depth > DEPTH_MAX {
        return None;
    }
    match filter {
        Expr::Not(filter) => condition(filter, !truth, depth + 1, columns),
        Expr::IsNull(expr) => is_null(expr, truth, columns).map(|condition| (condition, true)),
        Expr::IsNotNull(expr) => is_null(expr, !truth, columns).map(|condition| (condition, true)),
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let parts = operands(filter, *op).into_iter().map(|part| condition(part, truth, depth + 1, columns));
            if (*op == Operator::And) == truth { all_of(parts.collect()) } else { any_of(parts.collect()) }
        }
        filter => tested(filter)?.condition(truth, columns),
    }
}

/// What stands between the operators of a chain.
fn operands(filter: &Expr, joined: Operator) -> Vec<&Expr> {
    let (mut operands, mut left) = (Vec::new(), vec![filter]);
    while let Some(part) = left.pop() {
        match part {
            Expr::BinaryExpr(BinaryExpr { left: first, op, right }) if *op == joined => left.extend([&**right, &**first]),
            part => operands.push(part),
        }
    }
    operands
}

/// Of parts that all hold those that a shard is asked for.
fn all_of(parts: Vec<Option<(Condition, bool)>>) -> Option<(Condition, bool)> {
    let is_all = parts.iter().all(|part| matches!(part, Some((_, true))));
    let conditions: Vec<_> = parts.into_iter().flatten().map(|(condition, _)| condition).collect();
    (!conditions.is_empty()).then(|| (and(conditions), is_all))
}

/// Parts of which one holds: a shard has to be asked for each.
fn any_of(parts: Vec<Option<(Condition, bool)>>) -> Option<(Condition, bool)> {
    let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
    let is_all = parts.iter().all(|(_, is_all)| *is_all);
    let mut conditions = Vec::with_capacity(parts.len());
    for (condition, _) in parts {
        match condition {
            Condition::Or(more) => conditions.extend(more),
            one => conditions.push(one),
        }
    }
    Some((Condition::Or(conditions), is_all))
}

fn is_null(expr: &Expr, truth: bool, columns: &Columns) -> Option<Condition> {
    let column = column(expr)?;
    columns.attribute(&column).ok()?;
    let null = Condition::Column { column, test: Test::Eq(Literal::Null) };
    Some(if truth { null } else { not(null) })
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};
    use forebay_shard_store::{Column, ColumnKind};

    use super::*;

    fn columns() -> Columns {
        let column = |name: &str, kind| Column { name: name.to_string(), kind };
        let all = vec![
            column("id", ColumnKind::Int),
            column("name", ColumnKind::Text),
            column("day", ColumnKind::Date),
            column("price", ColumnKind::Decimal(2)),
            column("weight", ColumnKind::Float64),
        ];
        Columns::new(all, "id").unwrap()
    }

    fn verdict(filter: &Expr) -> (Asked, PushDown) {
        let (asked, _) = asked(std::slice::from_ref(filter), &columns());
        (asked, super::verdict(filter, &columns()))
    }

    fn text(text: &str) -> Literal {
        Literal::Text(text.to_string())
    }

    #[test]
    fn keys_are_read_and_what_is_beside_them_is_left() {
        let (by_key, of_name) = (col("id").in_list(vec![lit(3i64), lit(-1i64), lit(3i64)], false), col("name").eq(lit("x")));
        let (asked, left) = asked(&[of_name.clone(), by_key.clone()], &columns());
        assert_eq!(asked.keys, Some([Key::U64(3), Key::U64(-1i64 as u64)].into_iter().collect()));
        assert_eq!((asked.conditions, left), (vec![], vec![0]));
        let (both, left) = super::asked(&[by_key, col("id").eq(lit(3i64))], &columns());
        assert_eq!((both.keys, left), (Some([Key::U64(3)].into_iter().collect()), vec![]));
        assert_eq!(verdict(&of_name).1, PushDown::Exact);
        let either = lit(1i64).eq(col("id")).or(col("id").eq(lit(2i64)));
        assert_eq!(verdict(&either).0.keys.map(|keys| keys.len()), Some(2));
        assert_eq!(verdict(&col("id").eq(lit(ScalarValue::Int64(None)))).0.keys, Some(BTreeSet::new()));
        assert_eq!(verdict(&col("id").gt(lit(1i64))).1, PushDown::Unsupported, "keys are not searched");
    }

    #[test]
    fn what_the_engine_makes_simpler_after_it_was_handed_down_still_holds() {
        // `id in (5, null)` is handed down as keys, and comes to the scan like this.
        let simpler = col("id").eq(lit(5i64)).or(lit(ScalarValue::Boolean(None)));
        let (asked, pushed) = verdict(&simpler);
        assert_eq!((asked.keys, pushed), (Some([Key::U64(5)].into_iter().collect()), PushDown::Exact));
        assert_eq!(verdict(&lit(ScalarValue::Boolean(None))).0.keys, Some(BTreeSet::new()), "of `id in (null)`");
        let (asked, left) = super::asked(&[col("id").gt(lit(1i64)), col("name").eq(lit("x"))], &columns());
        assert_eq!((asked.conditions.len(), left), (1, vec![0]), "what is no question to a shard is not lost");
    }

    #[test]
    fn patterns_are_answered_as_far_as_they_go() {
        let tests = |pattern: &str| {
            let (asked, verdict) = verdict(&col("name").like(lit(pattern)));
            let tests = asked.conditions.into_iter().map(|condition| match condition {
                Condition::Column { test, .. } => test,
                other => panic!("{other:?}"),
            });
            (tests.collect::<Vec<_>>(), verdict)
        };
        assert_eq!(tests("a"), (vec![Test::Eq(text("a"))], PushDown::Exact));
        assert_eq!(tests("a%"), (vec![Test::Prefix(text("a"))], PushDown::Exact));
        assert_eq!(tests("%a%"), (vec![Test::Contains(text("a"))], PushDown::Exact));
        assert_eq!(tests("%a"), (vec![Test::Suffix(text("a"))], PushDown::Exact));
        assert_eq!(tests("a%b"), (vec![Test::Prefix(text("a")), Test::Suffix(text("b"))], PushDown::Inexact));
        assert_eq!(tests("a_"), (vec![Test::Prefix(text("a"))], PushDown::Inexact));
        assert_eq!(tests("_a"), (vec![Test::Suffix(text("a"))], PushDown::Inexact));
        assert_eq!(tests("%a%b%"), (vec![Test::Contains(text("a")), Test::Contains(text("b"))], PushDown::Inexact));
        for left_to_the_engine in ["%", "", "__", "a\\%"] {
            let (tests, verdict) = tests(left_to_the_engine);
            let is_whole = left_to_the_engine.is_empty();
            assert_eq!(verdict, if is_whole { PushDown::Exact } else { PushDown::Unsupported }, "{tests:?}");
        }
    }

    #[test]
    fn what_is_put_together_is_asked_where_each_part_is() {
        let asked = |filter: Expr| {
            let (asked, verdict) = verdict(&filter);
            (Condition::And(asked.conditions).to_json(), verdict)
        };
        let all = |conditions: serde_json::Value| serde_json::json!({"and": conditions});
        let (name, day) = (|value: &str| col("name").eq(lit(value)), || col("day").is_null());
        let (x, y) = (serde_json::json!({"attr": "name", "eq": "x"}), serde_json::json!({"attr": "name", "eq": "y"}));
        let is_null = |column: &str| serde_json::json!({"attr": column, "eq": null});
        let either = all(serde_json::json!([{"or": [x, y, is_null("day")]}]));
        assert_eq!(asked(name("x").or(name("y")).or(day())), (either, PushDown::Exact));
        // `not` of SQL is never true of nulls.
        let neither = all(serde_json::json!([{"not": x}, {"not": is_null("name")}, {"not": is_null("day")}]));
        assert_eq!(asked(!(name("x").or(day()))), (neither, PushDown::Exact));
        let other = all(serde_json::json!([{"not": x}, {"not": is_null("name")}]));
        assert_eq!(asked(col("name").not_eq(lit("x"))), (other, PushDown::Exact));
        let list = |negated| col("name").in_list(vec![lit("x"), lit("y")], negated);
        let of_list = serde_json::json!({"attr": "name", "in": ["x", "y"]});
        assert_eq!(asked(list(false)), (all(serde_json::json!([of_list])), PushDown::Exact));
        assert_eq!(asked(list(true)), (all(serde_json::json!([{"not": of_list}, {"not": is_null("name")}])), PushDown::Exact));
        let with_null = |negated| col("name").in_list(vec![lit("x"), lit(ScalarValue::Utf8(None))], negated);
        assert_eq!(asked(with_null(false)).1, PushDown::Inexact);
        assert_eq!(asked(with_null(true)).1, PushDown::Unsupported);
        let of_case = serde_json::json!({"attr": "name", "suffix": "x", "ignore_case": true});
        assert_eq!(asked(col("name").ilike(lit("%x"))), (all(serde_json::json!([of_case])), PushDown::Exact));
        // One part of several that all hold is something to ask for, of several of which one holds it is nothing.
        let float = || col("weight").gt(lit(1.0));
        assert_eq!(asked(name("x").and(float())), (all(serde_json::json!([x])), PushDown::Inexact));
        assert_eq!(asked(name("x").or(float())).1, PushDown::Unsupported);
        assert_eq!(asked(!(name("x").and(float()))).1, PushDown::Unsupported);
        assert_eq!(asked(!col("name").like(lit("x%y"))).1, PushDown::Unsupported, "what is not all of it is not its opposite");
        assert_eq!(asked(name("x").or(col("id").eq(lit(1i64)))).1, PushDown::Unsupported, "keys are not searched");
    }

    #[test]
    fn what_is_too_much_for_a_shard_is_left_to_the_engine() {
        let many = |column: &str| col(column).in_list((0..600).map(|value| lit(format!("{value}"))).collect(), false);
        let (asked, left) = asked(&[many("name"), many("name"), col("day").is_null()], &columns());
        assert_eq!((asked.conditions.len(), left), (2, vec![1]));
        let too_many = (0..1100).map(|value| col("name").eq(lit(format!("{value}")))).reduce(Expr::or).unwrap();
        assert_eq!(verdict(&too_many).1, PushDown::Unsupported);
        let deep = (0..100).fold(col("name").eq(lit("x")), |inner, _| (!inner).and(col("day").is_null()));
        assert_eq!(verdict(&deep).1, PushDown::Inexact, "as far as it was looked at");
    }

    #[test]
    fn values_are_those_of_the_column() {
        let day = lit(ScalarValue::Date32(Some(9)));
        let (asked, verdict) = verdict(&col("day").lt(day));
        assert_eq!(verdict, PushDown::Exact);
        let below = Test::Range(None, Some((text("1970-01-10"), false)));
        assert_eq!(asked.conditions, [Condition::Column { column: "day".into(), test: below }]);
        let price = |scale| lit(ScalarValue::Decimal128(Some(1234), 10, scale));
        assert_eq!(self::verdict(&col("price").eq(price(2))).1, PushDown::Exact);
        assert_eq!(self::verdict(&col("price").eq(price(3))).1, PushDown::Unsupported, "1.234 is none of two digits");
        assert_eq!(self::verdict(&col("weight").eq(lit(1.0))).1, PushDown::Unsupported);
    }
}
