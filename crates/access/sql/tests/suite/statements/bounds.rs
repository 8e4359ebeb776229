//! Functions that make much of little: refused before they do, alone, in constants and in what is built upon itself; wide rows that joins and
//! `unnest` repeat: in smaller batches, or refused; and the same answers below that.

use datafusion::arrow::array::RecordBatch;
use forebay_sql::{EngineMemory, EngineSettings};
use forebay_types::{Error, ErrorKind};

use crate::support::{Lake, settings};

/// With 64 MiB for a call.
fn lake() -> Lake {
    Lake::with(EngineSettings { memory: EngineMemory::of_bytes(Some(64 << 20)), ..settings() })
}

#[tokio::test]
async fn a_function_that_would_make_gigabytes_is_refused() {
    let lake = lake();
    for call in [
        "repeat('a', 2000000000)",
        "lpad('a', 2000000000)",
        "rpad('a', 2000000000, 'bc')",
        "range(0, 10000000000)",
        "generate_series(0, 10000000000)",
        "generate_series(timestamp '2000-01-01', timestamp '2030-01-01', interval '1 second')",
        "array_repeat(1, 2000000000)",
        "array_resize([1], 2000000000)",
        "replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
        "regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000000), 'g')",
        "array_to_string(range(0, 1000000), repeat(',', 1000000))",
        "concat(repeat('a', 50000000), repeat('b', 50000000))",
        "repeat('a', 50000000) || repeat('b', 50000000)",
        "array_concat(range(0, 5000000), range(0, 5000000))",
        "encode(encode(repeat('a', 30000000), 'hex'), 'hex')",
    ] {
        // Where planning makes constants, and where rows are asked for.
        for sql in [
            format!("select {call} as a"),
            format!("select a, b from (select {call} as a, b from (values (1), (2)) t(b)) x where b > 1"),
        ] {
            let error = lake.error(&sql).await;
            let told = error.message();
            assert!(
                error.kind() == ErrorKind::Invalid && told.contains("64.0 MiB") && told.contains("sql-memory"),
                "{sql}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn what_doubles_again_and_again_is_refused() {
    let lake = lake();
    let cases = [
        ("Utf8", "s || s"),
        ("Utf8View", "s || s"),
        ("Binary", "s || s"),
        ("BinaryView", "s || s"),
        ("Utf8", "concat(s, s)"),
        ("Utf8", "overlay(s placing s from 1 for 0)"),
    ];
    for (kind, doubled) in cases {
        let from = |below: String, _| format!("(select {doubled} as s from {below})");
        let first = format!("(select arrow_cast(s, '{kind}') as s from (values (repeat('0123456789', 1000))) t(s))");
        let error = lake.error(&format!("select max(s) from {}", (0..14).fold(first, from))).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("sql-memory"), "{doubled} of {kind}: {error}");
    }
}

#[tokio::test]
async fn many_results_that_are_each_small_enough_are_refused_together() {
    let lake = lake();
    let columns: Vec<_> = (0..20).map(|column| format!("repeat(s, {}) as c{column}", 6_000_000 + column)).collect();
    let sql = |count: usize| format!("select {} from (values ('0123456789')) t(s)", columns[..count].join(", "));
    let error = lake.error(&sql(20)).await;
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("what functions have made"), "{error}");
    // What was refused has left nothing behind.
    let mut few = lake.engine.execute(&sql(2)).await.unwrap();
    assert_eq!(few.collect().await.unwrap()[0].num_rows(), 1);
}

#[tokio::test]
async fn a_constant_in_each_of_many_rows_is_refused() {
    let lake = lake();
    let long = "x".repeat(100_000);
    for sql in [
        format!("select value, '{long}' as a from range(0, 10000)"),
        "select value, repeat('a', 100000) as a from range(0, 10000)".to_string(),
        "create table many as select value, repeat('a', 100000) as a from range(0, 10000)".to_string(),
    ] {
        let error = lake.error(&sql).await;
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("sql-memory"), "{error}");
    }
    // Each is little, and planning makes them.
    let columns: Vec<_> = (0..100).map(|column| format!("repeat('{column}', 500) as c{column}")).collect();
    let error = lake.error(&format!("select value, {} from range(0, 10000)", columns.join(", "))).await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("sql-memory"), "{error}");
    let compared = "select count(x) from (select value::varchar = repeat('a', 60000) as x from range(0, 10000))";
    assert_eq!(lake.rows(compared).await, "10000");
    // A reader of files makes constants of its own of what it is handed.
    lake.rows("copy (select value as v from range(0, 10000)) to '/lake/t.parquet'").await;
    let error = lake.error("select v, repeat('a', 100000) as a from '/lake/t.parquet'").await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("sql-memory"), "{error}");
    let few = "select sum(length(repeat('a', 100000))) as a from (select v from '/lake/t.parquet' limit 10)";
    assert_eq!(lake.rows(few).await, "1000000");
    assert_eq!(lake.rows(&format!("select length('{long}') + length(repeat('a', 1000000)) as a")).await, "1100000");
    assert_eq!(lake.rows(&format!("select count(*) from range(0, 10000) where value::varchar <> '{long}'")).await, "10000");
}

