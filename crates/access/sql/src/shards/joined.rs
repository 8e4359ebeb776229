//! Keys that what runs above a scan names: a join knows those of its other side before it asks for the first row of this one.
//!
//! The join looks at each row all the same, so that a key too many is never wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::OptimizerOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNullExpr, Literal as Constant,
};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::prelude::SessionConfig;
use datafusion::scalar::ScalarValue;
use forebay_shard::Key;
use forebay_shard_store::{ColumnKind, Columns, Literal};
use serde_json::Number;

use super::tested::literal_of;
use crate::scans::dynamic_filters;

/// Values that a join hands down at most, and their bytes. The engine's own bounds are for filters that are looked at for each row of a
/// file: what has more values than that it looks up in the join's table, which nobody can read.
const KEYS_MAX: usize = 10_000;
const KEY_BYTES_MAX: usize = 1 << 20;

/// Keys up to which one call asks for all: a scan asks more than once, to find records and to read them.
const KEYS_FEW: u64 = 1000;

/// Of how many records a search is presumed to find one.
const FOUND_ONE_OF: u64 = 10;

/// What stands deeper in a filter is not looked at.
const DEPTH_MAX: usize = 24;

/// Whether a filter may come to name keys, and says nothing of other columns.
pub(super) fn may_name(filter: &Arc<dyn PhysicalExpr>, columns: &Columns) -> bool {
    let is_of_key = |column: &Column| column.name() == columns.key().name;
    !dynamic_filters(filter).is_empty() && collect_columns(filter).iter().all(is_of_key)
}

/// The keys of which all filters may be true, by what is in them now; none where these may be any.
pub(super) fn keys(filters: &[Arc<dyn PhysicalExpr>], columns: &Columns) -> Option<BTreeSet<Key>> {
    filters.iter().filter_map(|filter| named(filter, columns, 0)).reduce(|all, keys| common(&all, &keys))
}

/// Whether a shard of so many records is asked for these keys, and not for all that it has or that a search finds. A scan reads each record
/// by its key too, once it has found it.
pub(super) fn looks_up(keys: usize, records: u64, is_search: bool) -> bool {
    let read = records.max(KEYS_FEW);
    keys as u64 <= if is_search { read / FOUND_ONE_OF } else { read }
}

/// Records that are presumed to be found among so many: by keys, or by a search, or all.
pub(super) fn presumed(records: u64, keys: Option<usize>, is_search: bool) -> u64 {
    match keys {
        Some(keys) => records.min(keys as u64),
        None if is_search => records / FOUND_ONE_OF,
        None => records,
    }
}

/// The settings of a query with scans that take keys: joins hand down more values to these than the engine has them do. What a session has set
/// stays. They do so in a plan that was made for a cluster, too, where they would not.
pub(super) fn with_room(mut config: SessionConfig) -> SessionConfig {
    let (engines, own) = (OptimizerOptions::default(), &mut config.options_mut().optimizer);
    own.enable_join_dynamic_filter_pushdown = true;
    for (bound, given, most) in [
        (&mut own.hash_join_inlist_pushdown_max_distinct_values, engines.hash_join_inlist_pushdown_max_distinct_values, KEYS_MAX),
        (&mut own.hash_join_inlist_pushdown_max_size, engines.hash_join_inlist_pushdown_max_size, KEY_BYTES_MAX),
    ] {
        if *bound == given {
            *bound = most;
        }
    }
    config
}

fn common(one: &BTreeSet<Key>, other: &BTreeSet<Key>) -> BTreeSet<Key> {
    one.intersection(other).cloned().collect()
}

/// The keys of which an expression may be true; none where these may be any.
fn named(expr: &Arc<dyn PhysicalExpr>, columns: &Columns, depth: usize) -> Option<BTreeSet<Key>> {
    if depth > DEPTH_MAX {
        return None;
    }
    let of = |expr: &Arc<dyn PhysicalExpr>| named(expr, columns, depth + 1);
    if let Some(dynamic) = expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
        return of(&dynamic.current().ok()?);
    }
    if let Some(constant) = expr.downcast_ref::<Constant>() {
        let is_true_of_none = constant.value().is_null() || *constant.value() == ScalarValue::Boolean(Some(false));
        return is_true_of_none.then(BTreeSet::new);
    }
    if let Some(null) = expr.downcast_ref::<IsNullExpr>() {
        // Keys are never null.
        return is_key(null.arg(), columns).then(BTreeSet::new);
    }
    if let Some(list) = expr.downcast_ref::<InListExpr>() {
        return if list.negated() { None } else { equal(list.expr(), list.list(), columns) };
    }
    if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        // Whichever of them it is: a join of several partitions has a list for each.
        let mut all = case.else_expr().map_or_else(|| Some(BTreeSet::new()), of)?;
        for (_, then) in case.when_then_expr() {
            all.extend(of(then)?);
        }
        return Some(all);
    }
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    match binary.op() {
        Operator::And => match (of(binary.left()), of(binary.right())) {
            (Some(one), Some(other)) => Some(common(&one, &other)),
            (one, other) => one.or(other),
        },
        Operator::Or => Some(of(binary.left())?.into_iter().chain(of(binary.right())?).collect()),
        Operator::Eq => equal(binary.left(), std::slice::from_ref(binary.right()), columns),
        _ => None,
    }
}

