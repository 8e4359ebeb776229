//! What of a scan's predicate the worker tests that holds decoded columns. The filter above the scan decides all the same, and nothing of a
//! predicate is turned around here: to leave a part of it out lets more rows pass, and no fewer.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr, Literal,
};
use forebay_types::{Comparison, RowTest};

use super::branches::common;
use super::values::{bytes, column, one_of};

/// What stands deeper in a predicate is left to the engine.
const DEPTH_MAX: usize = 24;

/// The condition that all rows meet of which these parts of a predicate are true, on columns of the scan's schema. What joins and top-K
/// sorts know by now is in it.
pub(in crate::hot) fn steps(parts: &[Arc<dyn PhysicalExpr>], stream: &Schema) -> Vec<RowTest> {
    let mut tests: Vec<RowTest> = Vec::new();
    for part in parts {
        let Some(more) = converted(part, stream, 0) else { continue };
        let mut both = tests.clone();
        both.extend(more);
        if !tests.is_empty() {
            both.push(RowTest::And);
        }
        // Together they may be more than a worker looks at.
        if RowTest::check(&both, stream.fields().len()).is_ok() {
            tests = both;
        }
    }
    tests
}

fn converted(expr: &Arc<dyn PhysicalExpr>, stream: &Schema, depth: usize) -> Option<Vec<RowTest>> {
    if depth > DEPTH_MAX {
        return None;
    }
    if let Some(dynamic) = expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
        return converted(&dynamic.current().ok()?, stream, depth + 1);
    }
    if let Some(null) = expr.downcast_ref::<IsNullExpr>() {
        return Some(vec![RowTest::Null { column: column(null.arg(), stream)?.0, negated: false }]);
    }
    if let Some(null) = expr.downcast_ref::<IsNotNullExpr>() {
        return Some(vec![RowTest::Null { column: column(null.arg(), stream)?.0, negated: true }]);
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        return one_of(list, stream);
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        return common(case, stream);
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let both = || (converted(binary.left(), stream, depth + 1), converted(binary.right(), stream, depth + 1));
    match binary.op() {
        Operator::And => match both() {
            (Some(mut one), Some(other)) => {
                one.extend(other);
                one.push(RowTest::And);
                Some(one)
            }
            (one, other) => one.or(other),
        },
        Operator::Or => match both() {
            (Some(mut one), Some(other)) => {
                one.extend(other);
                one.push(RowTest::Or);
                Some(one)
            }
            _ => None,
        },
        op => compared(binary.left(), *op, binary.right(), stream),
    }
}

fn compared(left: &Arc<dyn PhysicalExpr>, op: Operator, right: &Arc<dyn PhysicalExpr>, stream: &Schema) -> Option<Vec<RowTest>> {
    let ((column, data_type), value, op) = match (column(left, stream), column(right, stream)) {
        (Some(of), None) => (of, right, op),
        (None, Some(of)) => (of, left, op.swap()?),
        _ => return None,
    };
    let by = match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::Different,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::AtMost,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::AtLeast,
        _ => return None,
    };
    let value = bytes(value.downcast_ref::<Literal>()?.value(), data_type)?;
    Some(vec![RowTest::Compare { column, by, value }])
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{binary, col, in_list, is_null, lit};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("word", DataType::Utf8View, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
            Field::new("price", DataType::Decimal128(10, 2), true),
            Field::new("weight", DataType::Float64, true),
        ])
    }

    fn of(name: &str) -> Arc<dyn PhysicalExpr> {
        col(name, &schema()).unwrap()
    }

    fn two(left: Arc<dyn PhysicalExpr>, op: Operator, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, right))
    }

    fn id(by: Comparison, value: i64) -> RowTest {
        RowTest::Compare { column: 0, by, value: value.to_le_bytes().to_vec() }
    }

    #[test]
    fn comparisons_lists_and_nulls_become_steps() {
        let few = two(lit(7i64), Operator::GtEq, of("id"));
        let text = |text: Option<&str>| lit(ScalarValue::Utf8View(text.map(str::to_string)));
        let word = in_list(of("word"), vec![text(Some("a")), text(None)], &false, &schema()).unwrap();
        let one_of = RowTest::OneOf { column: 1, values: vec![b"a".to_vec()], negated: false };
        assert_eq!(steps(&[few, word], &schema()), [id(Comparison::AtMost, 7), one_of, RowTest::And]);
        let none = in_list(of("word"), vec![text(Some("a")), text(None)], &true, &schema()).unwrap();
        assert!(steps(&[none], &schema()).is_empty(), "no row is in it");
        let null = is_null(of("word")).unwrap();
        assert_eq!(steps(&[null], &schema()), [RowTest::Null { column: 1, negated: false }]);
        let zone = Some("UTC".into());
        let at = binary(of("at"), Operator::Lt, lit(ScalarValue::TimestampMicrosecond(Some(9), zone)), &schema()).unwrap();
        let value = 9i64.to_le_bytes().to_vec();
        assert_eq!(steps(&[at], &schema()), [RowTest::Compare { column: 2, by: Comparison::Less, value }]);
        let price = two(of("price"), Operator::NotEq, lit(ScalarValue::Decimal128(Some(-5), 10, 2)));
        let value = (-5i128).to_le_bytes().to_vec();
        assert_eq!(steps(&[price], &schema()), [RowTest::Compare { column: 3, by: Comparison::Different, value }]);
    }

    #[test]
    fn what_a_worker_cannot_tell_is_left_out_where_that_lets_more_pass() {
        let known = || two(of("id"), Operator::Eq, lit(1i64));
        let unknown = || two(two(of("id"), Operator::Plus, lit(1i64)), Operator::Eq, lit(3i64));
        let join = |op| two(known(), op, unknown());
        assert_eq!(steps(&[join(Operator::And)], &schema()), [id(Comparison::Equal, 1)]);
        assert!(steps(&[join(Operator::Or)], &schema()).is_empty());
        let inside = two(join(Operator::And), Operator::Or, known());
        assert_eq!(steps(&[inside], &schema()), [id(Comparison::Equal, 1), id(Comparison::Equal, 1), RowTest::Or]);
        for other in [
            two(of("id"), Operator::Eq, lit(1i32)),
            two(of("id"), Operator::Eq, of("id")),
            two(of("weight"), Operator::Gt, lit(0.0f64)),
            two(of("weight"), Operator::Lt, lit(f64::NAN)),
            two(of("price"), Operator::Eq, lit(ScalarValue::Decimal128(Some(5), 11, 2))),
            two(of("at"), Operator::Eq, lit(ScalarValue::TimestampMicrosecond(Some(9), None))),
            lit(true),
        ] {
            assert!(steps(std::slice::from_ref(&other), &schema()).is_empty(), "{other}");
        }
    }

    #[test]
    fn a_filter_of_a_join_is_what_it_is_by_now() {
        let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![of("id")], lit(true)));
        let part: Arc<dyn PhysicalExpr> = Arc::clone(&filter) as _;
        assert!(steps(std::slice::from_ref(&part), &schema()).is_empty());
        filter.update(two(of("id"), Operator::Gt, lit(5i64))).unwrap();
        assert_eq!(steps(std::slice::from_ref(&part), &schema()), [id(Comparison::Greater, 5)]);
    }

    #[test]
    fn a_condition_is_never_more_than_a_worker_looks_at() {
        let parts: Vec<_> = (0..200).map(|at| two(of("id"), Operator::NotEq, lit(at as i64))).collect();
        let found = steps(&parts, &schema());
        assert!(found.len() > 50 && RowTest::check(&found, 5).is_ok());
    }
}
