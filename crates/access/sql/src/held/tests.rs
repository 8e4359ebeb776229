//! Windows over more rows than there is memory for, and over as many that they don't hold.

use datafusion::arrow::array::DictionaryArray;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::*;
use crate::functions::{CallMemory, mend};

/// The bytes that are still counted behind a query of so much memory, and its rows.
async fn ran(sql: &str, node: &str, memory_bytes: usize) -> (usize, Result<usize>) {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory_bytes))).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), Arc::clone(&runtime));
    let mut state = context.state();
    mend(&mut state, &CallMemory::beside(memory_bytes as u64)).unwrap();
    let context = SessionContext::new_with_state(state);
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    assert!(plan.exists(|found| Ok(found.name() == node)).unwrap(), "{sql} is done by {node}");
    let rows = collect(counted(plan).unwrap(), context.task_ctx()).await;
    let rows = rows.map(|batches| batches.iter().map(RecordBatch::num_rows).sum());
    (runtime.memory_pool.reserved(), rows)
}

#[tokio::test]
async fn a_window_holds_as_many_rows_as_there_is_memory_for() {
    let sql = "select value, max(value) over () as m from range(0, 1000000)";
    // A million rows of 8 bytes, twice, and what is said of each.
    let (left, rows) = ran(sql, "WindowAggExec", 24 << 20).await;
    assert!(matches!(rows.unwrap_err().find_root(), DataFusionError::ResourcesExhausted(_)));
    assert_eq!(left, 0);
    let (left, rows) = ran(sql, "WindowAggExec", 40 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 1_000_000));
}

#[tokio::test]
async fn rows_that_a_window_has_given_are_held_no_longer() {
    for call in ["row_number() over ()", "sum(value) over (rows between unbounded preceding and current row)"] {
        let sql = format!("select value, {call} as n from range(0, 1000000)");
        let (left, rows) = ran(&sql, "BoundedWindowAggExec", 2 << 20).await;
        assert_eq!((left, rows.unwrap()), (0, 1_000_000), "{call}");
    }
}

#[tokio::test]
async fn rows_that_later_ones_look_back_at_are_held() {
    // 400,000 rows of 8 bytes are kept, beside those of a batch.
    for call in [
        "sum(value) over (rows between 400000 preceding and current row)",
        "sum(value) over (rows between unbounded preceding and 400000 preceding)",
        "first_value(value) over (rows between 400000 preceding and current row)",
        "lag(value, 400000) over ()",
    ] {
        let sql = format!("select count(n), count(*) from (select {call} as n from range(0, 600000))");
        let (left, rows) = ran(&sql, "BoundedWindowAggExec", 2 << 20).await;
        assert!(matches!(rows.unwrap_err().find_root(), DataFusionError::ResourcesExhausted(_)), "{call}");
        assert_eq!(left, 0, "{call}");
        let (left, rows) = ran(&sql, "BoundedWindowAggExec", 8 << 20).await;
        assert_eq!((left, rows.unwrap()), (0, 1), "{call}");
    }
}

#[tokio::test]
async fn windows_that_look_back_answer_as_before_and_hold_few_rows() {
    let call = "sum(value) over (rows between 2 preceding and current row) as s, row_number() over () as n, \
                lag(value, 3) over () as l, sum(value) over (rows between 1 preceding and 1 following) as m";
    let right = "coalesce(l, -1) = case when value < 3 then -1 else value - 3 end and n = value + 1 \
                 and s = case value when 0 then 0 when 1 then 1 else 3 * value - 3 end \
                 and m = case value when 0 then 1 when 299999 then 599997 else 3 * value end";
    let sql = format!("select value from (select value, {call} from range(0, 300000)) where {right}");
    let (left, rows) = ran(&sql, "BoundedWindowAggExec", 4 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 300_000));
}