/// The keys that are equal to one of some values, where an expression is the key.
fn equal(expr: &Arc<dyn PhysicalExpr>, values: &[Arc<dyn PhysicalExpr>], columns: &Columns) -> Option<BTreeSet<Key>> {
    if !is_key(expr, columns) {
        return None;
    }
    let mut keys = BTreeSet::new();
    for value in values {
        let literal = match value.downcast_ref::<Constant>()?.value() {
            ScalarValue::Decimal128(Some(number), _, scale) => {
                whole(*number, *scale, columns.key().kind).map_or(Literal::Null, Literal::Number)
            }
            value => literal_of(value)?,
        };
        // Nothing is equal to null, and no key to a number that is not whole.
        if literal != Literal::Null {
            keys.insert(columns.key_of(&literal).ok()?);
        }
    }
    Some(keys)
}

/// Whether an expression is the key, or the key as another type in which no two keys are the same.
fn is_key(expr: &Arc<dyn PhysicalExpr>, columns: &Columns) -> bool {
    let kind = columns.key().kind;
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let stay_apart = match cast.cast_type() {
            // Of an integer with sign and one without.
            DataType::Decimal128(_, scale) => *scale >= 0 && matches!(kind, ColumnKind::Int | ColumnKind::Uint),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => kind == ColumnKind::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => kind == ColumnKind::Binary,
            _ => false,
        };
        return stay_apart && is_key(cast.expr(), columns);
    }
    expr.downcast_ref::<Column>().is_some_and(|column| column.name() == columns.key().name)
}

