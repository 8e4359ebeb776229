//! Filters of joins whose sides are cut into partitions: a branch for each, which a row is led to by the hash of its key. A worker knows
//! nothing of that hash, but what all branches demand it can test.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, InListExpr, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use forebay_types::{Comparison, RowTest};

use super::values::{VALUES_MAX, bytes, column, one_of};

/// What a branch demands of a column.
enum Demand {
    Bound { column: u32, by: Comparison, value: ScalarValue },
    OneOf { column: u32, values: Vec<Vec<u8>> },
}

/// The condition that all rows meet which pass, whichever branch they are led to; none where the branches have nothing in common.
pub(super) fn common(case: &CaseExpr, stream: &Schema) -> Option<Vec<RowTest>> {
    let branches = case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr());
    let mut branches = branches.filter(|branch| !is_never(branch)).map(|branch| demands(branch, stream));
    let mut common = branches.next()?;
    for branch in branches {
        common = common.iter().filter_map(|one| branch.iter().find_map(|other| one.either(other))).collect();
    }
    let mut steps: Vec<RowTest> = Vec::new();
    for test in common.into_iter().filter_map(|demand| demand.test(stream)) {
        let is_first = steps.is_empty();
        steps.push(test);
        if !is_first {
            steps.push(RowTest::And);
        }
    }
    debug_assert!(steps.is_empty() || steps.len() % 2 == 1, "each test but the first is joined to those before");
    (!steps.is_empty()).then_some(steps)
}

/// Whether no row passes: there is nothing in that partition.
fn is_never(branch: &Arc<dyn PhysicalExpr>) -> bool {
    let value = branch.downcast_ref::<Literal>().map(Literal::value);
    value.is_some_and(|value| matches!(value, ScalarValue::Boolean(Some(false) | None)))
}

fn demands(branch: &Arc<dyn PhysicalExpr>, stream: &Schema) -> Vec<Demand> {
    split_conjunction(branch).into_iter().filter_map(|part| demand(part, stream)).collect()
}

fn demand(part: &Arc<dyn PhysicalExpr>, stream: &Schema) -> Option<Demand> {
    if let Some(list) = part.downcast_ref::<InListExpr>() {
        return match one_of(list, stream)?.pop()? {
            RowTest::OneOf { column, values, negated: false } => Some(Demand::OneOf { column, values }),
            _ => None,
        };
    }
    let binary = part.downcast_ref::<BinaryExpr>()?;
    let by = match binary.op() {
        Operator::GtEq => Comparison::AtLeast,
        Operator::LtEq => Comparison::AtMost,
        _ => return None,
    };
    let (column, data_type) = column(binary.left(), stream)?;
    let value = binary.right().downcast_ref::<Literal>()?.value();
    bytes(value, data_type).map(|_| Demand::Bound { column, by, value: value.clone() })
}

impl Demand {
    /// What both demand; none where that is nothing.
    fn either(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Bound { column, by, value }, Self::Bound { column: of, by: same, value: other })
                if (column, by) == (of, same) =>
            {
                let is_first = match by {
                    Comparison::AtLeast => value.partial_cmp(other)?.is_le(),
                    _ => value.partial_cmp(other)?.is_ge(),
                };
                let value = if is_first { value } else { other };
                Some(Self::Bound { column: *column, by: *by, value: value.clone() })
            }
            (Self::OneOf { column, values }, Self::OneOf { column: of, values: others }) if column == of => {
                let mut values = values.clone();
                values.extend(others.iter().filter(|other| !values.contains(other)).cloned().collect::<Vec<_>>());
                debug_assert!(others.iter().all(|other| values.contains(other)), "a value of either is one of both");
                (values.len() <= VALUES_MAX).then_some(Self::OneOf { column: *column, values })
            }
            _ => None,
        }
    }

    fn test(self, stream: &Schema) -> Option<RowTest> {
        Some(match self {
            Self::Bound { column, by, value } => {
                let value = bytes(&value, stream.fields().get(column as usize)?.data_type())?;
                RowTest::Compare { column, by, value }
            }
            Self::OneOf { column, values } => RowTest::OneOf { column, values, negated: false },
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::physical_expr::expressions::{col, in_list, lit};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("other", DataType::Int64, true)])
    }

    fn two(left: Arc<dyn PhysicalExpr>, op: Operator, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, right))
    }

    /// What a join knows of one of its partitions.
    fn partition(name: &str, values: &[i64]) -> Arc<dyn PhysicalExpr> {
        let of = || col(name, &schema()).unwrap();
        let least = two(of(), Operator::GtEq, lit(*values.iter().min().unwrap()));
        let most = two(of(), Operator::LtEq, lit(*values.iter().max().unwrap()));
        let list = in_list(of(), values.iter().map(|value| lit(*value)).collect(), &false, &schema()).unwrap();
        two(two(least, Operator::And, most), Operator::And, list)
    }

    fn case(branches: Vec<Arc<dyn PhysicalExpr>>, other: Arc<dyn PhysicalExpr>) -> CaseExpr {
        let hash = two(col("id", &schema()).unwrap(), Operator::Modulo, lit(branches.len() as i64));
        let branches = branches.into_iter().enumerate().map(|(at, branch)| (lit(at as i64), branch)).collect();
        CaseExpr::try_new(Some(hash), branches, Some(other)).unwrap()
    }

    fn bound(by: Comparison, value: i64) -> RowTest {
        RowTest::Compare { column: 0, by, value: value.to_le_bytes().to_vec() }
    }

    #[test]
    fn what_all_partitions_of_a_join_demand_is_demanded() {
        let parts = vec![partition("id", &[5, 9]), lit(false), partition("id", &[-3, 9])];
        let values = [5i64, 9, -3].iter().map(|value| value.to_le_bytes().to_vec()).collect();
        let one_of = RowTest::OneOf { column: 0, values, negated: false };
        let (low, high) = (bound(Comparison::AtLeast, -3), bound(Comparison::AtMost, 9));
        let steps = common(&case(parts, lit(false)), &schema()).unwrap();
        assert_eq!(steps, [low, high, RowTest::And, one_of, RowTest::And]);
        assert!(RowTest::check(&steps, 2).is_ok());
    }

    #[test]
    fn many_partitions_are_as_few_steps_as_one() {
        let parts = (0..64).map(|at| partition("id", &[at * 10, at * 10 + 5])).collect();
        let steps = common(&case(parts, lit(false)), &schema()).unwrap();
        // The list of all their values would be too long.
        assert_eq!(steps, [bound(Comparison::AtLeast, 0), bound(Comparison::AtMost, 635), RowTest::And]);
    }

    #[test]
    fn a_branch_that_demands_nothing_or_something_else_lets_all_rows_pass() {
        let one = || partition("id", &[5, 9]);
        assert!(common(&case(vec![one()], lit(true)), &schema()).is_none());
        assert!(common(&case(vec![one(), partition("other", &[5, 9])], lit(false)), &schema()).is_none());
        assert!(common(&case(vec![lit(false)], lit(false)), &schema()).is_none());
        let above = two(col("id", &schema()).unwrap(), Operator::Gt, lit(5i64));
        assert!(common(&case(vec![one(), above], lit(false)), &schema()).is_none());
    }
}