#[tokio::test]
async fn windows_above_each_other_are_each_counted() {
    let below = "select value, max(value) over () as m from range(0, 500000)";
    let sql = format!(
        "select m, min(m) over (order by value desc rows between unbounded preceding and unbounded following) from ({below})"
    );
    let (left, rows) = ran(&sql, "WindowAggExec", 1 << 30).await;
    assert_eq!((left, rows.unwrap()), (0, 500_000));
}

#[tokio::test]
async fn a_window_computes_when_the_sort_below_it_holds_nothing_any_more() {
    let over = "partition by value % 7 order by value rows between unbounded preceding and unbounded following";
    let sql = format!("select value, max(value) over ({over}) as m from range(0, 500000)");
    // A sort by two columns holds 17 MB until it has given its last rows, a window 16 MB when it has all of them.
    let (left, rows) = ran(&sql, "WindowAggExec", 30 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 500_000));
}

#[tokio::test]
async fn texts_and_lists_that_a_window_gives_each_row_are_counted() {
    // One long text, which the window gives all of the rows.
    let texts = "(select value, case when value = 0 then repeat('z', 10000) else 'y' end as s from range(0, 5000))";
    let from_first = "order by value rows between unbounded preceding and current row";
    for (select, node) in [
        (format!("max(s) over () from {texts}"), "WindowAggExec"),
        (format!("max(s) over ({from_first}) from {texts}"), "BoundedWindowAggExec"),
        (format!("first_value(s) over ({from_first}) from {texts}"), "BoundedWindowAggExec"),
        (format!("first_value(s) over (rows between unbounded preceding and unbounded following) from {texts}"), "WindowAggExec"),
        ("array_agg(value) over () from range(0, 2500)".to_string(), "WindowAggExec"),
        // A filter leaves one row, and all of the partition's have its value.
        (format!("max(s) filter (where value = 0) over () from {texts}"), "WindowAggExec"),
        (format!("max(s) filter (where value = 0) over (partition by value < 4000) from {texts}"), "WindowAggExec"),
    ] {
        let sql = format!("select count(x) from (select {select}) as t(x)");
        let (left, rows) = ran(&sql, node, 24 << 20).await;
        assert!(matches!(rows.unwrap_err().find_root(), DataFusionError::ResourcesExhausted(_)), "{sql}");
        assert_eq!(left, 0, "{sql}");
        let (left, rows) = ran(&sql, node, 160 << 20).await;
        assert_eq!((left, rows.unwrap()), (0, 1), "{sql}");
    }
    // Of a partition of its own, few rows have it.
    let sql =
        format!("select count(x) from (select max(s) filter (where value = 0) over (partition by value) from {texts}) as t(x)");
    let (left, rows) = ran(&sql, "WindowAggExec", 24 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 1));
    // Views of all rows are of one text.
    let sql = format!("select count(x) from (select max(arrow_cast(s, 'Utf8View')) over () from {texts}) as t(x)");
    let (left, rows) = ran(&sql, "WindowAggExec", 24 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 1));
}

#[tokio::test]
async fn what_is_computed_below_a_window_is_none_of_its_values() {
    // Fifty lists of 16 KB, of which the window has the lengths.
    let lists = "select value % 50 as k, array_agg(value order by value) as l from range(0, 100000) group by value % 50";
    let sql = format!("select max(array_length(l)) over () as m from ({lists})");
    let (left, rows) = ran(&sql, "WindowAggExec", 256 << 20).await;
    assert_eq!((left, rows.unwrap()), (0, 50));
}

#[test]
fn a_dictionary_is_counted_once() {
    let long = "x".repeat(100_000);
    let words = (0..8192).map(|row| if row == 0 { long.as_str() } else { "y" });
    let column: ArrayRef = Arc::new(words.collect::<DictionaryArray<Int32Type>>());
    let bytes = bytes_of_column(&column);
    assert!((132_000..160_000).contains(&bytes), "{bytes} bytes");
}
