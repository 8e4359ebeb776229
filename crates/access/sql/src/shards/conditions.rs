//! What of a statement's conditions a dataset of shards answers.

use std::collections::BTreeSet;

use datafusion::arrow::util::display::array_value_to_string;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator, TableProviderFilterPushDown as PushDown};
use datafusion::scalar::ScalarValue;
use forebay_shard::Key;
use forebay_shard_store::{ColumnKind, Columns, Condition, Literal, Test};
use serde_json::Number;

/// What a dataset is asked: records by their keys, or those that meet all conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// None where keys don't say it.
    pub(super) keys: Option<BTreeSet<Key>>,
    pub(super) conditions: Vec<Condition>,
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
        return (Asked { keys: all, conditions: Vec::new() }, left);
    }
    let conditions = filters.iter().filter_map(|filter| conditions(filter, columns)).flat_map(|(conditions, _)| conditions);
    (Asked { keys: None, conditions: conditions.collect() }, Vec::new())
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
        _ => None,
    }
}

/// The conditions that all rows of a filter meet, and whether those that meet them are its rows.
fn conditions(filter: &Expr, columns: &Columns) -> Option<(Vec<Condition>, bool)> {
    let (column, tests, is_all) = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => compared(left, *op, right)?,
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let range = Test::Range(Some((bound(low)?, true)), Some((bound(high)?, true)));
            (column(expr)?, vec![range], true)
        }
        Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) => {
            let Literal::Text(pattern) = literal(pattern)? else { return None };
            let (tests, is_all) = like(&pattern)?;
            (column(expr)?, tests, is_all)
        }
        Expr::IsNull(expr) => (column(expr)?, vec![Test::Eq(Literal::Null)], true),
        Expr::Not(expr) => (column(expr)?, vec![Test::Eq(Literal::Bool(false))], true),
        expr => (column(expr)?, vec![Test::Eq(Literal::Bool(true))], true),
    };
    let (_, attribute) = columns.attribute(&column).ok()?;
    // Floating-point numbers are equal, and in order, otherwise here than in SQL: zeros have signs.
    if matches!(attribute.kind, ColumnKind::Float32 | ColumnKind::Float64) {
        return None;
    }
    let conditions: Vec<_> = tests.into_iter().map(|test| Condition::Column { column: column.clone(), test }).collect();
    // What the column's type can't be compared with is left to the engine.
    conditions.iter().all(|condition| condition.query(columns).is_ok()).then_some((conditions, is_all))
}

fn compared(left: &Expr, op: Operator, right: &Expr) -> Option<(String, Vec<Test>, bool)> {
    let (name, op, value) = match column(left) {
        Some(name) => (name, op, right),
        None => (column(right)?, op.swap()?, left),
    };
    let value = bound(value)?;
    Some(match op {
        Operator::Eq => (name, vec![Test::Eq(value)], true),
        Operator::Lt => (name, vec![Test::Range(None, Some((value, false)))], true),
        Operator::LtEq => (name, vec![Test::Range(None, Some((value, true)))], true),
        Operator::Gt => (name, vec![Test::Range(Some((value, false)), None)], true),
        Operator::GtEq => (name, vec![Test::Range(Some((value, true)), None)], true),
        // The two libraries may read the borders of what a pattern can say differently: it is looked at once more.
        Operator::RegexMatch => (name, vec![Test::Regex(value)], false),
        _ => return None,
    })
}

/// What a text has in it that is like a pattern. An escaped sign, or one for any single letter, leaves the engine more to look at.
fn like(pattern: &str) -> Option<(Vec<Test>, bool)> {
    if pattern.contains('\\') {
        return None;
    }
    let text = |text: &str| Literal::Text(text.to_string());
    let pieces: Vec<&str> = pattern.split(['%', '_']).collect();
    let has_any_letter = pattern.contains('_');
    let is_all = !has_any_letter
        && match pieces.as_slice() {
            [_] | [_, ""] | ["", _, ""] => true,
            [..] => false,
        };
    let tests: Vec<_> = match pieces.as_slice() {
        [whole] => vec![Test::Eq(text(whole))],
        [first, rest @ ..] => {
            let begins = (!first.is_empty()).then(|| Test::Prefix(text(first)));
            let holds = rest.iter().filter(|piece| !piece.is_empty()).map(|piece| Test::Contains(text(piece)));
            begins.into_iter().chain(holds).collect()
        }
        [] => Vec::new(),
    };
    (!tests.is_empty()).then_some((tests, is_all))
}

fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    }
}

/// A value that something can be compared with: never null.
fn bound(expr: &Expr) -> Option<Literal> {
    literal(expr).filter(|literal| *literal != Literal::Null)
}

fn literal(expr: &Expr) -> Option<Literal> {
    let Expr::Literal(value, _) = expr else { return None };
    if value.is_null() {
        return Some(Literal::Null);
    }
    Some(match value {
        ScalarValue::Boolean(Some(value)) => Literal::Bool(*value),
        ScalarValue::Int8(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::Int16(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::Int32(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::Int64(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::UInt8(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::UInt16(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::UInt32(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::UInt64(Some(value)) => Literal::Number(Number::from(*value)),
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            Literal::Text(text.clone())
        }
        ScalarValue::Binary(Some(bytes)) | ScalarValue::LargeBinary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => {
            Literal::Bytes(bytes.clone())
        }
        ScalarValue::Date32(_) | ScalarValue::Decimal128(..) | ScalarValue::TimestampMicrosecond(..) => {
            Literal::Text(array_value_to_string(&value.to_array().ok()?, 0).ok()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};
    use forebay_shard_store::Column;

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
        assert_eq!(tests("%a"), (vec![Test::Contains(text("a"))], PushDown::Inexact));
        assert_eq!(tests("a%b"), (vec![Test::Prefix(text("a")), Test::Contains(text("b"))], PushDown::Inexact));
        assert_eq!(tests("a_"), (vec![Test::Prefix(text("a"))], PushDown::Inexact));
        assert_eq!(tests("%a%b%"), (vec![Test::Contains(text("a")), Test::Contains(text("b"))], PushDown::Inexact));
        for left_to_the_engine in ["%", "", "__", "a\\%"] {
            let (tests, verdict) = tests(left_to_the_engine);
            let is_whole = left_to_the_engine.is_empty();
            assert_eq!(verdict, if is_whole { PushDown::Exact } else { PushDown::Unsupported }, "{tests:?}");
        }
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
