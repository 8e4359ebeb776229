//! What clients ask before any statement: what the server can do, and which catalogs, kinds and tables there are.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedTransaction};
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use forebay_sql::output::plain_schema;
use forebay_sql::{Engine, TableName};
use tonic::Status;

use crate::status::{internal, status};

/// The one catalog and its schema, as the engine names them.
pub(crate) const CATALOG: &str = "forebay";
pub(crate) const SCHEMA: &str = "public";
/// The kinds of tables that there are.
pub(crate) const TABLE_TYPES: [&str; 2] = ["BASE TABLE", "VIEW"];

/// What the server does. JDBC's driver asks for all that stands here at once, and fails at a question whose answer does not.
const DOES: [SqlInfo; 12] = [
    SqlInfo::FlightSqlServerSql,
    SqlInfo::SqlDdlTable,
    SqlInfo::SqlAllTablesAreSelectable,
    SqlInfo::SqlSupportsColumnAliasing,
    SqlInfo::SqlNullPlusNullIsNull,
    SqlInfo::SqlSupportsTableCorrelationNames,
    SqlInfo::SqlSupportsExpressionsInOrderBy,
    SqlInfo::SqlSupportsOrderByUnrelated,
    SqlInfo::SqlSupportsNonNullableColumns,
    SqlInfo::SqlCatalogAtStart,
    SqlInfo::SqlCorrelatedSubqueriesSupported,
    SqlInfo::SqlMaxRowSizeIncludesBlobs,
];
/// What it doesn't.
const DOES_NOT: [SqlInfo; 20] = [
    SqlInfo::FlightSqlServerReadOnly,
    SqlInfo::FlightSqlServerSubstrait,
    SqlInfo::FlightSqlServerCancel,
    SqlInfo::FlightSqlServerBulkIngestion,
    SqlInfo::FlightSqlServerIngestTransactionsSupported,
    SqlInfo::SqlDdlCatalog,
    SqlInfo::SqlDdlSchema,
    SqlInfo::SqlSupportsDifferentTableCorrelationNames,
    SqlInfo::SqlSupportsLikeEscapeClause,
    SqlInfo::SqlSupportsIntegrityEnhancementFacility,
    SqlInfo::SqlSelectForUpdateSupported,
    SqlInfo::SqlStoredProceduresSupported,
    SqlInfo::SqlTransactionsSupported,
    SqlInfo::SqlDataDefinitionCausesTransactionCommit,
    SqlInfo::SqlDataDefinitionsInTransactionsIgnored,
    SqlInfo::SqlBatchUpdatesSupported,
    SqlInfo::SqlSavepointsSupported,
    SqlInfo::SqlNamedParametersSupported,
    SqlInfo::SqlLocatorsUpdateCopy,
    SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported,
];
/// What has no bound, or none that is known before.
const WITHOUT_BOUND: [SqlInfo; 20] = [
    SqlInfo::SqlMaxBinaryLiteralLength,
    SqlInfo::SqlMaxCharLiteralLength,
    SqlInfo::SqlMaxColumnNameLength,
    SqlInfo::SqlMaxColumnsInGroupBy,
    SqlInfo::SqlMaxColumnsInIndex,
    SqlInfo::SqlMaxColumnsInOrderBy,
    SqlInfo::SqlMaxColumnsInSelect,
    SqlInfo::SqlMaxColumnsInTable,
    SqlInfo::SqlMaxConnections,
    SqlInfo::SqlMaxCursorNameLength,
    SqlInfo::SqlMaxIndexLength,
    SqlInfo::SqlDbSchemaNameLength,
    SqlInfo::SqlMaxProcedureNameLength,
    SqlInfo::SqlMaxCatalogNameLength,
    SqlInfo::SqlMaxRowSize,
    SqlInfo::SqlMaxStatementLength,
    SqlInfo::SqlMaxStatements,
    SqlInfo::SqlMaxTableNameLength,
    SqlInfo::SqlMaxTablesInSelect,
    SqlInfo::SqlMaxUsernameLength,
];
/// What is there in part: a bit for each kind that is, at the place of its number.
const IN_PART: [(SqlInfo, i32); 14] = [
    // By columns that are not selected, and by more than those.
    (SqlInfo::SqlSupportedGroupBy, 0b11),
    // The least and the core.
    (SqlInfo::SqlSupportedGrammar, 0b011),
    // The entry level.
    (SqlInfo::SqlAnsi92SupportedLevel, 0b001),
    // Some and full ones.
    (SqlInfo::SqlOuterJoinsSupportLevel, 0b110),
    (SqlInfo::SqlSchemasSupportedActions, 0),
    (SqlInfo::SqlCatalogsSupportedActions, 0),
    (SqlInfo::SqlSupportedPositionedCommands, 0),
    // In comparisons, `exists` and `in`.
    (SqlInfo::SqlSupportedSubqueries, 0b0111),
    (SqlInfo::SqlSupportedUnions, 0b11),
    // None, as there are no transactions.
    (SqlInfo::SqlSupportedTransactionsIsolationLevels, 0b1),
    // Forward only, to read.
    (SqlInfo::SqlSupportedResultSetTypes, 0b10),
    (SqlInfo::SqlSupportedConcurrenciesForResultSetForwardOnly, 0b10),
    (SqlInfo::SqlSupportedConcurrenciesForResultSetScrollSensitive, 0),
    (SqlInfo::SqlSupportedConcurrenciesForResultSetScrollInsensitive, 0),
];

