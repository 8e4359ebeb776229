//! Rules of planning that gave wrong rows: joins by `=`, which no null is equal in, beside joins by `is not distinct from`, which nulls
//! are equal in; and aggregates without groups, which give a row also over nothing. And the order of joins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::ipc::writer::FileWriter;

use crate::support::{Lake, parquet};

#[tokio::test(flavor = "multi_thread")]
async fn keys_by_which_nulls_are_equal_do_not_meet_others() {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, null), (null, 1), (1, 1), (null, null)) as t(a, b)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    // Of each query the number of rows, as it was counted by hand.
    for (from, rows) in [
        (format!("{t} x join {t} y on x.a is not distinct from y.a"), "8"),
        (format!("{t} x join {t} y on x.a is not distinct from y.a where x.b = y.b"), "2"),
        (format!("{t} x join {t} y on (x.a is not distinct from y.a) and x.b = y.b"), "2"),
        (format!("{t} x join {t} y on (x.a is not distinct from y.a) and (x.b is not distinct from y.b)"), "4"),
        (format!("{t} x join {t} y on x.b = y.b join {t} z on z.a is not distinct from y.a"), "8"),
        (format!("{t} x join {t} y on x.a is not distinct from y.a join {t} z on z.b = y.b"), "8"),
        (format!("{t} x, {t} y, {t} z where (x.a is not distinct from y.a) and y.b = z.b and z.a = x.a"), "2"),
        (format!("{t} x right join {t} y on x.a is not distinct from y.a where x.b = y.b"), "2"),
        (format!("{t} x left join {t} y on (x.a is not distinct from y.a) and x.b = y.b"), "4"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from {from}")).await, rows, "{from}");
    }
    // A join by nulls alone is still one by hash, and others find their keys beside it.
    let plan = lake
        .rows(&format!("explain select x.a from {t} x, {t} y, {t} z where (x.a is not distinct from y.a) and y.b = z.b"))
        .await;
    assert!(plan.contains("NullsEqual: true") && !plan.contains("CrossJoin") && !plan.contains("NestedLoop"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn constants_below_grouping_sets_are_none_above() {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, 7), (2, 7), (3, 7)) as t(a, b)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    let ab = "select coalesce(b, -1), coalesce(a, -1)";
    for (query, rows) in [
        (
            format!("select coalesce(n, -1) from (select count(*) as n from {t}) group by cube (n) order by n desc nulls first"),
            "-1\n3",
        ),
        (
            format!("{ab} from {t} where b = 7 group by rollup (b, a) order by b nulls first, a nulls first"),
            "-1 -1\n7 -1\n7 1\n7 2\n7 3",
        ),
        (
            format!("{ab} from {t} where b = 7 group by rollup (b, a) order by b nulls last, a nulls last"),
            "7 1\n7 2\n7 3\n7 -1\n-1 -1",
        ),
        (
            format!(
                "{ab} from (select x.a, y.a as b from {t} x join {t} y on x.a = y.a) group by grouping sets ((a), (b)) \
                 order by a nulls first, b desc nulls first"
            ),
            "3 -1\n2 -1\n1 -1\n-1 1\n-1 2\n-1 3",
        ),
        (format!("select count(*) from (select b, a from {t} where b = 7 group by cube (b, a))"), "8"),
    ] {
        assert_eq!(lake.rows(&query).await, rows, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subquery_about_a_union_of_two_types_compares_one() {
    let lake = Lake::new();
    lake.rows("copy (select cast(value as int) as k from generate_series(1, 50) as t(value)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    // What comes after the `union all` is a bigint, what comes before is not.
    let sides = format!("(select k as x from {t} union all select cast(-3 as bigint) from {t})");
    for (condition, rows) in [
        (format!("u.x = (select count(*) from {t} i where i.k = u.x)"), "1"),
        (format!("exists (select 1 from {t} i where i.k = u.x and i.k > 10)"), "40"),
        (format!("not exists (select 1 from {t} i where i.k = u.x)"), "50"),
        (format!("u.x < (select max(i.k) + 1 from {t} i where i.k = u.x)"), "50"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from {sides} u where {condition}")).await, rows, "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_is_never_true_takes_the_row_of_an_aggregate_away() {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, 'x'), (2, 'y')) as t(a, b)) to '/lake/t.parquet'").await;
    let t = "'/lake/t.parquet'";
    // Of each query the number of rows, as it was counted by hand.
    for (from, rows) in [
        (format!("(select min(a) as m, 1 as k from {t}) where k > 5"), "0"),
        (format!("(select min(a) as m, 1 as k from {t}) where k < 5"), "1"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), 2 from {t}) where k <= 1"), "2"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), 2 from {t}) where k not in (1)"), "1"),
        (format!("(select a as m, 1 as k from {t} union all select min(a), null from {t}) where k <= 1"), "2"),
        (format!("(select min(a) as m, 1 as k from {t}) where m = 1 and k = 1"), "1"),
        (format!("(select b, min(a) as m, 1 as k from {t} group by b) where k > 5"), "0"),
        (format!("(select b, min(a) as m from {t} group by b) where b = 'x'"), "1"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from {from}")).await, rows, "{from}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_least_of_one_column_leaves_out_no_row_with_the_greatest_of_another() {
    let lake = Lake::new();
    for file in 0..8 {
        // The first files have no value of `a`, and the greatest ones of `b`.
        let a = if file < 6 { "cast(null as bigint)".to_string() } else { format!("cast({file} as bigint)") };
        let rows = format!("select {a} as a, {} as b from generate_series(1, 5) as t(value)", 200 - file);
        lake.rows(&format!("copy ({rows}) to '/lake/t/{file}.parquet'")).await;
    }
    assert_eq!(lake.rows("select min(a), max(b) from '/lake/t/'").await, "6 200");
    assert_eq!(lake.rows("select max(b), max(-b) from '/lake/t/'").await, "200 -193");
    // Which is a setting, and stays what it is when others go back to what they were.
    let setting = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown";
    for sets in [format!("reset {setting}"), "set datafusion.optimizer.enable_dynamic_filter_pushdown = true".to_string()] {
        lake.rows(&sets).await;
        let shown = lake.rows(&format!("show {setting}")).await;
        assert!(shown.ends_with(" false"), "{sets}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_number_and_infinity_are_counted_among_the_least_and_the_greatest_of_a_group() {
    let lake = Lake::new();
    let floats = "(1, '1'), (1, 'NaN'), (1, '2'), (2, 'NaN'), (3, 'inf'), (4, '-inf'), (5, null), (6, '-0.5'), (6, '0.25')";
    for kind in ["double", "float"] {
        let of = format!("(select g, cast(x as {kind}) as x from (values {floats}) as t(g, x))");
        let rows =
            lake.rows(&format!("select g, coalesce(min(x), 9), coalesce(max(x), 9) from {of} group by g order by g")).await;
        assert_eq!(rows, "1 1.0 NaN\n2 NaN NaN\n3 inf inf\n4 -inf -inf\n5 9.0 9.0\n6 -0.5 0.25", "{kind}");
        assert_eq!(lake.rows(&format!("select min(x), max(x) from {of}")).await, "-inf NaN", "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_ends_with_what_is_no_number_is_not_followed_by_numbers() {
    let lake = Lake::new();
    for (file, values) in [("a", "('1'), ('5'), ('NaN')"), ("b", "('6'), ('7')")] {
        let rows = format!("select cast(x as double) as x from (values {values}) as t(x) order by x");
        lake.rows(&format!("copy ({rows}) to '/lake/o/{file}.parquet'")).await;
    }
    // One behind the other, if that is their order.
    lake.rows("set datafusion.execution.target_partitions = 1").await;
    lake.rows("create external table o (x double) stored as parquet with order (x) location '/lake/o/'").await;
    for _ in 0..2 {
        assert_eq!(lake.rows("select x from o order by x").await, "1.0\n5.0\n6.0\n7.0\nNaN");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_looks_past_nulls_ahead_finds_all_that_is_none() {
    let lake = Lake::new();
    let t = "(values (1, 1), (2, null), (3, 3), (4, null), (5, 5), (6, 6), (7, null), (8, 8), (9, 9)) as t(i, x)";
    let of = |window: &str| {
        format!("select string_agg(w, ' ' order by i) from (select i, cast(coalesce({window}, -1) as varchar) as w from {t})")
    };
    for (window, rows) in [
        ("lead(x, 2) ignore nulls over (order by i)", "5 5 6 6 8 9 9 -1 -1"),
        ("lead(x) ignore nulls over (order by i)", "3 3 5 5 6 8 8 9 -1"),
        ("lag(x, 2) ignore nulls over (order by i)", "-1 -1 -1 1 1 3 5 5 6"),
        ("lag(x, 2) ignore nulls over (order by i desc)", "5 5 6 6 8 9 9 -1 -1"),
        ("lead(x, 2) over (order by i)", "3 -1 5 6 -1 8 9 -1 -1"),
    ] {
        assert_eq!(lake.rows(&of(window)).await, rows, "{window}");
    }
    // One that is turned round for the sake of the other's order, and no more rows than a limit asks for.
    lake.rows(&format!("copy (select * from {t} order by i) to '/lake/t.parquet'")).await;
    let both = "lag(x, 2) ignore nulls over (order by i desc) as a, lag(x, 2) ignore nulls over (order by i) as b";
    let rows = lake
        .rows(&format!("select i, a, coalesce(b, -1) from (select i, {both} from '/lake/t.parquet') order by i limit 3"))
        .await;
    assert_eq!(rows, "1 5 -1\n2 5 -1\n3 6 -1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_structs_in_lists_always_have_in_some_files_is_null_where_the_struct_is() {
    let lake = Lake::new();
    let file = |always: bool| {
        let a = Field::new("a", DataType::Int64, !always);
        let there = Some(NullBuffer::from(vec![true, false, true]));
        let s = StructArray::try_new(vec![a].into(), vec![Arc::new(Int64Array::from(vec![1, 2, 4])) as ArrayRef], there).unwrap();
        let item = Arc::new(Field::new("item", s.data_type().clone(), true));
        let l = ListArray::try_new(item, OffsetBuffer::from_lengths([1, 1, 1]), Arc::new(s), None).unwrap();
        parquet(&[RecordBatch::try_from_iter_with_nullable([("l", Arc::new(l) as ArrayRef, true)]).unwrap()], 100)
    };
    lake.put("l/a.parquet", file(true)).await;
    lake.put("l/b.parquet", file(false)).await;
    lake.rows("create external table nested (l struct<a bigint>[]) stored as parquet location '/lake/l/'").await;
    for from in ["'/lake/l/'", "nested"] {
        assert_eq!(
            lake.rows(&format!("select count(*), count(l[1]['a']), sum(l[1]['a']) from {from}")).await,
            "6 4 10",
            "{from}"
        );
        assert_eq!(lake.rows(&format!("select count(u['a']) from (select unnest(l) as u from {from})")).await, "4", "{from}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_of_fields_of_arrow_files_but_what_these_say() {
    let lake = Lake::new();
    for (name, always) in [("a", true), ("b", false)] {
        let a = Field::new("a", DataType::Int64, !always);
        let s = StructArray::try_new(vec![a].into(), vec![Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef], None).unwrap();
        let rows = RecordBatch::try_from_iter_with_nullable([("s", Arc::new(s) as ArrayRef, true)]).unwrap();
        let mut file = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
        file.write(&rows).unwrap();
        lake.put(&format!("r/{name}.arrow"), file.into_inner().unwrap()).await;
    }
    let columns = lake.rows("describe '/lake/r/'").await;
    assert!(columns.starts_with("s Struct") && !columns.contains("required"), "{columns}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_structs_that_the_engine_gives_one_name_are_asked_for_all_the_same() {
    let lake = Lake::new();
    let s = "case when value % 2 = 0 then named_struct('s', named_struct('a', value)) end as s";
    lake.rows(&format!(
        "copy (select value as id, value % 3 as k, {s} from generate_series(1, 6) as t(value)) to '/lake/t.parquet'"
    ))
    .await;
    let t = "'/lake/t.parquet'";
    let fewer = format!("t.k >= (select count(*) from {t} u where u.id = t.id)");
    let query = format!("select count(distinct (t.s['s'] is null)) from {t} t where {fewer}");
    assert_eq!(lake.rows(&query).await, "2");
    // So are the bytes that it would read, and its plan.
    lake.engine.reads(&query).await.unwrap();
    let plan = lake.rows(&format!("explain {query}")).await;
    assert!(plan.contains("physical_plan") && !plan.contains("push_down_leaf_projections"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_computes_for_ever_leaves_room_for_others() {
    let lake = Lake::new();
    // Each gives rows all the time. A join that finds none goes through what it reads at once without a pause (DataFusion's loop, not a
    // plan's): it ends when nobody waits, who has to be on another thread for that.
    let (many, more) = ("generate_series(1, 100000000) a", "generate_series(1, 100000) b");
    for query in [
        format!("select count(*) from {many}, {more} where a.value % 7 = b.value % 11"),
        format!("select count(*) from {many}, {more} where a.value + b.value > 7"),
        format!("select count(a.value + b.value) from {many}, {more}"),
        format!("select count(u) from (select unnest(range(0, a.value % 1000)) as u from {many})"),
        format!("select sum(v) from (select sum(a.value) over (order by a.value % 3 rows 3 preceding) as v from {many})"),
    ] {
        let started = Instant::now();
        // What ends it needs a thread that is free for a moment.
        let ended = tokio::time::timeout(Duration::from_secs(1), lake.rows(&query)).await;
        assert!(ended.is_err(), "{query}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}: {query}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_rows_are_joined_before_many_wherever_they_are_named() {
    let lake = Lake::new();
    for (table, select) in [
        ("f", "select value as id, value % 10 as k, value % 1000 as d from generate_series(1, 6000) as t(value)"),
        ("g", "select value % 10 as k, value as v from generate_series(1, 6000) as t(value)"),
        ("d", "select value as id, value as y from generate_series(0, 999) as t(value)"),
    ] {
        lake.rows(&format!("copy ({select}) to '/lake/{table}.parquet'")).await;
    }
    // The second is joined by ten keys only, and of the third one row is left.
    let sql = "select count(*), sum(f.id), sum(g.v) from '/lake/f.parquet' f join '/lake/g.parquet' g on f.k = g.k \
               join '/lake/d.parquet' d on f.d = d.id where d.y = 7 and g.v > f.id";
    let last = async || {
        let plan = lake.rows(&format!("explain {sql}")).await;
        plan.lines().find(|line| line.contains("HashJoinExec")).unwrap_or_default().to_string()
    };
    let reordered = last().await;
    assert!(reordered.contains("k@"), "{reordered}");
    let rows = lake.rows(sql).await;
    lake.rows("set datafusion.optimizer.join_reordering = false").await;
    let as_named = last().await;
    assert!(as_named.contains("HashJoinExec") && !as_named.contains("k@"), "{as_named}");
    assert_eq!(lake.rows(sql).await, rows);
}

#[tokio::test(flavor = "multi_thread")]
async fn except_all_and_intersect_all_count_rows_that_are_alike() {
    let lake = Lake::new();
    let left = "(1, 'a'), (1, 'a'), (1, 'a'), (2, null), (2, null), (3, 'c')";
    lake.rows(&format!("copy (select * from (values {left}) as t(x, s)) to '/lake/l.parquet'")).await;
    let right = "(1, 'a'), (2, null), (2, null), (2, null), (4, 'd')";
    lake.rows(&format!("copy (select cast(x as int) as y, s from (values {right}) as t(x, s)) to '/lake/r.parquet'")).await;
    for (word, rows) in
        [("except all", "1 a\n1 a\n3 c"), ("intersect all", "1 a\n2 -\n2 -"), ("except", "3 c"), ("intersect", "1 a\n2 -")]
    {
        let both = format!("(select x, s from '/lake/l.parquet' {word} select y, s from '/lake/r.parquet')");
        assert_eq!(lake.rows(&format!("select x, coalesce(s, '-') from {both} order by x")).await, rows, "{word}");
    }
    // To joins -0.0 is 0.0.
    let zeros = "select cast('0' as double) as z union all select cast('-0.0' as double)";
    assert_eq!(lake.rows(&format!("select count(*) from (({zeros}) except all select cast('0' as double))")).await, "1");
    // Two whole numbers that are one number with a point.
    let whole = "select cast(x as bigint) as x from (values (9007199254740992), (9007199254740993), (9007199254740993)) as t(x)";
    let point = "select cast(9007199254740992 as double)";
    for (both, rows) in [
        (format!("{whole} except all {point}"), "2"),
        (format!("{whole} intersect all {point}"), "1"),
        (format!("{point} intersect all ({whole})"), "1"),
        (format!("({point} union all {point}) except all ({whole})"), "0"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from ({both})")).await, rows, "{both}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_case_and_nullif_leave_out_is_null_within_as_well() {
    let lake = Lake::new();
    let columns = "k, named_struct('a', k) as s, make_array(k) as l, map(make_array('a'), make_array(k)) as m";
    lake.rows(&format!("copy (select {columns} from (values (1), (2), (4)) as t(k)) to '/lake/n.parquet'")).await;
    let n = "'/lake/n.parquet'";
    for (value, sum) in [
        ("(case when k = 1 then s end)['a']", "1"),
        ("(case when k = 1 then s else null end)['a']", "1"),
        ("(case when k = 1 then s when k = 2 then s end)['a']", "3"),
        ("(case k when 1 then s end)['a']", "1"),
        ("(case when k = 1 then m end)['a']", "1"),
        ("array_length(array_append(case when k = 1 then l end, 9))", "4"),
        ("(nullif(s, named_struct('a', 1)))['a']", "6"),
        ("(nvl2(nullif(s, named_struct('a', 2)), s, null))['a']", "5"),
        ("nullif(l, make_array(1))[1]", "6"),
    ] {
        assert_eq!(lake.rows(&format!("select sum({value}) from {n}")).await, sum, "{value}");
    }
    // Below other queries too, as a key of groups, and by the name that it has.
    let below = format!("(select k, case when k > 1 then s end as s from {n})");
    assert_eq!(lake.rows(&format!("select count(s['a']), sum(s['a']) from {below}")).await, "2 6");
    let groups = format!("select coalesce(s['a'], 0) as a, count(*) from {below} group by s['a'] order by a");
    assert_eq!(lake.rows(&groups).await, "0 1\n2 1\n4 1");
    // What is drawn is one value, not one that is compared and another that is given.
    let drawn = "nullif(make_array(cast(random() * 2 as bigint)), make_array(0))";
    let zeros = format!("select count(*) from (select {drawn} as l from range(0, 1000)) where l = make_array(0)");
    assert_eq!(lake.rows(&zeros).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_struct_that_is_null_is_null_within_behind_a_cast_to_a_more_common_type() {
    let lake = Lake::new();
    let file = |always: bool, there: [bool; 3]| {
        let values = Arc::new(Int64Array::from(vec![1, 2, 4])) as ArrayRef;
        let a = Field::new("a", DataType::Int64, !always);
        let s = StructArray::try_new(vec![a].into(), vec![Arc::clone(&values)], Some(NullBuffer::from(there.to_vec()))).unwrap();
        let s = Arc::new(s) as ArrayRef;
        let within = Field::new("s", s.data_type().clone(), true);
        let t = Arc::new(StructArray::try_new(vec![within].into(), vec![Arc::clone(&s)], None).unwrap()) as ArrayRef;
        let rows = RecordBatch::try_from_iter_with_nullable([("k", values, true), ("s", s, true), ("t", t, true)]).unwrap();
        parquet(&[rows], 100)
    };
    lake.put("always.parquet", file(true, [true, false, true])).await;
    lake.put("maybe.parquet", file(false, [false, true, true])).await;
    let (always, maybe) = ("'/lake/always.parquet'", "'/lake/maybe.parquet'");
    let sums = |from: &str| format!("select count(s['a']), sum(s['a']) from ({from})");
    for of in ["s", "t['s']"] {
        let union = format!("select {of} as s from {always} union all select {of} as s from {maybe}");
        assert_eq!(lake.rows(&sums(&union)).await, "4 11", "{of}");
        let case = format!("case when a.k < 3 then a.{of} else b.{of} end as s from {always} a join {maybe} b on a.k = b.k");
        assert_eq!(lake.rows(&sums(&format!("select {case}"))).await, "2 5", "{of}");
    }
    lake.put("both/a.parquet", file(true, [true, false, true])).await;
    lake.put("both/b.parquet", file(false, [false, true, true])).await;
    let nine = "named_struct('a', 9)";
    assert_eq!(lake.rows(&sums(&format!("select coalesce(s, {nine}) as s from '/lake/both/'"))).await, "6 29");
    let some = format!("select case when k < 3 then s else {nine} end as s from '/lake/both/'");
    assert_eq!(lake.rows(&sums(&some)).await, "4 21");
    // Table files of both say other things of their fields as well.
    for (from, name) in [(always, "a"), (maybe, "b")] {
        lake.rows(&format!("copy (select * from {from}) to '/lake/tables/{name}.albis'")).await;
    }
    for of in ["s", "t['s']"] {
        assert_eq!(lake.rows(&sums(&format!("select {of} as s from '/lake/tables/'"))).await, "4 11", "{of}");
    }
    let deep = format!("select t['s'] as s from (select t from {always} union all select t from {maybe})");
    assert_eq!(lake.rows(&sums(&deep)).await, "4 11");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_structs_that_are_made_above_an_outer_join_have_their_values_where_it_adds_nulls() {
    let lake = Lake::new();
    lake.rows("copy (select value as id, value as k from generate_series(1, 4) as t(value)) to '/lake/t.parquet'").await;
    let join = "from '/lake/t.parquet' t right join '/lake/t.parquet' u on t.id = u.id + 2";
    let (x, y) = ("named_struct('b', 'x', 'k', t.k)", "named_struct('b', 'y', 'k', t.k)");
    for (made, rows) in [
        (x.to_string(), "4 0 2"),
        (format!("case when t.k > 3 then {x} else {y} end"), "1 3 2"),
        (format!("coalesce(case when t.k > 3 then {x} end, {y})"), "1 3 2"),
    ] {
        let counts = "count(*) filter (where s['b'] = 'x'), count(*) filter (where s['b'] = 'y'), count(s['k'])";
        assert_eq!(lake.rows(&format!("select {counts} from (select {made} as s {join})")).await, rows, "{made}");
    }
}
