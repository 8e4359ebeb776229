//! `is distinct from` beside AND, OR and NOT, with the answers of PostgreSQL.

use crate::support::Lake;

#[tokio::test(flavor = "multi_thread")]
async fn is_distinct_from_binds_tighter_than_and_or_and_not() {
    let lake = Lake::new();
    for (condition, answer) in [
        ("true is distinct from false and false", "false"),
        ("false is not distinct from true or true", "true"),
        ("not false is distinct from true or true", "true"),
        ("false and true is distinct from true or true", "true"),
        ("true or true is distinct from false and false", "true"),
        ("true is distinct from not true and false", "false"),
        ("true is distinct from (false and false)", "true"),
        ("null is distinct from 1 = 2 and false", "false"),
        ("1 is distinct from 1 + 1 and false", "false"),
        ("1 is distinct from 2 and 3 is not distinct from 4 or true", "true"),
        ("1 is distinct from null and 'a' is distinct from 'b' and false", "false"),
        ("1 is distinct from 2 and 'a' is distinct from 'a' or 5 is distinct from 5", "false"),
    ] {
        assert_eq!(lake.rows(&format!("select {condition} as a")).await, answer, "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_so_wherever_it_stands() {
    let lake = Lake::new();
    let t = "(values (1, 1), (1, 2), (null, 3)) t(a, b)";
    // Of the three rows the one with a = 1 and b = 2.
    let is_met = "a is distinct from null and b = 2";
    lake.rows(&format!("create view v as select b from {t} where {is_met}")).await;
    lake.rows(&format!("create table kept as select b from {t} where {is_met}")).await;
    lake.rows(&format!("copy (select b from {t} where {is_met}) to '/lake/t.parquet'")).await;
    for query in [
        "select b from v".to_string(),
        "select b from kept".to_string(),
        "select b from '/lake/t.parquet'".to_string(),
        format!("select b from {t} where {is_met}"),
        format!("with c as (select b from {t} where {is_met}) select b from c"),
        format!("select b from {t} where b in (select b from {t} where {is_met})"),
        format!("select t.b from {t} join (values (2)) u(c) on t.a is distinct from null and t.b = u.c"),
        format!("select b from {t} group by a, b having {is_met}"),
        format!("select sum(b) filter (where {is_met}) as b from {t}"),
        format!("select sum(case when {is_met} then b else 0 end) as b from {t}"),
        format!("select b from {t} order by {is_met} desc limit 1"),
        format!("select b from {t} where coalesce({is_met}, false)"),
    ] {
        assert_eq!(lake.rows(&query).await, "2", "{query}");
    }
    let explained = async |condition: &str| lake.rows(&format!("explain select b from {t} where {condition}")).await;
    assert_eq!(explained(is_met).await, explained("(a is distinct from null) and b = 2").await);
    lake.rows("set datafusion.sql_parser.dialect = 'duckdb'").await;
    let kept = "array_filter([1, 2, 3], x -> x is distinct from 1 and x < 3)";
    assert_eq!(lake.rows(&format!("select array_to_string({kept}, ' ') as a")).await, "2");
}

#[tokio::test]
async fn a_row_of_many_needs_parentheses_and_says_so() {
    let lake = Lake::new();
    let chain = |one: &str| [one; 60].join(" and ");
    assert_eq!(lake.rows(&format!("select {} as a", chain("(1 is distinct from 2)"))).await, "true");
    let error = lake.error(&format!("select {} as a", chain("1 is distinct from 2"))).await;
    assert!(error.message().contains("`is distinct from` without parentheses"), "{error}");
}
