//! What the log is told of statements that take long.

use std::time::Duration;

use forebay_sql::{EngineSettings, SLOW_QUERY};
use forebay_testbed::EventLog;

use crate::support::{Lake, settings};

/// A file of some rows, in an engine that tells what takes as long as this.
async fn lake(from: Option<Duration>) -> Lake {
    let lake = Lake::with(EngineSettings { slow_query: from, who: "token etl.1".into(), ..settings() });
    lake.put("t.csv", "n\n1\n2\n3\n").await;
    lake
}

#[tokio::test]
async fn a_slow_statement_is_told_with_its_rows_and_bytes() {
    let (log, _listening) = EventLog::of_thread(SLOW_QUERY);
    let lake = lake(Some(Duration::ZERO)).await;
    assert_eq!(lake.rows("select count(*) from '/lake/t.csv' where n > 1 -- a comment").await, "2");
    let lines = log.told();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((line["who"].as_str(), line["outcome"].as_str(), line["rows"].as_str()), ("token etl.1", "done", "1"));
    assert_eq!(line["sql"].trim_end(), "select count(*) from '/lake/t.csv' where n > 1");
    assert!(line["bytes_read"].parse::<u64>().unwrap() >= 8 && line["operation"].len() == 16, "{line:?}");
    let (seconds, open) = (line["seconds"].parse::<f64>().unwrap(), line["open_seconds"].parse::<f64>().unwrap());
    assert!(0.0 < seconds && seconds <= open, "{line:?}");
    assert!(!line.contains_key("error"), "{line:?}");
}

#[tokio::test]
async fn what_fails_and_what_is_left_is_told_too() {
    let (log, _listening) = EventLog::of_thread(SLOW_QUERY);
    let lake = lake(Some(Duration::ZERO)).await;
    lake.error("select nonsense from '/lake/t.csv'").await;
    drop(lake.engine.execute("select * from '/lake/t.csv'").await.unwrap());
    lake.rows("create view v as select 1 as one").await;
    let lines = log.told();
    let told: Vec<_> = lines.iter().map(|line| (line["outcome"].as_str(), line.contains_key("error"))).collect();
    assert_eq!(told, [("failed", true), ("left", false), ("done", false)]);
    assert!(lines[0]["error"].contains("nonsense"), "{:?}", lines[0]);
}

#[tokio::test]
async fn options_of_a_table_are_not_told() {
    let (log, _listening) = EventLog::of_thread(SLOW_QUERY);
    let lake = lake(Some(Duration::ZERO)).await;
    let create = "create external table t stored as csv location '/lake/t.csv' options ('format.has_header' 'true')";
    lake.rows(create).await;
    let lines = log.told();
    assert!(lines.iter().any(|line| line["sql"].ends_with("location '/lake/t.csv' options (...)")), "{lines:?}");
}

#[tokio::test]
async fn quick_statements_are_not_told_nor_any_where_it_is_off() {
    let (log, _listening) = EventLog::of_thread(SLOW_QUERY);
    for from in [Some(Duration::from_secs(3600)), None] {
        lake(from).await.rows("select * from '/lake/t.csv'").await;
    }
    assert!(log.told().is_empty());
}

#[tokio::test]
async fn a_reader_who_takes_his_time_makes_no_slow_statement() {
    let (log, _listening) = EventLog::of_thread(SLOW_QUERY);
    let from = Duration::from_secs(5);
    let lake = lake(Some(from)).await;
    let mut query = lake.engine.execute("values (1)").await.unwrap();
    forebay_runtime::time::sleep(from * 2).await;
    query.collect().await.unwrap();
    drop(query);
    assert!(log.told().is_empty());
}