#[tokio::test]
async fn a_large_constant_that_a_partition_is_compared_with_leaves_others_out() {
    let lake = lake();
    let rows = "select value as v, case when value % 4 = 0 then 'a' else 'b' end as p from range(0, 8)";
    lake.rows(&format!("copy ({rows}) to '/lake/p' partitioned by (p)")).await;
    let sql = "select v from '/lake/p/' where p = substr(repeat('ab', 100000), 1, 1) order by v";
    assert_eq!(lake.rows(sql).await, "0\n4");
}

#[tokio::test]
async fn a_lambda_that_would_make_gigabytes_is_refused() {
    let lake = lake();
    lake.rows("set datafusion.sql_parser.dialect = 'duckdb'").await;
    let (long, longer) = ("x".repeat(10_000), "x".repeat(100_000));
    let both = format!("(values ('{long}', 1), ('b', 2)) t(s, b)");
    for call in [
        "array_transform(range(0, 1000000), x -> s)",
        "array_transform(range(0, 1000000), x -> concat(s, x))",
        "array_transform(range(0, 1000), x -> array_transform(range(0, 1000), y -> s))",
        "array_transform(range(0, 1000000), x -> repeat('a', 1000))",
        &format!("array_transform(range(0, 1000000), x -> '{long}')"),
        &format!("array_transform(range(0, 10), x -> case when x = b then '{longer}' else s end)"),
        &format!("array_filter([1, 2], x -> concat('{longer}', s) = s)"),
    ] {
        let error = lake.error(&format!("select {call} as a from {both}")).await;
        let told = error.message();
        let is_told = told.contains("MiB") && told.contains("sql-memory");
        assert!(error.kind() == ErrorKind::Invalid && is_told, "{call:.80}: {error:.300}");
    }
    let error = lake.error(&format!("select b from {both} where array_any_match([b], x -> concat('{longer}', x) = s)")).await;
    assert!(error.message().contains("constants of"), "{error:.300}");
}

#[tokio::test]
async fn a_lambda_gives_the_same_however_many_elements_it_is_called_for_at_once() {
    let lake = lake();
    lake.rows("set datafusion.sql_parser.dialect = 'duckdb'").await;
    let long = "x".repeat(10_000);
    let of = "(values (range(1, 4), 1), (range(0, 0), 2), (null, 3), ([4, null], 4)) t(l, b)";
    for at_once in [8192, 3] {
        lake.rows(&format!("set datafusion.execution.batch_size = {at_once}")).await;
        let rows = async |shown: &str| lake.rows(&format!("select {shown} as a from {of} order by b")).await;
        assert_eq!(rows("array_to_string(array_transform(l, x -> x * 10 + b), ' ', '-')").await, "11 21 31\n\n\n44 -");
        assert_eq!(rows("coalesce(array_length(array_filter(l, x -> x > b)), 0)").await, "2\n0\n0\n0");
        assert_eq!(rows("coalesce(array_first(l, x -> x >= b), 0)").await, "1\n0\n0\n4");
        assert_eq!(rows("coalesce(array_any_match(l, x -> x > b)::varchar, '-')").await, "true\nfalse\n-\n-");
        assert_eq!(rows("array_length(array_transform([b, b], x -> 'y'))").await, "2\n2\n2\n2");
    }
    lake.rows("set datafusion.execution.batch_size = 8192").await;
    let many = "array_transform(range(0, 10000), x -> x * b)";
    let numbers = "(values (1), (2), (3), (4)) t(b)";
    assert_eq!(lake.rows(&format!("select sum(a) as c from (select unnest({many}) as a from {numbers})")).await, "499950000");
    // What stands beside is 200 MB for all elements, and what is given is little.
    let beside = format!("(values ('{long}'), ('b')) t(s)");
    let found = format!("select count(*) as c from {beside} where array_any_match(range(0, 20000), x -> length(s) < x)");
    assert_eq!(lake.rows(&found).await, "2");
    let first = format!("select array_first(range(0, 20000), x -> length(s) < x) as c from {beside} order by c");
    assert_eq!(lake.rows(&first).await, "2\n10001");
}

