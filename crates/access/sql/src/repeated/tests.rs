//! Joins and `unnest` of wide rows and long lists, beside the same as the engine has them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::*;

/// A statement that is ready to run in batches of so many rows.
async fn planned(sql: &str, batch_rows: usize) -> (Plan, SessionContext) {
    let config = SessionConfig::new().with_batch_size(batch_rows).with_target_partitions(1);
    let context = SessionContext::new_with_config(config);
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    (plan, context)
}

/// Its rows, of which joins and `unnest` repeat 256 MiB in a batch at most.
async fn rows(sql: &str, batch_rows: usize, waited: Option<&Waited>) -> Result<Vec<RecordBatch>> {
    let (plan, context) = planned(sql, batch_rows).await;
    collect(bounded(plan, &CallMemory::beside(0), waited)?, context.task_ctx()).await
}

fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

#[tokio::test]
async fn a_wide_row_is_repeated_in_as_many_rows_as_there_is_memory_for() {
    let wide = "(select repeat(s, 100000) as s, b from (values ('x', 1)) t(s, b)) w";
    let cases = [
        (format!("select s, unnest(range(0, 100)) as a from {wide}"), "UnnestExec", 100),
        (format!("select s, value from {wide} cross join range(0, 100)"), "CrossJoinExec", 100),
        (format!("select s, value from range(0, 100) cross join {wide}"), "CrossJoinExec", 100),
        (format!("select s, value from {wide} join range(0, 100) on value > b"), "NestedLoopJoinExec", 98),
        (format!("select s, value from range(0, 100) left join {wide} on value > b"), "NestedLoopJoinExec", 100),
        (format!("select s, value from {wide} join range(0, 100) on value % 2 = b"), "HashJoinExec", 50),
        (format!("select s, value from range(0, 100) full join {wide} on value % 2 = b"), "HashJoinExec", 100),
    ];
    for (sql, node, made) in cases {
        let (plan, _) = planned(&sql, 8192).await;
        assert!(plan.exists(|found| Ok(found.name() == node)).unwrap(), "{sql} is done by {node}");
        let error = rows(&sql, 8192, None).await.unwrap_err().to_string();
        assert!(error.contains("256 MiB") && error.contains("batch_size = 268"), "{sql}: {error}");
        assert_eq!(count(&rows(&sql, 100, None).await.unwrap()), made, "{sql}");
    }
}

#[tokio::test]
async fn a_wide_row_that_comes_once_is_as_wide_as_it_is() {
    let wide = "(select repeat(s, 100000) as s, b from (values ('x', 1)) t(s, b)) w";
    for kind in ["semi", "anti"] {
        let sql = format!("select s from {wide} left {kind} join range(0, 100) on value % 200 = b");
        let made = if kind == "semi" { 1 } else { 0 };
        assert_eq!(count(&rows(&sql, 8192, None).await.unwrap()), made, "{sql}");
    }
    // A value that is wider than all that there may be stands in one row.
    let bound = |rows| bound::Bound { rows, bytes: 10 };
    assert!(bound(1).check(11).is_ok() && bound(2).check(11).is_err());
    assert!(bound(1).check_made(11, 1).is_ok() && bound(1).check_made(11, 2).is_err());
}

#[test]
fn an_error_of_too_wide_a_row_says_how_many_fit() {
    let bound = |rows| bound::Bound { rows, bytes: 8000 };
    let told = bound(8192).check(100).unwrap_err();
    assert_eq!(fewer_rows(&told.to_string(), 8192), Some(80));
    assert_eq!(fewer_rows(&format!("Job 1 failed: {told:?}"), 8192), Some(80), "an executor's comes within others");
    // One that is only a little too wide: the next may be wider.
    assert_eq!(fewer_rows(&bound(8192).check(1).unwrap_err().to_string(), 8192), Some(1024));
    let (mut rows, mut attempts) = (1 << 20, 0);
    while let Some(fewer) = fewer_rows(&told.to_string(), rows) {
        assert!((1..rows).contains(&fewer));
        (rows, attempts) = (fewer, attempts + 1);
    }
    assert!(rows == 1 && attempts <= 7, "{attempts} attempts");
    let none_fewer = bound(8192).check_made(100, 81).unwrap_err();
    for other in [none_fewer.to_string().as_str(), "SET datafusion.execution.batch_size = 5", "of them at once are more than"] {
        assert_eq!(fewer_rows(other, 8192), None, "{other}");
    }
}

