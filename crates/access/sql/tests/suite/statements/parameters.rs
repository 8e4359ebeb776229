//! Statements with values for their parameters, and what is said of a statement that is not run.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::pretty::pretty_format_batches;
use forebay_sql::{ParamValues, ScalarValue};
use forebay_types::ErrorKind;

use crate::support::Lake;

async fn answer(lake: &Lake, sql: &str, values: ParamValues) -> String {
    let mut query = lake.engine.execute_with(sql, values).await.unwrap();
    pretty_format_batches(&query.collect().await.unwrap()).unwrap().to_string()
}

#[tokio::test]
async fn parameters_go_by_order_and_by_name() {
    let lake = Lake::new();
    lake.put("x.csv", b"n\n1\n2\n3\n".to_vec()).await;
    let sql = "select sum(n) as sum from '/lake/x.csv' where n >= $1";
    assert!(answer(&lake, sql, ParamValues::from(vec![ScalarValue::Int64(Some(2))])).await.contains("| 5   |"));
    let named = HashMap::from([("least".to_string(), ScalarValue::Int64(Some(3)))]);
    assert!(answer(&lake, &sql.replace("$1", "$least"), ParamValues::from(named)).await.contains("| 3   |"));
    let none = lake.engine.execute_with(sql, ParamValues::from(Vec::<ScalarValue>::new())).await;
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_value_that_the_statement_has_no_place_for_is_refused() {
    let lake = Lake::new();
    let int = |value| ScalarValue::Int64(Some(value));
    let refused = async |sql: &str, values: ParamValues| {
        let error = lake.engine.execute_with(sql, values).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error.message().to_string()
    };
    assert!(refused("select $1", ParamValues::from(vec![int(1), int(2)])).await.contains("a value for $2"));
    let named = HashMap::from([("a".to_string(), int(1)), ("b".to_string(), int(2))]);
    assert!(refused("select $a", ParamValues::from(named)).await.contains("a value for $b"));
    let inside = "select 1 as one where 2 in (select $2) order by one limit $1";
    assert!(answer(&lake, inside, ParamValues::from(vec![int(1), int(2)])).await.contains("| 1   |"));
}

#[tokio::test]
async fn a_statement_is_described_without_running() {
    let lake = Lake::new();
    lake.put("x.csv", b"n\n1\n".to_vec()).await;
    let asked = lake.engine.describe("select n, n + 1 as more from '/lake/x.csv' where n > $1").await.unwrap();
    assert_eq!(asked.schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["n", "more"]);
    assert_eq!(asked.parameters, [("$1".to_string(), Some(DataType::Int64))]);
    assert!(!asked.writes);
    for writes in ["copy (select 1) to '/lake/y.csv'", "create view v as select 1", "set datafusion.execution.batch_size = 10"] {
        assert!(lake.engine.describe(writes).await.unwrap().writes, "{writes}");
    }
    // Nothing of it was done.
    assert!(lake.engine.execute("select * from v").await.is_err());
    assert!(lake.engine.execute("select * from '/lake/y.csv'").await.is_err());
    lake.engine.execute("create view v as select 1 as one").await.unwrap();
    let tables = lake.engine.tables().await.unwrap();
    assert_eq!(tables.iter().map(|table| (table.name.as_str(), table.kind)).collect::<Vec<_>>(), [("v", "VIEW")]);
}

#[tokio::test]
async fn parameters_are_told_in_the_order_in_which_values_are_bound() {
    let lake = Lake::new();
    lake.put("x.csv", b"n\n1\n".to_vec()).await;
    let told = async |sql: &str| {
        let parameters = lake.engine.describe(sql).await.unwrap().parameters;
        parameters.into_iter().map(|(name, kind)| format!("{name} {kind:?}")).collect::<Vec<_>>()
    };
    let twelve: Vec<_> = (1..=12).map(|number| format!("n > ${number}")).collect();
    let sql = format!("select n from '/lake/x.csv' where {}", twelve.join(" and "));
    assert_eq!(told(&sql).await, (1..=12).map(|number| format!("${number} Some(Int64)")).collect::<Vec<_>>());
    // What one place of a parameter says of its type is its type, a cast too where nothing else is known.
    let sql = "select $2 is null, cast($2 as bigint), $1, try_cast($b as date), $a, n > $3, $3 is null from '/lake/x.csv'";
    assert_eq!(told(sql).await, ["$1 None", "$2 Some(Int64)", "$3 Some(Int64)", "$a None", "$b Some(Date32)"]);
}
