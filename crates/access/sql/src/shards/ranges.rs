//! Which keys the rows of filters may have, as ranges: shards by ranges that have none of them are not asked.

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use forebay_shard::KeyRange;
use forebay_shard_store::Columns;

use super::tested::tested;

/// Ranges that are made of several filters at most (one list may have more), and how deep they stand in them: of more nothing is said.
const RANGES_MAX: usize = 256;
const DEPTH_MAX: usize = 16;

/// Ranges that have the keys of all rows of which all filters are true; none where no filter says where keys are.
pub(super) fn ranges_of(filters: &[Expr], columns: &Columns) -> Option<Vec<KeyRange>> {
    filters.iter().filter_map(|filter| ranges(filter, 0, columns)).reduce(both)
}

fn ranges(filter: &Expr, depth: usize, columns: &Columns) -> Option<Vec<KeyRange>> {
    if depth > DEPTH_MAX {
        return None;
    }
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let sides = (ranges(left, depth + 1, columns), ranges(right, depth + 1, columns));
            match (op, sides) {
                (Operator::And, (Some(one), Some(other))) => Some(both(one, other)),
                (Operator::And, (one, other)) => one.or(other),
                (_, (one, other)) => Some([one?, other?].concat()).filter(|all| all.len() <= RANGES_MAX),
            }
        }
        filter => tested(filter)?.key_ranges(columns),
    }
}

/// Ranges of the keys that are in ranges of both. Those of either have them all: where they would be too many, the fewer.
fn both(one: Vec<KeyRange>, other: Vec<KeyRange>) -> Vec<KeyRange> {
    if one.len().saturating_mul(other.len()) > RANGES_MAX {
        return if one.len() < other.len() { one } else { other };
    }
    one.iter().flat_map(|range| other.iter().map(move |other| range.and(other))).collect()
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};
    use forebay_shard::Key;
    use forebay_shard_store::{Column, ColumnKind};

    use super::*;

    fn columns(kind: ColumnKind) -> Columns {
        Columns::new(vec![Column::new("id", kind), Column::new("name", ColumnKind::Text)], "id").unwrap()
    }

    /// Which of some numbers may be keys of a filter's rows.
    fn numbers(filter: Expr) -> Option<Vec<i64>> {
        let ranges = ranges_of(&[filter], &columns(ColumnKind::Int))?;
        let has = |key: &i64| ranges.iter().any(|range| range.contains(&Key::U64(*key as u64)));
        Some([-9, -1, 0, 3, 5, 9].into_iter().filter(has).collect())
    }

    #[test]
    fn comparisons_of_the_key_say_which_keys_there_may_be() {
        assert_eq!(numbers(col("id").gt(lit(3i64))), Some(vec![5, 9]));
        assert_eq!(numbers(lit(3i64).gt_eq(col("id"))), Some(vec![-9, -1, 0, 3]));
        assert_eq!(numbers(col("id").between(lit(-1i64), lit(5i64))), Some(vec![-1, 0, 3, 5]));
        let beside = |other: Expr| col("id").lt(lit(0i64)).and(other);
        assert_eq!(numbers(beside(col("name").eq(lit("x")))), Some(vec![-9, -1]));
        assert_eq!(numbers(beside(col("id").gt(lit(-5i64)))), Some(vec![-1]));
        let either = |other: Expr| col("id").lt(lit(0i64)).or(other);
        assert_eq!(numbers(either(col("id").eq(lit(9i64)))), Some(vec![-9, -1, 9]));
        for nothing_said in [
            either(col("name").eq(lit("x"))),
            col("name").gt(lit("x")),
            col("id").not_between(lit(1i64), lit(2i64)),
            col("id").not_eq(lit(3i64)),
            !col("id").gt(lit(3i64)),
        ] {
            assert_eq!(numbers(nothing_said.clone()), None, "{nothing_said}");
        }
    }

    #[test]
    fn what_text_begins_with_says_it_too() {
        let of = |pattern: &str| ranges_of(&[col("id").like(lit(pattern))], &columns(ColumnKind::Text));
        assert_eq!(of("ab%"), Some(vec![KeyRange::beginning(b"ab")]));
        assert_eq!(of("ab%c_"), Some(vec![KeyRange::beginning(b"ab")]));
        assert_eq!(of("%ab"), None);
        let other_case = ranges_of(&[col("id").ilike(lit("ab%"))], &columns(ColumnKind::Text));
        assert_eq!(other_case, None);
    }

    #[test]
    fn of_very_many_ranges_the_fewer_are_looked_at() {
        let many = (0..300i64).map(|key| col("id").eq(lit(key * 2))).collect::<Vec<_>>();
        let list = col("id").in_list((0..300i64).map(|key| lit(key * 2)).collect(), false);
        let both = ranges_of(&[list, col("id").lt(lit(5i64))], &columns(ColumnKind::Int)).unwrap();
        assert_eq!(both.len(), 2, "what is below zero, and above");
        let deep = many.into_iter().reduce(Expr::or).unwrap();
        assert_eq!(ranges_of(&[deep], &columns(ColumnKind::Int)), None);
    }
}
