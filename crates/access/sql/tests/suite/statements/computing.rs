//! Statements on threads of their own: the caller's thread answers others meanwhile, and gets the same rows.

use std::task::Poll;
use std::time::Duration;

use forebay_runtime::Computing;
use forebay_runtime::time::{sleep, timeout};
use forebay_sql::EngineSettings;
use forebay_types::ErrorKind;
use futures::poll;

use crate::support::{Lake, settings};

fn apart() -> Lake {
    Lake::with(EngineSettings { computing: Some(Computing::start("query").unwrap()), ..settings() })
}

#[tokio::test]
async fn the_callers_thread_is_free_while_a_statement_computes() {
    let lake = apart();
    let engine = lake.engine.clone();
    // Its caller's thread is the only one of its runtime: were it the one that computes, it would have a turn a batch at most.
    let side = "(select value from generate_series(1, 6000))";
    let sql = format!("select count(*) from {side} a cross join {side} b where a.value + b.value > 0");
    let asked = tokio::spawn(async move {
        let mut query = engine.execute(&sql).await.unwrap();
        query.collect().await.unwrap()
    });
    let mut turns = 0_u64;
    while !asked.is_finished() {
        tokio::task::yield_now().await;
        turns += 1;
    }
    assert_eq!(crate::support::text(&asked.await.unwrap()), "36000000");
    assert!(turns > 10, "{turns} turns of the caller's thread while 36 million pairs were looked at");
}

#[tokio::test]
async fn who_stops_waiting_for_a_batch_and_asks_again_misses_none() {
    let lake = apart();
    let mut query = lake.engine.execute("select value from generate_series(1, 200000) as t(value)").await.unwrap();
    let (mut rows, mut given_up) = (0, 0);
    loop {
        let batch = {
            let next = query.next_batch();
            futures::pin_mut!(next);
            match poll!(next) {
                Poll::Ready(batch) => batch,
                // Given up as soon as it has begun.
                Poll::Pending => {
                    given_up += 1;
                    tokio::task::yield_now().await;
                    continue;
                }
            }
        };
        match batch {
            Some(batch) => rows += batch.unwrap().num_rows(),
            None => break,
        }
    }
    assert!(given_up > 0, "each is made elsewhere");
    assert_eq!(rows, 200_000);
}

#[tokio::test]
async fn errors_and_writes_are_as_without_them() {
    let lake = apart();
    assert_eq!(lake.error("select 1 from '/lake/nothing.parquet'").await.kind(), ErrorKind::NotFound);
    assert_eq!(lake.rows("copy (select 1 as a union all select 2) to '/lake/a.parquet'").await, "2");
    assert_eq!(lake.rows("select sum(a) from '/lake/a.parquet'").await, "3");
    assert_eq!(lake.error("select a / 0 from '/lake/a.parquet'").await.kind(), ErrorKind::Invalid);
    let described = lake.engine.describe("select a from '/lake/a.parquet' where a > $1").await.unwrap();
    assert_eq!((described.schema.fields().len(), described.parameters.len()), (1, 1));
}

#[tokio::test]
async fn a_statement_that_is_too_deep_is_an_error_and_not_the_end_of_the_process() {
    let lake = apart();
    for (first, next) in
        [("1", " + 1"), ("true", " or true"), ("1", "::int"), ("1", " union all select 1"), ("1", " except select 1")]
    {
        let sql = format!("select {first}{}", next.repeat(12_000));
        for error in [lake.error(&sql).await, lake.error(&format!("explain {sql}")).await] {
            assert!(error.kind() == ErrorKind::Invalid && error.message().contains("steps deep"), "{next}: {error}");
        }
    }
    let queries: String = (0..15).map(|i| format!(", c{} as (select a{} a from c{i})", i + 1, " + 1".repeat(500))).collect();
    let error = lake.error(&format!("with c0 as (select 1 a){queries} select a from c15")).await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("stand on each other"), "{error}");
    assert_eq!(lake.rows(&format!("select 1 in (0{}) a", ", 1".repeat(12_000))).await, "true");
    let columns: String = (0..800).map(|i| format!(", a + {i}")).collect();
    let grouped = format!("select count(*) n from (values (1), (1)) t(a) where a = 1 group by a{columns} order by a{columns}");
    assert_eq!(lake.rows(&grouped).await, "2");
}

#[tokio::test]
async fn a_table_that_nobody_waits_for_is_made_no_further() {
    let computing = Computing::start("query").unwrap();
    let lake = Lake::with(EngineSettings { computing: Some(computing.clone()), ..settings() });
    let side = "(select value from generate_series(1, 4000000))";
    // There are thirty billion pairs of one batch, and none of them meets.
    let sql = format!("create table t as select a.value from {side} a join {side} b on a.value + b.value < 0");
    assert!(
        timeout(Duration::from_secs(1), lake.engine.execute(&sql)).await.is_err(),
        "all pairs were looked at within a second"
    );
    let (threads, _) = computing.threads().unwrap();
    let ended = async {
        while threads.metrics().num_alive_tasks() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(10), ended).await.is_ok(), "it goes on though nobody waits for it");
}

#[tokio::test]
async fn a_table_is_made_once_unless_it_is_to_be_another() {
    let lake = apart();
    lake.rows("create table t as select value as a from generate_series(1, 3)").await;
    lake.rows("create table if not exists t as select a / 0 as a from t").await;
    assert_eq!(lake.rows("select sum(a), count(*) from t").await, "6 3");
    assert!(lake.error("create table t as select a / 0 as a from t").await.message().contains("already exists"));
    lake.rows("create or replace table t as select sum(a) as b from t").await;
    assert_eq!(lake.rows("select b from t").await, "6");
    lake.rows("create table u (n int, s varchar)").await;
    assert_eq!(lake.rows("select count(n) from u").await, "0");
    assert_eq!(lake.error("create table v as select b / 0 as b from t").await.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_table_has_the_rows_of_its_statement() {
    let lake = apart();
    // A semi join by all columns, nulls and all, as `intersect all` is when it is written.
    let same = "select 1 from (values (1)) u(y) where u.y is not distinct from t.x";
    lake.rows(&format!("create table same as select x from (values (1), (1), (2)) t(x) where exists ({same})")).await;
    assert_eq!(lake.rows("select count(*), sum(x) from same").await, "2 2");
}
