//! Statements for the record of one key, whose value is bound to them: which these are, and their rows without a planner.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Column, ParamValues};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{BinaryExpr, Expr, FetchType, Limit, LogicalPlan, Operator, SkipType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;
use forebay_client::DatasetId;
use forebay_shards::Shards;
use forebay_types::ForebayPath;

use super::conditions::asked;
use super::scan::ShardScan;
use super::table::ShardTable;

/// Bytes of a key at most: what is larger is left to the planner, which has long constants made late.
const KEY_BYTES_MAX: usize = 4 << 10;

/// `select COLUMN, .. from TABLE where KEY = $1`, with a limit or without, of a dataset at one manifest.
pub(crate) struct Point {
    table: String,
    path: ForebayPath,
    id: DatasetId,
    key: Column,
    key_type: DataType,
    /// With its `$`.
    parameter: String,
    /// Of what it gives.
    schema: SchemaRef,
    limit: Option<usize>,
}

impl Point {
    /// What a statement asks, as it stands before any value is put into it; none where it asks anything else.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Self> {
        let (plan, limit) = match plan {
            LogicalPlan::Limit(limit) => (limit.input.as_ref(), Some(rows(limit)?)),
            plan => (plan, None),
        };
        let LogicalPlan::Projection(shown) = plan else { return None };
        let LogicalPlan::Filter(filter) = shown.input.as_ref() else { return None };
        let scan = match filter.input.as_ref() {
            LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
            scan => scan,
        };
        let LogicalPlan::TableScan(scan) = scan else { return None };
        if scan.projection.is_some() || !scan.filters.is_empty() || scan.fetch.is_some() {
            return None;
        }
        let provider = source_as_provider(&scan.source).ok()?;
        let table = (provider.as_ref() as &dyn Any).downcast_ref::<ShardTable>()?;
        let places = shown.expr.iter().map(|expr| match expr {
            Expr::Column(column) => table.schema.index_of(&column.name).ok(),
            _ => None,
        });
        let schema = table.schema.project(&places.collect::<Option<Vec<_>>>()?).ok()?;
        let (key, parameter) = compared(&filter.predicate)?;
        debug_assert!(parameter.starts_with('$') || parameter == "?", "{parameter} is no parameter");
        let own_key = table.shards.columns().key();
        let key_type = table.schema.field_with_name(&own_key.name).ok()?.data_type().clone();
        (key.name == own_key.name).then(|| Self {
            table: scan.table_name.table().to_string(),
            path: table.shards.path().clone(),
            id: table.shards.id().clone(),
            key: Column::new_unqualified(key.name.clone()),
            key_type,
            parameter: parameter.to_string(),
            schema: Arc::new(schema),
            limit,
        })
    }

    /// The table's name in the statement.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Where the dataset is.
    pub(crate) fn path(&self) -> &ForebayPath {
        &self.path
    }

    /// What its names take, and the columns that it gives.
    pub(crate) fn bytes(&self) -> usize {
        self.table.len() + self.key.name.len() + self.parameter.len() + self.schema.fields().size()
    }

    /// The value of the key, where the statement has no other and it is of the key's own type: of all else the planner knows what it is equal
    /// to, or what is wrong with it.
    pub(crate) fn value<'a>(&self, values: &'a ParamValues) -> Option<&'a ScalarValue> {
        let name = self.parameter.strip_prefix('$')?;
        let value = match values {
            ParamValues::List(values) => match values.as_slice() {
                [value] if name == "1" => value,
                _ => return None,
            },
            ParamValues::Map(values) => values.get(name).filter(|_| values.len() == 1)?,
        };
        let is_plain = value.metadata.is_none() && !value.value.is_null() && value.value.size() <= KEY_BYTES_MAX;
        (is_plain && value.value.data_type() == self.key_type).then_some(&value.value)
    }

    /// The plan for a key, and its rows; none where the dataset is another one by now, or the value no key of it.
    pub(crate) fn read(
        &self,
        shards: Shards,
        value: &ScalarValue,
    ) -> Option<(Arc<dyn ExecutionPlan>, SendableRecordBatchStream)> {
        if *shards.id() != self.id {
            return None;
        }
        let filter = Expr::Column(self.key.clone()).eq(Expr::Literal(value.clone(), None));
        let (asked, left) = asked(std::slice::from_ref(&filter), shards.columns());
        if !left.is_empty() || asked.keys.as_ref().is_none_or(|keys| keys.len() != 1) {
            return None;
        }
        let scan = Arc::new(ShardScan::new(shards, asked, Arc::clone(&self.schema), self.limit).planned_before());
        debug_assert_eq!(scan.properties().output_partitioning().partition_count(), 1, "one key is in one shard");
        let rows = scan.rows(0);
        Some((scan, rows))
    }
}

/// The rows that a limit leaves, some at least, where it is a number and skips none.
fn rows(limit: &Limit) -> Option<usize> {
    match (limit.get_skip_type().ok()?, limit.get_fetch_type().ok()?) {
        (SkipType::Literal(0), FetchType::Literal(Some(rows))) => (rows > 0).then_some(rows),
        _ => None,
    }
}

/// The column and the parameter that a condition says to be equal, where it says that alone.
fn compared(condition: &Expr) -> Option<(&Column, &str)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Placeholder(Placeholder { id, .. }))
        | (Expr::Placeholder(Placeholder { id, .. }), Expr::Column(column)) => Some((column, id.as_str())),
        _ => None,
    }
}
