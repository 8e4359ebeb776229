//! What clients ask before any statement: what the server can do, and which catalogs, kinds and tables there are.

use std::sync::LazyLock;

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{SqlInfo, SqlSupportedTransaction};
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::arrow::datatypes::Schema;
use forebay_sql::output::plain_schema;
use forebay_sql::{Engine, TableName};
use tonic::Status;

use crate::status::{internal, status};

/// The one catalog and its schema, as the engine names them.
pub(crate) const CATALOG: &str = "forebay";
pub(crate) const SCHEMA: &str = "public";
/// The kinds of tables that there are.
pub(crate) const TABLE_TYPES: [&str; 2] = ["BASE TABLE", "VIEW"];

/// What clients ask about the server before anything else.
pub(crate) static SQL_INFO: LazyLock<Result<SqlInfoData, String>> = LazyLock::new(|| {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Forebay");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlDdlTable, true);
    info.build().map_err(|error| error.to_string())
});

pub(crate) fn sql_info() -> Result<&'static SqlInfoData, Status> {
    SQL_INFO.as_ref().map_err(internal)
}

/// Tables with the schemas that a client may have asked for. A table whose files can't be read now is listed without
/// columns: one bad table must not hide the others.
pub(crate) async fn tables(engine: &Engine, with_schema: bool) -> Result<Vec<(TableName, Schema)>, Status> {
    let mut all = Vec::new();
    for table in engine.tables().await.map_err(|error| status(&error))? {
        let schema = match with_schema {
            false => Schema::empty(),
            true => match engine.describe(&format!("select * from \"{}\"", table.name.replace('"', "\"\""))).await {
                Ok(described) => plain_schema(&described.schema).as_ref().clone(),
                Err(error) => {
                    tracing::debug!(table = table.name, %error, "table listed without its columns");
                    Schema::empty()
                }
            },
        };
        all.push((table, schema));
    }
    Ok(all)
}

/// A batch or the defect that there is none.
pub(crate) fn built(batch: Result<RecordBatch, impl std::fmt::Display>) -> Result<RecordBatch, Status> {
    batch.map_err(internal)
}
