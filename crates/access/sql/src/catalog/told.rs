//! Tables that a statement tells of and reads nothing of: with plain types, without what files say of fields beside, which differs from file to
//! file of a folder.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

#[derive(Debug)]
struct Told {
    table: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

/// A table with plain types.
pub(super) fn told(table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    let schema = Arc::new(without_metadata(&table.schema()));
    Arc::new(Told { table, schema })
}

/// The same columns without what files say of them beside.
pub(crate) fn without_metadata(schema: &Schema) -> Schema {
    Schema::new(schema.fields().iter().map(plain).collect::<Vec<_>>())
}

fn plain(field: &FieldRef) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::List(item) => DataType::List(plain(item)),
        DataType::LargeList(item) => DataType::LargeList(plain(item)),
        DataType::FixedSizeList(item, count) => DataType::FixedSizeList(plain(item), *count),
        DataType::Map(entries, sorted) => DataType::Map(plain(entries), *sorted),
        other => other.clone(),
    };
    Arc::new(Field::new(field.name(), kind, field.is_nullable()))
}

#[async_trait]
impl TableProvider for Told {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    forebay_types::handed_on! {
        [table]
        fn table_type(&self) -> TableType;
        fn get_table_definition(&self) -> Option<&str>;
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }
}
