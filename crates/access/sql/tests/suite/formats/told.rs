//! What is told of files that don't go together, that are not of their columns' types, or that nobody here has the key of; and of tables.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::writer::FileWriter;
use forebay_types::{Error, ErrorKind};

use crate::support::{Lake, parquet};

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_says_how_it_does() {
    let lake = Lake::new();
    let ids = |ids: ArrayRef| parquet(&[RecordBatch::try_from_iter([("id", ids)]).unwrap()], 100);
    lake.put("wider/a.parquet", ids(Arc::new(Int32Array::from(vec![1])))).await;
    lake.put("wider/b.parquet", ids(Arc::new(Int64Array::from(vec![1 << 40])))).await;
    let apart = lake.error("select * from '/lake/wider/'").await;
    let says = |error: &Error, what: &str| {
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains(what), "{error}");
    };
    says(&apart, "don't go together");
    says(&apart, "CREATE EXTERNAL TABLE");
    lake.rows("create external table wider (id bigint) stored as parquet location '/lake/wider/'").await;
    assert_eq!(lake.rows("select * from wider order by id").await, "1\n1099511627776");

    lake.put("day.csv", "day,n\n2024-01-01,1\n2024-13-01,2\n").await;
    let none = lake.error("select * from '/lake/day.csv'").await;
    says(&none, "'/lake/day.csv': ");
    says(&none, "CREATE EXTERNAL TABLE name (column varchar, ..)");
    lake.rows("create external table days (day varchar, n bigint) stored as csv location '/lake/day.csv'").await;
    assert_eq!(lake.rows("select day from days where n = 2").await, "2024-13-01");

    // A file whose footer is encrypted.
    let secret = [b"PARE".as_slice(), &[7; 60], &60_u32.to_le_bytes(), b"PARE"].concat();
    lake.put("secret.parquet", secret).await;
    let encrypted = lake.error("select * from '/lake/secret.parquet'").await;
    says(&encrypted, "'/lake/secret.parquet' (72 bytes) is encrypted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_tells_how_it_was_declared() {
    let lake = Lake::new();
    lake.put("t/day=1/a.csv", "id;word\n1;x\n").await;
    let rest = "(id bigint not null, word varchar, day int) stored as csv partitioned by (day) location '/lake/t/' options";
    for (kind, name) in [("external table", "kept"), ("external temporary table", "passing")] {
        lake.rows(&format!("create {kind} {name} {rest} ('format.delimiter' ';')")).await;
        assert_eq!(lake.rows(&format!("select id, word, day from {name}")).await, "1 x 1");
        let told = lake.rows(&format!("select definition from information_schema.views where table_name = '{name}'")).await;
        // Options may hold secrets.
        assert_eq!(told, format!("create {kind} {name} {rest} (...)"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_one_name_are_not_written() {
    let lake = Lake::new();
    let both = "select a.x, b.x from (values (1)) a(x) join (values (1)) b(x) on a.x = b.x";
    assert_eq!(lake.rows(both).await, "1 1");
    for ending in ["parquet", "csv", "ndjson", "arrow", "albis"] {
        for sql in ["", "explain ", "explain analyze "].map(|before| format!("{before}copy ({both}) to '/lake/x.{ending}'")) {
            let error = lake.error(&sql).await;
            assert!(error.kind() == ErrorKind::Invalid && error.message().contains("`x` is there twice"), "{sql}: {error}");
        }
    }
    assert_eq!(lake.rows("copy (select 1 as x, 2 as \"X\") to '/lake/x.parquet'").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_columns_of_one_name_is_refused() {
    let lake = Lake::new();
    let fields = ["x", "x"].map(|name| Field::new(name, DataType::Int64, false));
    let columns = (0..2).map(|at| Arc::new(Int64Array::from(vec![at])) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    lake.put("a/x.arrow", writer.into_inner().unwrap()).await;
    lake.put("p/x.parquet", parquet(&[batch.clone()], 100)).await;
    lake.put("two/1.parquet", parquet(&[batch.project(&[0]).unwrap()], 100)).await;
    lake.put("two/2.parquet", parquet(&[batch], 100)).await;
    for (path, file) in [("a/x.arrow", "a/x.arrow"), ("p/x.parquet", "p/x.parquet"), ("two/", "two/2.parquet")] {
        let error = lake.error(&format!("select * from '/lake/{path}'")).await;
        let is_told = error.message().contains("it has two columns 'x'") && error.message().contains(&format!("/lake/{file}"));
        assert!(error.kind() == ErrorKind::Invalid && is_told, "{error}");
    }
}