/// A row with a megabyte of text.
const WIDE: &str = "(select repeat(s, 100000) as s, b from (values ('0123456789', 1)) t(s, b)) w";

fn is_too_wide(error: &Error) -> bool {
    let told = ["256 MiB", "batch_size = 268", "sql-memory"];
    error.kind() == ErrorKind::Invalid && told.iter().all(|told| error.message().contains(told))
}

#[tokio::test]
async fn a_wide_row_is_repeated_in_batches_of_as_many_as_there_is_memory_for() {
    let lake = lake();
    for sql in [
        format!("select s, unnest(range(0, 40)) as value from {WIDE}"),
        format!("select s, value from {WIDE} cross join range(0, 40)"),
        format!("select s, value from {WIDE} left join range(0, 40) on value >= b - 1"),
        format!("select s, value from {WIDE} join range(0, 40) on value % 1 = b - 1"),
    ] {
        let mut query = lake.engine.execute(&sql).await.unwrap();
        let first = query.operation();
        assert_eq!(query.notice(), None, "{sql}");
        let rows: usize = query.collect().await.unwrap().iter().map(RecordBatch::num_rows).sum();
        let is_told = query.notice().is_some_and(|notice| notice.contains("in batches of 268 rows"));
        assert!(rows == 40 && query.operation() != first && is_told, "{sql}: {rows} rows, {:?}", query.notice());
        assert_eq!(lake.rows(&format!("select sum(length(s)) as a from ({sql})")).await, "40000000", "{sql}");
        let analyzed = lake.rows(&format!("explain analyze {sql}")).await;
        assert!(analyzed.contains("Plan with Metrics"), "{analyzed}");
    }
    let kept = lake.rows("show datafusion.execution.batch_size").await;
    assert!(kept.ends_with(" 8192"), "the session's own is another matter: {kept}");
}

#[tokio::test]
async fn a_wide_row_of_which_one_list_makes_too_many_is_refused() {
    let lake = lake();
    let sql = format!("select s, unnest(unnest(l)) as a from (select s, array_repeat(range(0, 499 + b), 500) as l from {WIDE})");
    for batch_rows in [8192, 1] {
        lake.rows(&format!("set datafusion.execution.batch_size = {batch_rows}")).await;
        let error = lake.error(&sql).await;
        let told = error.message();
        let is_told = told.contains("256 MiB") && told.contains("sql-memory") && !told.contains("batch_size");
        assert!(error.kind() == ErrorKind::Invalid && is_told, "fewer in a batch don't help: {error}");
    }
}

#[tokio::test]
async fn a_statement_that_has_given_rows_or_writes_is_not_run_again_for_a_wide_row() {
    let lake = lake();
    lake.rows("set datafusion.execution.target_partitions = 1").await;
    lake.put("late.csv", format!("s\n{}{}\n", "y\n".repeat(20_000), "x".repeat(1_000_000))).await;
    let mut query = lake.engine.execute("select s, unnest(range(0, 2)) as a from '/lake/late.csv'").await.unwrap();
    let first = query.operation();
    assert!(query.next_batch().await.unwrap().unwrap().num_rows() > 0);
    let error = query.collect().await.unwrap_err();
    assert!(is_too_wide(&error) && query.operation() == first, "{error}");

    let written = format!("copy (select s, unnest(range(0, 40)) as value from {WIDE}) to '/lake/out.parquet'");
    for sql in [&written, &format!("explain analyze {written}")] {
        let error = lake.error(sql).await;
        assert!(is_too_wide(&error), "{sql}: {error}");
    }
    assert_eq!(lake.names().await, ["late.csv"]);
    lake.rows("set datafusion.execution.batch_size = 268").await;
    assert_eq!(lake.rows(&written).await, "40");
}

