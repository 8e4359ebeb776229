//! Keys of groups and orders, and casts, that the engine takes for needless where they are not.

use crate::support::Lake;

async fn numbers() -> Lake {
    let lake = Lake::new();
    lake.rows("copy (select * from (values (1, 3), (2, 1), (3, 5), (4, null)) as t(id, k)) to '/lake/t.parquet'").await;
    lake
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_constant_on_one_side_of_an_outer_join_is_null_in_other_rows() {
    let (lake, t) = (numbers().await, "'/lake/t.parquet'");
    for (from, first) in [
        (format!("{t} t left join (select k as x from {t} where k = 1) d on t.k = d.x"), "2"),
        (format!("{t} t left join (select min(k) as x from {t}) d on t.k = d.x"), "2"),
        (format!("(select min(k) as x from {t}) d right join {t} t on t.k = d.x"), "2"),
        (format!("{t} t full join (select 5 as x) d on t.k = d.x"), "3"),
        (format!("{t} t left join (select k as x from {t} where k = 1) d on t.k > d.x + 3"), "3"),
    ] {
        let rows = lake.rows(&format!("select t.id from {from} order by d.x desc nulls last, t.id")).await;
        assert_eq!(rows.split('\n').next(), Some(first), "{from}");
        let ranked = format!("select t.id, rank() over (order by d.x desc nulls last, t.id) as r from {from}");
        assert_eq!(lake.rows(&format!("select id from ({ranked}) where r = 1")).await, first, "{from}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_one_side_of_a_join_does_not_stand_for_groups_by_the_others_columns() {
    let (lake, t) = (numbers().await, "'/lake/t.parquet'");
    let groups = format!(
        "select d.x, t.id, count(*) as c from (select k as x from {t} group by k) d left join {t} t on true group by 1, 2"
    );
    for (query, rows) in [
        (format!("select count(*) from (select x, count(*) from ({groups}) group by x, id)"), "16"),
        (format!("select count(*) from (select distinct x from ({groups}))"), "4"),
        (format!("select count(*), min(s), max(s) from (select x, sum(c) as s from ({groups}) group by x)"), "4 4 4"),
        (format!("with g as ({groups}) select count(*), min(s), max(s) from (select x, sum(c) as s from g group by x)"), "4 4 4"),
        (format!("select count(distinct s) from (select sum(c) over (order by x) as s from ({groups}))"), "4"),
        (format!("select count(*) from (select u.id from {t} u left join (select x from ({groups})) v on u.k = v.x)"), "13"),
        (format!("{groups} order by 1 desc nulls last, 2 desc limit 5"), "5 4 1\n5 3 1\n5 2 1\n5 1 1\n3 4 1"),
    ] {
        assert_eq!(lake.rows(&query).await, rows, "{query}");
    }
    // What a table is declared with determines its columns.
    lake.rows("create external table p (id bigint primary key, k bigint) stored as parquet location '/lake/t.parquet'").await;
    assert_eq!(lake.rows("select count(*), sum(k) from (select id, k from p group by id)").await, "4 9");
}

#[tokio::test(flavor = "multi_thread")]
async fn decimals_that_are_cast_to_fewer_digits_are_compared_as_they_are_rounded() {
    let lake = Lake::new();
    let values = "(1, '11.9999999993'), (2, '12'), (3, '-0.00004'), (4, null)";
    lake.rows(&format!(
        "copy (select id, cast(d as decimal(30, 10)) as d from (values {values}) as t(id, d)) to '/lake/d.parquet'"
    ))
    .await;
    let (few, twelve) = ("cast(d as decimal(18, 4))", "cast('12' as decimal(18, 4))");
    for (condition, rows) in [
        (format!("{few} = {twelve}"), "2"),
        (format!("{few} in ({twelve}, cast('0' as decimal(18, 4)))"), "3"),
        (format!("cast({few} as decimal(38, 10)) >= {twelve}"), "2"),
        ("cast(d as decimal(12, 0)) = 12".to_string(), "2"),
        ("try_cast(d as decimal(12, 0)) = 12".to_string(), "2"),
        ("d = cast('12' as decimal(30, 10))".to_string(), "1"),
        ("cast(d as decimal(38, 12)) < 12 and d > 1".to_string(), "1"),
    ] {
        assert_eq!(lake.rows(&format!("select count(*) from '/lake/d.parquet' where {condition}")).await, rows, "{condition}");
    }
    let below = format!("select id, {few} as x from '/lake/d.parquet'");
    assert_eq!(lake.rows(&format!("select id, x from ({below}) where x >= {twelve} order by id")).await, "1 12.0000\n2 12.0000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_union_has_the_nulls_of_each_side_beside_fields_of_structs() {
    let lake = Lake::new();
    let some = "case when value > 2 then named_struct('a', value) end as s";
    lake.rows(&format!("copy (select value as id, {some} from range(1, 5) as t(value)) to '/lake/m.parquet'")).await;
    let both = "select id, named_struct('a', 100) as s from '/lake/m.parquet' union all select id, s from '/lake/m.parquet'";
    let rows =
        lake.rows(&format!("select id, s['a'] < 100 as less, s is null as n from ({both}) order by 1, 2 nulls last")).await;
    assert_eq!(rows.matches("true").count(), 4, "{rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_number_of_a_table_is_that_of_files_with_narrower_ones_too() {
    let lake = Lake::new();
    let narrow = "cast(964 as decimal(4, 0)) as d, arrow_cast(5, 'Int16') as i";
    let wide = "cast(874 as decimal(15, 0)) as d, cast(3 as bigint) as i";
    for (file, values) in [("a", narrow), ("b", wide)] {
        lake.rows(&format!("copy (select {values}) to '/lake/w/{file}.parquet'")).await;
    }
    lake.rows("create external table w (d decimal(15, 0), i bigint) stored as parquet location '/lake/w/'").await;
    for (of, value) in [("max(d)", "964"), ("min(d)", "874"), ("max(i)", "5"), ("min(i)", "3")] {
        assert_eq!(lake.rows(&format!("select {of} from w")).await, value, "{of}");
    }
    assert_eq!(lake.rows("select d from w order by d desc limit 1").await, "964");
}
