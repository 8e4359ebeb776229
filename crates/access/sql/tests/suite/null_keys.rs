//! Joins by `=`, which no null is equal in, beside joins by `is not distinct from`, which nulls are equal in.

use crate::support::Lake;

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