/// A number of a key's type; none where no key of this type is equal to it.
fn whole(number: i128, scale: i8, kind: ColumnKind) -> Option<Number> {
    let one = 10i128.checked_pow(u32::try_from(scale).ok()?)?;
    let whole = (number % one == 0).then_some(number / one)?;
    match kind {
        ColumnKind::Uint => u64::try_from(whole).ok().map(Number::from),
        _ => i64::try_from(whole).ok().map(Number::from),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::physical_expr::expressions::{case, cast, col, in_list, is_null, lit};
    use forebay_shard_store::Column as ShardColumn;

    use super::*;

    fn columns(kind: ColumnKind) -> Columns {
        Columns::new(vec![ShardColumn::new("name", ColumnKind::Text), ShardColumn::new("id", kind)], "id").unwrap()
    }

    fn schema(key: DataType) -> Schema {
        Schema::new(vec![Field::new("name", DataType::Utf8, true), Field::new("id", key, false)])
    }

    fn id() -> Arc<dyn PhysicalExpr> {
        col("id", &schema(DataType::Int64)).unwrap()
    }

    fn list(values: &[Option<i64>]) -> Arc<dyn PhysicalExpr> {
        let values = values.iter().map(|value| lit(ScalarValue::Int64(*value))).collect();
        in_list(id(), values, &false, &schema(DataType::Int64)).unwrap()
    }

    fn two(left: Arc<dyn PhysicalExpr>, op: Operator, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, op, right))
    }

    fn of(filter: &Arc<dyn PhysicalExpr>) -> Option<BTreeSet<Key>> {
        keys(std::slice::from_ref(filter), &columns(ColumnKind::Int))
    }

    fn some(numbers: &[i64]) -> Option<BTreeSet<Key>> {
        let key = |number: &i64| columns(ColumnKind::Int).key_of(&Literal::Number(Number::from(*number))).unwrap();
        Some(numbers.iter().map(key).collect())
    }

    #[test]
    fn a_join_names_keys_once_it_has_them() {
        let dynamic = Arc::new(DynamicFilterPhysicalExpr::new(vec![id()], lit(true)));
        let filter: Arc<dyn PhysicalExpr> = Arc::clone(&dynamic) as _;
        assert!(may_name(&filter, &columns(ColumnKind::Int)));
        assert_eq!(of(&filter), None, "it has not got them yet");
        let bounds = two(two(id(), Operator::GtEq, lit(-3i64)), Operator::And, two(id(), Operator::LtEq, lit(9i64)));
        dynamic.update(two(bounds.clone(), Operator::And, list(&[Some(9), None, Some(-3), Some(9)]))).unwrap();
        assert_eq!(of(&filter), some(&[-3, 9]));
        let narrower = list(&[Some(9), Some(10)]);
        assert_eq!(keys(&[filter.clone(), narrower], &columns(ColumnKind::Int)), some(&[9]));
        assert_eq!(keys(&[filter.clone(), bounds.clone()], &columns(ColumnKind::Int)), some(&[-3, 9]));
        dynamic.update(lit(false)).unwrap();
        assert_eq!(of(&filter), some(&[]), "its other side has no rows");
        dynamic.update(bounds).unwrap();
        assert_eq!(of(&filter), None, "of too many it tells the bounds");
    }

    #[test]
    fn filters_of_other_columns_are_not_taken() {
        let name = col("name", &schema(DataType::Int64)).unwrap();
        for children in [vec![name.clone()], vec![id(), name.clone()]] {
            let filter: Arc<dyn PhysicalExpr> = Arc::new(DynamicFilterPhysicalExpr::new(children, lit(true)));
            assert!(!may_name(&filter, &columns(ColumnKind::Int)), "{filter}");
        }
        assert!(!may_name(&list(&[Some(1)]), &columns(ColumnKind::Int)), "what is known was handed down before");
        let other = in_list(name, vec![lit("9")], &false, &schema(DataType::Int64)).unwrap();
        assert_eq!(of(&other), None);
    }

    #[test]
    fn lists_of_partitions_are_put_together() {
        let by_part = |otherwise| {
            let lists = vec![(lit(0u64), list(&[Some(1)])), (lit(1u64), list(&[Some(2), Some(3)]))];
            case(Some(lit(1u64)), lists, otherwise).unwrap()
        };
        assert_eq!(of(&by_part(Some(lit(false)))), some(&[1, 2, 3]));
        assert_eq!(of(&by_part(None)), some(&[1, 2, 3]));
        assert_eq!(of(&by_part(Some(lit(true)))), None, "of one nothing is known");
        let or_null = two(is_null(id()).unwrap(), Operator::Or, list(&[Some(4)]));
        assert_eq!(of(&or_null), some(&[4]));
        assert_eq!(of(&two(id(), Operator::Eq, lit(5i64))), some(&[5]));
        assert_eq!(of(&two(two(id(), Operator::Lt, lit(5i64)), Operator::Or, list(&[Some(4)]))), None);
        assert_eq!(of(&two(id(), Operator::NotEq, lit(5i64))), None);
        let values = vec![lit(4i64)];
        assert_eq!(of(&in_list(id(), values, &true, &schema(DataType::Int64)).unwrap()), None);
        let deep = (0..100).fold(list(&[Some(1)]), |deep, _| two(deep, Operator::Or, lit(false)));
        assert_eq!(of(&deep), None);
    }

    #[test]
    fn keys_of_another_type_are_found_where_no_two_become_one() {
        let decimals = |values: &[i128], scale| {
            let schema = schema(DataType::Int64);
            let values = values.iter().map(|value| lit(ScalarValue::Decimal128(Some(*value), 22, scale))).collect();
            in_list(cast(id(), &schema, DataType::Decimal128(22, scale)).unwrap(), values, &false, &schema).unwrap()
        };
        assert_eq!(of(&decimals(&[7, -7, i128::from(u64::MAX)], 0)), some(&[-7, 7]), "no key is as large as the last one");
        assert_eq!(of(&decimals(&[700, 750, -700], 2)), some(&[-7, 7]), "none is 7.5");
        let without_sign = keys(&[decimals(&[-1, i128::from(u64::MAX)], 0)], &columns(ColumnKind::Uint));
        assert_eq!(without_sign, Some([Key::U64(u64::MAX)].into_iter().collect()));
        let schema_of_ints = schema(DataType::Int64);
        let floats = cast(id(), &schema_of_ints, DataType::Float64).unwrap();
        let floats = in_list(floats, vec![lit(7.0f64)], &false, &schema_of_ints).unwrap();
        assert_eq!(of(&floats), None, "as such a number several are the same");
        let texts = schema(DataType::Utf8);
        let views = cast(col("id", &texts).unwrap(), &texts, DataType::Utf8View).unwrap();
        let value = lit(ScalarValue::Utf8View(Some("a".into())));
        let views = in_list(views, vec![value], &false, &texts).unwrap();
        assert_eq!(keys(&[views], &columns(ColumnKind::Text)), Some([Key::from("a")].into_iter().collect()));
    }

    #[test]
    fn joins_hand_down_more_values_unless_a_session_says_how_many() {
        let values = |config: &SessionConfig| config.options().optimizer.hash_join_inlist_pushdown_max_distinct_values;
        let own = SessionConfig::new().set_usize("datafusion.optimizer.hash_join_inlist_pushdown_max_distinct_values", 10);
        assert_eq!((values(&with_room(SessionConfig::new())), values(&with_room(own))), (KEYS_MAX, 10));
        let of_cluster = SessionConfig::new().set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false);
        assert!(with_room(of_cluster).options().optimizer.enable_join_dynamic_filter_pushdown);
    }

    #[test]
    fn keys_are_looked_up_where_a_scan_reads_as_much() {
        assert!(looks_up(1_000, 0, false), "one call");
        assert!(!looks_up(1_001, 0, false));
        assert!(looks_up(10_000, 10_000, false) && !looks_up(10_001, 10_000, false));
        assert!(looks_up(1_000, 10_000, true) && !looks_up(1_001, 10_000, true), "a search reads a part of them");
        assert!(looks_up(0, 0, true), "no keys are no question at all");
        assert_eq!([presumed(50, Some(7), false), presumed(50, None, true), presumed(50, None, false)], [7, 5, 50]);
    }
}