#[tokio::test]
async fn a_window_over_more_rows_than_there_is_memory_for_is_refused() {
    let lake = lake();
    let sql = |rows: u64| format!("select sum(m) as a from (select max(value) over () as m from range(0, {rows}))");
    let error = lake.error(&sql(3_000_000)).await;
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("sql-memory"), "{error}");
    assert_eq!(lake.rows(&sql(1_000_000)).await, "999999000000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_with_a_filter_gives_the_same_by_the_same_name() {
    let lake = Lake::new();
    let t = "(values (1, 'a'), (2, 'b'), (null, 'c')) t(k, s)";
    let below = "max(s) filter (where k < 3) over ()";
    for (select, answer) in [
        (below.to_string(), "b"),
        (format!("{below} || min(s) filter (where k < 3) over ()"), "ba"),
        (format!("{below} = {below}"), "true"),
        ("max(s) filter (where true) over ()".to_string(), "c"),
        ("max(s) filter (where false) over () is null".to_string(), "true"),
        (format!("(select {below} from {t} limit 1)"), "b"),
    ] {
        let rows = [answer; 3].join("\n");
        assert_eq!(lake.rows(&format!("select {select} from {t}")).await, rows, "{select}");
    }
    let by_name = "select x from (select max(s) filter (where k < 3) over (partition by s) as x from";
    assert_eq!(lake.rows(&format!("{by_name} {t}) where x is not null order by x")).await, "a\nb");
}

#[tokio::test]
async fn what_is_not_much_is_answered_as_ever() {
    let lake = lake();
    assert_eq!(lake.rows("select length(repeat('ab', 1000000)) as a").await, "2000000");
    assert_eq!(lake.rows("select count(*) from (select unnest(range(0, 1000000)) as a)").await, "1000000");
    assert_eq!(lake.rows("select array_length(array_repeat(repeat('a', 1000), 1000)) as a").await, "1000");
    assert_eq!(lake.rows("select sum(length(lpad(value::varchar, 20, 'x'))) as a from range(0, 20000)").await, "400000");
    let of = "(values ('a', 'b', 1), ('c', null, 2), ('a', 'b', 3)) t(a, b, c)";
    assert_eq!(lake.rows(&format!("select a || b || c as d from {of} where a || b = 'ab' order by d")).await, "ab1\nab3");
    assert_eq!(lake.rows(&format!("select count(*), count(a || b) from {of}")).await, "3 2");
    assert_eq!(lake.rows(&format!("select a || b, sum(c) from {of} group by a || b having a || b = 'ab'")).await, "ab 4");
    assert_eq!(lake.rows(&format!("select sum(c) as d from {of} group by rollup (a || b) order by d")).await, "2\n4\n6");
    assert_eq!(lake.rows(&format!("select max(a || 'x') over (order by c) as d from {of} order by c")).await, "ax\ncx\ncx");
    assert_eq!(lake.rows(&format!("select c from {of} where array_has([1, 3], c) order by c")).await, "1\n3");
    assert_eq!(lake.rows("select [1, 2] || [3] as a").await, "[1, 2, 3]");
    // Bytes of a letter, joined before they are one; and as many of them as both have.
    let letter = "select arrow_cast(decode('c3', 'hex'), 'Binary') || decode('a4', 'hex') || 'x' as a";
    assert_eq!(lake.rows(letter).await, "\u{e4}x");
    let fixed = "arrow_cast(decode('0102', 'hex'), 'FixedSizeBinary(2)')";
    let kind = format!("select arrow_typeof({fixed} || {fixed}) as a");
    assert!(lake.rows(&kind).await.contains("FixedSizeBinary(4)"));
    // A value is looked for in a list for all rows, as in `x in (..)`.
    let ids = (0..20_000).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    for (list, value) in [("range(0, 20000)".to_string(), "value"), (format!("string_to_array('{ids}', ',')"), "value::varchar")]
    {
        let found = format!("select count(*) from range(0, 100000) where array_has({list}, {value})");
        assert_eq!(lake.rows(&found).await, "20000");
    }
    // The columns have the names that they had.
    let mut named =
        lake.engine.execute(&format!("select a || b || 'x', max(a || 'x') from {of} group by a || b || 'x'")).await.unwrap();
    let rows = named.collect().await.unwrap();
    let names: Vec<_> = rows[0].schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["t.a || t.b || Utf8(\"x\")", "max(t.a || Utf8(\"x\"))"]);
}
