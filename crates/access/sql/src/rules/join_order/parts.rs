//! Inner joins taken apart into tables and conditions, and put together in another order.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ColumnStatistics, JoinSide, JoinType, NullEquality, Statistics};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, LambdaVariable};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use super::Plan;
use super::order::{Known, Tree};

/// A column of what is joined: which table, and which of its columns.
type Cell = (usize, usize);

/// Joins that may be made in any order.
pub(super) struct Parts {
    /// What is joined: scans, and whatever else is no such join.
    tables: Vec<Plan>,
    /// Columns that are equal in a row.
    equal: Vec<(Cell, Cell)>,
    filters: Vec<Filter>,
    /// The order that they are in.
    pub(super) given: Tree,
    /// The columns that come of all of it.
    wanted: Vec<Cell>,
    /// And their names.
    names: Vec<String>,
    mode: PartitionMode,
}

/// A condition that is more than that two columns are equal.
struct Filter {
    filter: JoinFilter,
    /// Its columns, in the order of their numbers in it.
    columns: Vec<Cell>,
}

impl Filter {
    fn set(&self) -> u32 {
        self.columns.iter().fold(0, |set, (table, _)| set | 1 << *table)
    }
}

/// The number of a column; none for another expression.
fn column(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// A join whose rows are all pairs that meet its conditions, by columns of both sides.
fn plain_join(node: &Plan) -> Option<&HashJoinExec> {
    node.downcast_ref::<HashJoinExec>().filter(|join| {
        let is_of_sides = |side: JoinSide| side != JoinSide::None;
        *join.join_type() == JoinType::Inner
            && join.null_equality() == NullEquality::NullEqualsNothing
            && !join.null_aware
            && !join.contains_projection()
            && join.fetch().is_none()
            && join.on().iter().all(|(left, right)| column(left).is_some() && column(right).is_some())
            && join.filter().is_none_or(|filter| filter.column_indices().iter().all(|column| is_of_sides(column.side)))
    })
}

/// The columns that a projection of columns gives, where it is of such a join.
fn plain_projection(node: &Plan) -> Option<(&Plan, Vec<usize>)> {
    let projection = node.downcast_ref::<ProjectionExec>()?;
    let columns = projection.expr().iter().map(|each| column(&each.expr)).collect::<Option<Vec<_>>>()?;
    let input = projection.input();
    (plain_join(input).is_some() || plain_projection(input).is_some()).then_some((input, columns))
}

impl Parts {
    /// The parts of a join; none of another node.
    pub(super) fn of(node: &Plan) -> Option<Self> {
        let mode = *plain_join(node)?.partition_mode();
        let names = node.schema().fields().iter().map(|field| field.name().clone()).collect();
        let (tables, equal, filters) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts = Self { tables, equal, filters, given: Tree::Table(0), wanted: Vec::new(), names, mode };
        (parts.given, parts.wanted) = parts.take_apart(node);
        // A set of tables is a number of 32 bits, and a filter of less than two has no join where it belongs.
        let is_known = parts.tables.len() < 32 && parts.filters.iter().all(|filter| filter.set().count_ones() > 1);
        is_known.then_some(parts)
    }

    /// Adds what a node is made of, and gives its order and its columns.
    fn take_apart(&mut self, node: &Plan) -> (Tree, Vec<Cell>) {
        if let Some((input, columns)) = plain_projection(node) {
            let (tree, cells) = self.take_apart(input);
            return (tree, columns.into_iter().map(|column| cells[column]).collect());
        }
        let Some(join) = plain_join(node) else {
            let table = self.tables.len();
            self.tables.push(Arc::clone(node));
            return (Tree::Table(table), (0..node.schema().fields().len()).map(|column| (table, column)).collect());
        };
        let (left, mut cells) = self.take_apart(join.left());
        let (right, of_right) = self.take_apart(join.right());
        let pairs = join.on().iter().filter_map(|(left, right)| Some((cells[column(left)?], of_right[column(right)?])));
        self.equal.extend(pairs);
        if let Some(filter) = join.filter() {
            let cell = |index: usize, side: JoinSide| if side == JoinSide::Left { cells[index] } else { of_right[index] };
            let columns = filter.column_indices().iter().map(|column| cell(column.index, column.side)).collect();
            self.filters.push(Filter { filter: filter.clone(), columns });
        }
        cells.extend(of_right);
        (Tree::Join(Box::new(left), Box::new(right)), cells)
    }

    /// What is known of the tables; none where the rows of one are not, or nothing of the values by which two are joined.
    pub(super) fn known(&self) -> Option<Known> {
        let context = StatisticsContext::new();
        let of = |table: &Plan| context.compute(table.as_ref(), &StatisticsArgs::new()).ok();
        let found = self.tables.iter().map(of).collect::<Option<Vec<_>>>()?;
        let rows = found.iter().map(|table| Some((*table.num_rows.get_value()? as f64).max(1.0)));
        let rows = rows.collect::<Option<Vec<f64>>>()?;
        let distinct = |(table, column): Cell| distinct(&found[table], column, rows[table]);
        // Of several conditions between two tables the one that leaves the fewest rows: they may say the same.
        let mut pairs = BTreeMap::new();
        for (a, b) in &self.equal {
            let part = 1.0 / distinct(*a).into_iter().chain(distinct(*b)).reduce(f64::max)?;
            let least = pairs.entry((a.0.min(b.0), a.0.max(b.0))).or_insert(part);
            *least = part.min(*least);
        }
        Some(Known { rows, pairs: pairs.into_iter().map(|((a, b), part)| (a, b, part)).collect() })
    }

    /// The same rows by joins in this order; none where that can't be said.
    pub(super) fn put_together(&self, tree: &Tree) -> Option<Plan> {
        let (plan, cells) = self.joined(tree)?;
        self.projected(plan, &cells, &self.wanted, &self.names)
    }

    /// The join of some of the tables, and its columns.
    fn joined(&self, tree: &Tree) -> Option<(Plan, Vec<Cell>)> {
        let (left, right) = match tree {
            Tree::Table(table) => {
                let plan = Arc::clone(&self.tables[*table]);
                let columns = (0..plan.schema().fields().len()).map(|column| (*table, column)).collect();
                return Some((plan, columns));
            }
            Tree::Join(left, right) => (left, right),
        };
        let (of_left, of_right, all) = (left.set(), right.set(), tree.set());
        let (left, mut cells) = self.joined(left)?;
        let (right, right_cells) = self.joined(right)?;
        let mut on = Vec::new();
        for (a, b) in &self.equal {
            let (a, b) = if has(of_left, *a) { (*a, *b) } else { (*b, *a) };
            if has(of_left, a) && has(of_right, b) {
                on.push((at(&left, &cells, a)?, at(&right, &right_cells, b)?));
            }
        }
        // Each condition where all of its columns are there for the first time.
        let is_here = |filter: &&Filter| {
            let set = filter.set();
            set & !all == 0 && set & !of_left != 0 && set & !of_right != 0
        };
        let mut filter = None;
        for more in self.filters.iter().filter(is_here) {
            filter = Some(more.beside(filter, &cells, &right_cells)?);
        }
        let equality = NullEquality::NullEqualsNothing;
        let join = HashJoinExec::try_new(left, right, on, filter, &JoinType::Inner, None, self.mode, equality, false).ok()?;
        let plan: Plan = Arc::new(join);
        cells.extend(right_cells);
        let wanted: Vec<Cell> = cells.iter().copied().filter(|cell| self.is_wanted_of(all, *cell)).collect();
        if wanted.len() == cells.len() || all.count_ones() as usize == self.tables.len() {
            return Some((plan, cells));
        }
        let names = wanted.iter().map(|(table, column)| self.tables[*table].schema().field(*column).name().clone());
        let plan = self.projected(plan, &cells, &wanted, &names.collect::<Vec<_>>())?;
        Some((plan, wanted))
    }

    /// Whether a column of some joined tables is needed by what is above their join.
    fn is_wanted_of(&self, set: u32, cell: Cell) -> bool {
        let other = |(a, b): &(Cell, Cell)| (*a == cell && !has(set, *b)) || (*b == cell && !has(set, *a));
        let in_filter = |filter: &Filter| filter.set() & !set != 0 && filter.columns.contains(&cell);
        self.wanted.contains(&cell) || self.equal.iter().any(other) || self.filters.iter().any(in_filter)
    }

    /// These columns, by these names.
    fn projected(&self, plan: Plan, cells: &[Cell], wanted: &[Cell], names: &[String]) -> Option<Plan> {
        assert_eq!(wanted.len(), names.len(), "each column has a name");
        let named = wanted.iter().zip(names).map(|(cell, name)| Some(ProjectionExpr::new(at(&plan, cells, *cell)?, name)));
        let named = named.collect::<Option<Vec<_>>>()?;
        Some(Arc::new(ProjectionExec::try_new(named, plan).ok()?))
    }
}

impl Filter {
    /// This condition, and another one, on rows of two sides with these columns.
    fn beside(&self, other: Option<JoinFilter>, left: &[Cell], right: &[Cell]) -> Option<JoinFilter> {
        let place = |cell: &Cell| match left.iter().position(|each| each == cell) {
            Some(index) => Some(ColumnIndex { index, side: JoinSide::Left }),
            None => Some(ColumnIndex { index: right.iter().position(|each| each == cell)?, side: JoinSide::Right }),
        };
        let columns = self.columns.iter().map(place).collect::<Option<Vec<_>>>()?;
        let (expression, schema) = (Arc::clone(self.filter.expression()), self.filter.schema());
        let Some(other) = other else { return Some(JoinFilter::new(expression, columns, Arc::clone(schema))) };
        // Variables of lambdas have the numbers after those of the columns, which are more then.
        let has_lambda = |expression: &Arc<dyn PhysicalExpr>| expression.exists(|node| Ok(node.is::<LambdaVariable>()));
        if has_lambda(&expression).unwrap_or(true) || has_lambda(other.expression()).unwrap_or(true) {
            return None;
        }
        let first = other.column_indices().len();
        let moved = |expression: Arc<dyn PhysicalExpr>| {
            let moved = expression.downcast_ref::<Column>().map(|column| Column::new(column.name(), first + column.index()));
            Ok(match moved {
                Some(moved) => Transformed::yes(Arc::new(moved) as Arc<dyn PhysicalExpr>),
                None => Transformed::no(expression),
            })
        };
        let expression = expression.transform_up(moved).data().ok()?;
        let both = BinaryExpr::new(Arc::clone(other.expression()), Operator::And, expression);
        let fields: Vec<_> = other.schema().fields().iter().chain(schema.fields()).cloned().collect();
        let columns = other.column_indices().iter().cloned().chain(columns).collect();
        Some(JoinFilter::new(Arc::new(both), columns, Arc::new(Schema::new(fields))))
    }
}

fn has(set: u32, cell: Cell) -> bool {
    set & (1 << cell.0) != 0
}

/// A column among those of a plan.
fn at(plan: &Plan, cells: &[Cell], cell: Cell) -> Option<Arc<dyn PhysicalExpr>> {
    let column = cells.iter().position(|each| *each == cell)?;
    Some(Arc::new(Column::new(plan.schema().field(column).name(), column)))
}

/// How many values a column has, at most; none where nothing is known of it. A few values that come often are not to be taken for keys.
fn distinct(table: &Statistics, column: usize, rows: f64) -> Option<f64> {
    let of_range = |column: &ColumnStatistics| {
        let (least, most) = (column.min_value.get_value()?, column.max_value.get_value()?);
        Some(most.distance(least)? as f64 + 1.0)
    };
    let counted = |column: &ColumnStatistics| column.distinct_count.get_value().map(|count| *count as f64);
    let column = table.column_statistics.get(column)?;
    Some(counted(column).or_else(|| of_range(column))?.clamp(1.0, rows))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn two_conditions_are_one_unless_columns_have_variables_behind_them() {
        let field = |name: &str| Field::new(name, DataType::Boolean, true);
        let of = |expression: Arc<dyn PhysicalExpr>| {
            let columns = [JoinSide::Left, JoinSide::Right].map(|side| ColumnIndex { index: 0, side }).to_vec();
            let filter = JoinFilter::new(expression, columns, Arc::new(Schema::new(vec![field("a"), field("b")])));
            Filter { filter, columns: vec![(0, 0), (1, 0)] }
        };
        let (plain, lambda) = (of(Arc::new(Column::new("b", 1))), of(Arc::new(LambdaVariable::new(2, Arc::new(field("x"))))));
        let beside =
            |one: &Filter, other: Option<&Filter>| one.beside(other.map(|other| other.filter.clone()), &[(0, 0)], &[(1, 0)]);
        let both = beside(&plain, Some(&plain)).unwrap();
        assert_eq!(both.expression().to_string(), "b@1 AND b@3");
        assert_eq!((both.column_indices().len(), both.schema().fields().len()), (4, 4));
        assert!(beside(&lambda, None).is_some());
        assert!(beside(&lambda, Some(&plain)).is_none() && beside(&plain, Some(&lambda)).is_none());
    }
}