#[tokio::test]
async fn only_rows_of_which_one_may_be_wider_than_another_are_looked_at() {
    let numbers = "range(0, 10) a join (select value, value % 2 = 0 as even, value * 1.5 as x from range(0, 10)) b";
    let texts = "range(0, 10) a join (select value, value::varchar as s from range(0, 10)) b";
    let cases = [
        (format!("select * from {numbers} on a.value = b.value"), 0),
        (format!("select * from {numbers} on a.value > b.value"), 0),
        (format!("select * from {texts} on a.value = b.value"), 1),
        (format!("select * from {texts} on a.value > b.value"), 1),
        ("select a.value::varchar as s from range(0, 10) a left semi join range(0, 5) b on a.value = b.value".to_string(), 0),
    ];
    for (sql, looked) in cases {
        let (plan, _) = planned(&sql, 100).await;
        let mut found = 0;
        let plan = bounded(plan, &CallMemory::beside(0), None).unwrap();
        plan.apply(|node| {
            found += usize::from(node.is::<Watched>());
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        assert_eq!(found, looked, "{sql}");
    }
}

#[tokio::test]
async fn lists_that_are_cut_become_the_rows_that_they_are() {
    let lists = "(values (1, range(0, 20), range(0, 3)), (2, null, range(0, 9)), (3, range(0, 0), null), (4, range(0, 4), range(0, 11)), \
                 (5, range(0, 2), range(0, 1))) t(x, l, m)";
    let cases = [
        format!("select x, unnest(l) as a, unnest(m) as b from {lists}"),
        format!("select x, l, unnest(m) as b from {lists}"),
        format!("select x, unnest(arrow_cast(l, 'LargeList(Int64)')) as a, m from {lists}"),
        format!("select x, unnest(unnest(k)) as a from (select x, [m, range(0, x), range(0, 9)] as k from {lists})"),
        format!("select x, unnest(arrow_cast([x, x, x, x], 'FixedSizeList(4, Int64)')) as a from {lists}"),
    ];
    for sql in cases {
        for batch_rows in [1, 3, 8192] {
            let (plan, context) = planned(&sql, batch_rows).await;
            let schema = plan.schema();
            let whole = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
            let cut = rows(&sql, batch_rows, None).await.unwrap();
            assert!(count(&whole) > 0 && cut.iter().all(|batch| batch.num_rows() <= batch_rows), "{sql}");
            assert_eq!(concat_batches(&schema, &cut).unwrap(), concat_batches(&schema, &whole).unwrap(), "{sql}");
        }
    }
}

#[tokio::test]
async fn lists_within_lists_are_unnested_of_as_many_rows_as_there_is_memory_for() {
    let lists = "array_repeat(range(0, 500), 500) as l from range(0, 8)";
    let sql = format!("select sum(x) as n from (select x, unnest(unnest(l)) as a from (select value as x, {lists}))");
    assert_eq!(count(&rows(&sql, 50, None).await.unwrap()), 1);
    let wide = format!("select repeat('x', 10000 + value) as s, {lists}");
    let sql = format!("select max(s) as n from (select s, unnest(unnest(l)) as a from ({wide}))");
    let error = rows(&sql, 50, None).await.unwrap_err().to_string();
    assert!(error.contains("sql-memory"), "{error}");
}

#[tokio::test]
async fn a_join_ends_when_nobody_waits_for_it_any_more() {
    let waiters = Arc::new(AtomicUsize::new(1));
    let waited = Waited::by(Arc::clone(&waiters));
    let joins = [
        "select a.value from range(0, 10) a join range(0, 10) b on a.value + b.value > 3",
        "select a.value from range(0, 10) a join range(0, 10) b on a.value % 2 = b.value % 2 and a.value + b.value > 3",
    ];
    for sql in joins {
        assert!(count(&rows(sql, 100, Some(&waited)).await.unwrap()) > 0, "{sql}");
    }
    waiters.store(0, Relaxed);
    for sql in joins {
        let error = rows(sql, 100, Some(&waited)).await.unwrap_err().to_string();
        assert!(error.contains("nobody waits"), "{sql}: {error}");
    }
}
