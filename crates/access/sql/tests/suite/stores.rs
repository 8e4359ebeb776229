//! Several stores in one query: a path alone never says which object is meant.

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use forebay_demo::{S3Server, S3Settings};
use forebay_sql::Engine;
use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::support::{parquet, rows, settings};

fn file(ids: std::ops::Range<i64>) -> bytes::Bytes {
    let ids = Int64Array::from_iter_values(ids);
    parquet(&[RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap()], 4)
}

/// The same key in two stores, with 10 rows in one and 1,000 others in the other, in each format.
async fn fill(engine: &Engine, one: &str, two: &str) {
    for ending in ["csv", "json", "arrow", "albis", "csv.gz"] {
        for (store, sql) in [
            (one, "select value as id from range(0, 10)"),
            (two, "select value as id from range(5000, 6000) order by value desc"),
        ] {
            rows(engine, &format!("copy ({sql}) to '{store}t.{ending}'")).await;
        }
    }
}

/// What both say, in both orders, whatever was asked first.
async fn check(engine: &Engine, one: &str, two: &str) {
    for ending in ["parquet", "csv", "json", "arrow", "albis", "csv.gz"] {
        let (a, b) = (format!("'{one}t.{ending}'"), format!("'{two}t.{ending}'"));
        let facts = |table: &str| format!("select count(*), min(id), max(id), sum(id), count(id) from {table}");
        let (of_a, of_b) = ("10 0 9 45 10", "1000 5000 5999 5499500 1000");
        let both = rows(engine, &format!("{} union all {} order by 1", facts(&a), facts(&b))).await;
        assert_eq!(both, format!("{of_a}\n{of_b}"), "{ending}");
        let both = rows(engine, &format!("{} union all {} order by 1 desc", facts(&b), facts(&a))).await;
        assert_eq!(both, format!("{of_b}\n{of_a}"), "{ending}");
        let joined =
            format!("select count(*), sum(x.id), min(y.id) from {a} x join {b} y on x.id + 5000 = y.id where y.id > 5001");
        assert_eq!(rows(engine, &joined).await, "8 44 5002", "{ending}");
        let joined = format!("select count(*), sum(x.id), min(y.id) from {b} y join {a} x on x.id + 5000 = y.id where x.id > 1");
        assert_eq!(rows(engine, &joined).await, "8 44 5002", "{ending}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_buckets_with_the_same_key_answer_each_with_its_own_rows() {
    let names = ["one".to_string(), "two".to_string()];
    let s3 = S3Server::start(S3Settings { buckets: names.to_vec(), anonymous: true, ..Default::default() }).unwrap();
    let store = |bucket: &str| {
        let builder = AmazonS3Builder::new().with_endpoint(s3.endpoint()).with_bucket_name(bucket).with_region("us-east-1");
        let store = builder.with_allow_http(true).with_skip_signature(true).build().unwrap();
        (format!("s3://{bucket}").parse().unwrap(), Arc::new(store) as Arc<dyn ObjectStore>)
    };
    let engine = Engine::over_object_store(names.iter().map(|name| store(name)).collect(), settings());
    s3.put("one", "a/t.parquet", &file(0..10)).unwrap();
    s3.put("two", "a/t.parquet", &file(5000..6000)).unwrap();
    fill(&engine, "s3://one/a/", "s3://two/a/").await;
    check(&engine, "s3://one/a/", "s3://two/a/").await;
    // Two spellings of one bucket are one bucket.
    check(&engine, "s3a://one/a/", "s3://two/a/").await;
    // Folders are listed each in its own.
    let sql = "select (select count(*) from 's3://one/a/*.parquet') as a, (select count(*) from 's3://two/a/*.parquet') as b";
    assert_eq!(rows(&engine, sql).await, "10 1000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_this_machine_and_one_below_a_name_of_the_same_path_are_two() {
    // Names below the root of this machine are names of mounts too, but for `tmp`.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().to_str().unwrap();
    let (name, below) = path[1..].split_once('/').unwrap();
    let lake = Arc::new(InMemory::new());
    let engine =
        Engine::over_object_store(vec![(format!("forebay:///{name}").parse().unwrap(), Arc::clone(&lake) as _)], settings());
    lake.put(&Path::parse(format!("{below}/t.parquet")).unwrap(), file(0..10).into()).await.unwrap();
    std::fs::write(folder.path().join("t.parquet"), file(5000..6000)).unwrap();
    let (one, two) = (format!("{path}/"), format!("file://{path}/"));
    fill(&engine, &one, &two).await;
    check(&engine, &one, &two).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_to_the_same_key_of_another_bucket_reads_its_source_whole() {
    let (one, two) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let stores = [("s3://one", &one), ("s3://two", &two)];
    let stores = stores.map(|(url, store)| (url.parse().unwrap(), Arc::clone(store) as Arc<dyn ObjectStore>));
    let engine = Engine::over_object_store(stores.into(), settings());
    one.put(&Path::from("t.parquet"), file(0..1000).into()).await.unwrap();
    assert_eq!(rows(&engine, "copy (select * from 's3://one/t.parquet') to 's3://two/t.parquet'").await, "1000");
    assert_eq!(rows(&engine, "select count(*), sum(id) from 's3://two/t.parquet'").await, "1000 499500");
}
