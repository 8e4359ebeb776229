//! What a filter tests of one column, in the words of shards.

use datafusion::arrow::util::display::array_value_to_string;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};
use datafusion::scalar::ScalarValue;
use forebay_shard::KeyRange;
use forebay_shard_store::{ColumnKind, Columns, Condition, Literal, Test};
use serde_json::Number;

/// What a filter tests of one column.
pub(super) struct Tested {
    column: String,
    tests: Vec<Test>,
    /// Rows that pass the tests are all those of which it is true.
    is_all: bool,
    /// The filter is that they are not passed.
    is_not: bool,
}

impl Tested {
    /// Ranges that have the keys of all rows of which the filter is true; none where it does not say that.
    pub(super) fn key_ranges(self, columns: &Columns) -> Option<Vec<KeyRange>> {
        if self.is_not || self.column != columns.key().name {
            return None;
        }
        // All of its tests are passed: one that says where keys are is enough.
        self.tests.iter().find_map(|test| test.key_ranges(columns))
    }

    /// What all rows meet of which the filter is true, or false, and whether those that meet it are these rows.
    pub(super) fn condition(self, truth: bool, columns: &Columns) -> Option<(Condition, bool)> {
        let Self { column, tests, is_all, is_not } = self;
        let (_, attribute) = columns.attribute(&column).ok()?;
        // Floating-point numbers are equal, and in order, otherwise here than in SQL: zeros have signs.
        if matches!(attribute.kind, ColumnKind::Float32 | ColumnKind::Float64) {
            return None;
        }
        let of_column = |test| Condition::Column { column: column.clone(), test };
        let passed = and(tests.into_iter().map(of_column).collect());
        // What the column's type can't be compared with is left to the engine.
        passed.query(columns).ok()?;
        match truth != is_not {
            true => Some((passed, is_all)),
            // Of rows that pass the tests some may not be true.
            false if !is_all => None,
            false => Some((and(vec![not(passed), not(of_column(Test::Eq(Literal::Null)))]), true)),
        }
    }
}

/// What a filter tests, if a shard can.
pub(super) fn tested(filter: &Expr) -> Option<Tested> {
    Some(match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => return compared(left, *op, right),
        Expr::Between(Between { expr, negated, low, high }) => {
            let range = Test::Range(Some((bound(low)?, true)), Some((bound(high)?, true)));
            Tested { column: column(expr)?, tests: vec![range], is_all: true, is_not: *negated }
        }
        Expr::InList(InList { expr, list, negated }) => {
            let mut values = list.iter().map(literal).collect::<Option<Vec<_>>>()?;
            values.retain(|value| *value != Literal::Null);
            // With a null among them it is true of the same rows, and false of none.
            let is_all = values.len() == list.len();
            Tested { column: column(expr)?, tests: vec![Test::In(values)], is_all, is_not: *negated }
        }
        Expr::Like(Like { negated, expr, pattern, escape_char: None, case_insensitive }) => {
            let Literal::Text(pattern) = literal(pattern)? else { return None };
            let (mut tests, is_all) = like(&pattern)?;
            if *case_insensitive {
                tests = tests.into_iter().map(|test| Test::IgnoringCase(Box::new(test))).collect();
            }
            Tested { column: column(expr)?, tests, is_all, is_not: *negated }
        }
        expr => {
            let is_true = Test::Eq(Literal::Bool(true));
            Tested { column: column(expr)?, tests: vec![is_true], is_all: true, is_not: false }
        }
    })
}

fn compared(left: &Expr, op: Operator, right: &Expr) -> Option<Tested> {
    let (column, op, value) = if let Some(name) = column(left) { (name, op, right) } else { (column(right)?, op.swap()?, left) };
    let value = bound(value)?;
    let is_not = op == Operator::NotEq;
    let (test, is_all) = match op {
        Operator::Eq | Operator::NotEq => (Test::Eq(value), true),
        Operator::Lt => (Test::Range(None, Some((value, false))), true),
        Operator::LtEq => (Test::Range(None, Some((value, true))), true),
        Operator::Gt => (Test::Range(Some((value, false)), None), true),
        Operator::GtEq => (Test::Range(Some((value, true)), None), true),
        // The two libraries may read the borders of what a pattern can say differently: it is looked at once more.
        Operator::RegexMatch => (Test::Regex(value), false),
        Operator::RegexIMatch => (Test::IgnoringCase(Box::new(Test::Regex(value))), false),
        _ => return None,
    };
    Some(Tested { column, tests: vec![test], is_all, is_not })
}

/// What a text has in it that is like a pattern. A sign for any single letter, or something between two ends, leaves the engine more
/// to look at, and of an escaped sign nothing is known.
fn like(pattern: &str) -> Option<(Vec<Test>, bool)> {
    if pattern.contains('\\') {
        return None;
    }
    let text = |text: &str| Literal::Text(text.to_string());
    let pieces: Vec<&str> = pattern.split(['%', '_']).collect();
    let tests: Vec<_> = match pieces.as_slice() {
        [whole] => vec![Test::Eq(text(whole))],
        [first, between @ .., last] => {
            let begins = (!first.is_empty()).then(|| Test::Prefix(text(first)));
            let holds = between.iter().filter(|piece| !piece.is_empty()).map(|piece| Test::Contains(text(piece)));
            let ends = (!last.is_empty()).then(|| Test::Suffix(text(last)));
            begins.into_iter().chain(holds).chain(ends).collect()
        }
        [] => Vec::new(),
    };
    let is_all = tests.len() == 1 && !pattern.contains('_');
    (!tests.is_empty()).then_some((tests, is_all))
}

/// The column that an expression is.
pub(super) fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        _ => None,
    }
}

/// A value that something can be compared with: never null.
fn bound(expr: &Expr) -> Option<Literal> {
    literal(expr).filter(|literal| *literal != Literal::Null)
}

/// The value that an expression is.
pub(super) fn literal(expr: &Expr) -> Option<Literal> {
    let Expr::Literal(value, _) = expr else { return None };
    literal_of(value)
}

/// A value in the words of shards; none for one of a type that they have no words for.
pub(super) fn literal_of(value: &ScalarValue) -> Option<Literal> {
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
        ScalarValue::Date32(_)
        | ScalarValue::Decimal128(..)
        | ScalarValue::TimestampMicrosecond(..)
        | ScalarValue::TimestampNanosecond(..) => Literal::Text(array_value_to_string(&value.to_array().ok()?, 0).ok()?),
        _ => return None,
    })
}

/// All of them, as one condition.
pub(super) fn and(conditions: Vec<Condition>) -> Condition {
    let mut all = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match condition {
            Condition::And(more) => all.extend(more),
            one => all.push(one),
        }
    }
    if all.len() == 1 { all.remove(0) } else { Condition::And(all) }
}

/// It does not hold.
pub(super) fn not(condition: Condition) -> Condition {
    Condition::Not(Box::new(condition))
}
