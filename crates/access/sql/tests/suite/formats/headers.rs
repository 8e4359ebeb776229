//! CSV files of one folder whose first lines have the columns in another order, or not all of them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use forebay_types::ErrorKind;

use crate::support::Lake;

fn gzip(text: &str) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::fast());
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_in_another_order_are_not_swapped() {
    let lake = Lake::new();
    lake.put("people/a.csv", "first,last\nAda,Lovelace\n").await;
    lake.put("people/b.csv", "last,first\nHopper,Grace\n").await;
    lake.put("people/c.csv", "Last , FIRST\nNoether,Emmy\n").await;
    let all = "Ada Lovelace\nGrace Hopper\nEmmy Noether";
    assert_eq!(lake.rows("select * from '/lake/people/' order by last = 'Noether', last desc").await, all);
    assert_eq!(lake.rows("select first from '/lake/people/*.csv' where last = 'Hopper'").await, "Grace");
    assert_eq!(lake.rows("select count(*), min(last), max(upper(first)) from '/lake/people/'").await, "3 Hopper GRACE");
    lake.rows("create external table p (first varchar, last varchar) stored as csv location '/lake/people/'").await;
    assert_eq!(lake.rows("select first, last from p order by last = 'Noether', last desc").await, all);
    // Declared in another order than the only file has.
    let declared = "(last varchar, first varchar) stored as csv location '/lake/people/a.csv'";
    lake.rows(&format!("create external table q {declared}")).await;
    assert_eq!(lake.rows("select last, first from q").await, "Lovelace Ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn types_and_partitions_go_with_the_names() {
    let lake = Lake::new();
    lake.put("s/day=1/a.csv", "id,word,at\n1,one,2024-01-01\n").await;
    lake.put("s/day=2/b.csv", "word,at,id\ntwo,2024-01-02,2\n").await;
    let sql = "select day, id + 1, word, at from '/lake/s/' order by day";
    assert_eq!(lake.rows(sql).await, "1 2 one 2024-01-01\n2 3 two 2024-01-02");
    assert_eq!(lake.rows("select id from '/lake/s/' where day = 2 and word = 'two'").await, "2");
    assert_eq!(lake.rows("select day, count(*) from '/lake/s/' group by day order by day").await, "1 1\n2 1");
    assert_eq!(lake.rows("select id from '/lake/s/' order by id desc limit 1").await, "2");
    // A column that the folders have as well is not taken for another one that the file lacks.
    lake.put("f/day=1/a.csv", "id,day\n1,7\n").await;
    lake.put("f/day=1/b.csv", "id,word\n2,two\n").await;
    assert_eq!(lake.rows("select id, coalesce(word, '-'), day from '/lake/f/' order by id").await, "1 - 1\n2 two 1");
    let declared = "(id bigint, word varchar, day int) stored as csv partitioned by (day) location '/lake/f/'";
    lake.rows(&format!("create external table f {declared}")).await;
    assert_eq!(lake.rows("select id, coalesce(word, '-'), day from f order by id").await, "1 - 1\n2 two 1");
    lake.put("z/a.csv.gz", gzip("id,word\n1,one\n")).await;
    lake.put("z/b.csv.gz", gzip("word,id\ntwo,2\n")).await;
    assert_eq!(lake.rows("select id, word from '/lake/z/' order by id").await, "1 one\n2 two");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_a_file_lacks_is_null_there() {
    let lake = Lake::new();
    // More rows than the engine looks at for the types of columns.
    let many: String = (0..3000).map(|id| format!("{id},w{id}\n")).collect();
    lake.put("s/a.csv", format!("id,word\n{many}")).await;
    lake.put("s/b.csv", "more,id\n1.5,3000\n").await;
    let sql = "select id, coalesce(word, '-'), coalesce(more, 0.25) from '/lake/s/' where id in (7, 3000) order by id";
    assert_eq!(lake.rows(sql).await, "7 w7 0.25\n3000 - 1.5");
    assert_eq!(lake.rows("select count(*), count(word), count(more) from '/lake/s/'").await, "3001 3000 1");
    lake.rows("create external table t (id bigint, word varchar not null) stored as csv location '/lake/s/'").await;
    let error = lake.error("select * from t").await;
    assert!(error.message().contains("/s/b.csv") && error.message().contains("'word'"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_names_is_refused() {
    let lake = Lake::new();
    lake.put("s/a.csv", "id,word\n1,one\n").await;
    lake.put("s/b.csv", "2,two\n3,three\n").await;
    let error = lake.error("select id, word from '/lake/s/'").await;
    assert!(error.message().contains("/s/b.csv") && error.message().contains("has_header"), "{error}");
    // Without names in any file they are taken by their places, as they always were.
    lake.put("n/a.csv", "1,one\n").await;
    lake.put("n/b.csv", "2,two\n").await;
    let options = "options ('format.has_header' 'false')";
    lake.rows(&format!("create external table n (id bigint, word varchar) stored as csv location '/lake/n/' {options}")).await;
    assert_eq!(lake.rows("select * from n order by id").await, "1 one\n2 two");
    // Names of one's own for all columns go by place, in each order of the files.
    lake.put("r/a.csv", "id,word\n1,one\n").await;
    lake.put("r/b.csv", "word,id\ntwo,2\n").await;
    lake.rows("create external table r (number bigint, called varchar) stored as csv location '/lake/r/'").await;
    assert_eq!(lake.rows("select number, called from r order by number").await, "1 one\n2 two");
    // What has others would not go with them.
    let error = lake.error("insert into r values (3, 'three')").await;
    assert!(error.message().contains("'id', 'word'"), "{error}");
    assert_eq!(lake.rows("select number, called from r order by number").await, "1 one\n2 two");
    // Whichever of the files a query reads.
    lake.put("o/day=1/a.csv", "id,word\n1,one\n").await;
    lake.put("o/day=2/b.csv", "word,id\ntwo,2\n").await;
    let declared = "(number bigint, called varchar, day bigint) stored as csv partitioned by (day) location '/lake/o/'";
    lake.rows(&format!("create external table o {declared}")).await;
    assert_eq!(lake.rows("select number, called from o where day = 2").await, "2 two");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_come_late_are_read() {
    let lake = Lake::new();
    let many = "1,\n".repeat(3000);
    lake.put("late.csv", format!("id,word\n{many}2,late\n")).await;
    assert_eq!(lake.rows("select count(word), max(word) from '/lake/late.csv'").await, "1 late");
    lake.put("late/a.csv", format!("id,word\n{many}")).await;
    lake.put("late/b.csv", "word,id\nlate,2\n").await;
    assert_eq!(lake.rows("select count(word), max(word) from '/lake/late/'").await, "1 late");
    // Where there is none at all, any type will do.
    lake.put("none.csv", "id,word\n").await;
    assert_eq!(lake.rows("select count(*), count(id + 1) from '/lake/none.csv'").await, "0 0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_goes_on_after_the_end_of_a_line_is_one_value() {
    let lake = Lake::new();
    // Its lines look like rows.
    let row = |id: usize| format!("{id},\"{id},x,0\n{id},\"\"{}\"\",1\n\",{}\n", "z".repeat(id % 50), id % 7);
    let text = format!("id,t,n\n{}", (0..4000).map(row).collect::<String>());
    lake.put("a.csv", text.clone()).await;
    lake.put("b.csv.gz", gzip(&text)).await;
    lake.put("c.csv", text.replacen("id,t,n\n", "", 1)).await;
    lake.rows("create external table t (id bigint, t varchar, n bigint) stored as csv location '/lake/a.csv'").await;
    let declared = "stored as csv location '/lake/c.csv' options ('format.has_header' 'false')";
    lake.rows(&format!("create external table h (id bigint, t varchar, n bigint) {declared}")).await;
    lake.rows("set datafusion.optimizer.repartition_file_min_size = 1000").await;
    for from in ["'/lake/a.csv'", "'/lake/b.csv.gz'", "t", "h"] {
        let sql = format!("select count(*), sum(id), sum(n), count(distinct n), min(length(t)) from {from}");
        assert_eq!(
            lake.rows(&sql).await,
            format!("4000 {} {} 7 13", 3999 * 2000, (0..4000).map(|id| id % 7).sum::<i32>()),
            "{from}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_that_names_a_column_twice_is_refused() {
    let lake = Lake::new();
    lake.put("twice.csv", "a,b,a\n1,x,2\n2,y,3\n").await;
    lake.put("t/a.csv", "a,b\n1,x\n").await;
    lake.put("t/twice.csv", "b,b,a\nx,y,2\n").await;
    lake.rows("create external table t (a bigint, b varchar, c bigint) stored as csv location '/lake/twice.csv'").await;
    for (from, column) in [("'/lake/twice.csv'", "a"), ("'/lake/t/'", "b"), ("t", "a")] {
        let error = lake.error(&format!("select * from {from}")).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        for said in ["twice.csv", &format!("names '{column}' more than once: give each column a name of its own")] {
            assert!(error.message().contains(said), "{from}: {error}");
        }
    }
    // Who says that there are no names may read it.
    let declared = "stored as csv location '/lake/twice.csv' options ('format.has_header' 'false')";
    lake.rows(&format!("create external table h (a varchar, b varchar, c varchar) {declared}")).await;
    assert_eq!(lake.rows("select count(*), max(c) from h").await, "3 a");
}