/// What clients ask about the server before anything else.
pub(crate) static SQL_INFO: LazyLock<Result<SqlInfoData, String>> = LazyLock::new(|| {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Forebay");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlIdentifierCase, SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32);
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    info.append(SqlInfo::SqlSearchStringEscape, "\\");
    info.append(SqlInfo::SqlExtraNameCharacters, "");
    info.append(SqlInfo::SqlCatalogTerm, "catalog");
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlProcedureTerm, "procedure");
    info.append(SqlInfo::SqlSupportsConvert, BTreeMap::<i32, Vec<i32>>::new());
    info.append(SqlInfo::SqlDefaultTransactionIsolation, 0_i64);
    DOES.into_iter().for_each(|what| info.append(what, true));
    DOES_NOT.into_iter().for_each(|what| info.append(what, false));
    WITHOUT_BOUND.into_iter().for_each(|what| info.append(what, 0_i64));
    IN_PART.into_iter().for_each(|(what, kinds)| info.append(what, kinds));
    info.build().map_err(|error| error.to_string())
});

/// The columns in which primary keys are told. Files have none, nor foreign ones: no row is.
pub(crate) fn primary_keys() -> SchemaRef {
    let text = |name: &str, may_lack| Field::new(name, DataType::Utf8, may_lack);
    Arc::new(Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("column_name", false),
        text("key_name", true),
        Field::new("key_sequence", DataType::Int32, false),
    ]))
}

/// The columns in which foreign keys are told.
pub(crate) fn foreign_keys() -> SchemaRef {
    let text = |name: &str, may_lack| Field::new(name, DataType::Utf8, may_lack);
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jdbc_finds_an_answer_to_each_of_its_questions() {
        // It does without lists of functions and key words, 508 to 512.
        let asked = (500..=504).chain([506, 507]).chain(513..=576).filter(|info| *info != 568);
        for info in asked {
            assert_eq!(sql_info().unwrap().record_batch([info]).unwrap().num_rows(), 1, "{info}");
        }
    }

    #[test]
    fn nothing_is_said_twice() {
        let all: Vec<_> = DOES.into_iter().chain(DOES_NOT).chain(WITHOUT_BOUND).chain(IN_PART.map(|(what, _)| what)).collect();
        let names: std::collections::HashSet<_> = all.iter().map(|what| *what as i32).collect();
        assert_eq!(names.len(), all.len());
    }
}
