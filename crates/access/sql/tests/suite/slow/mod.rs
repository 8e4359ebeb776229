//! What the log is told of statements that take long.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_sql::{EngineSettings, SLOW_QUERY};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Lake, settings};

/// What this thread says of slow statements: the fields of each event.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

impl Log {
    /// Hears this thread, where the tests' queries are driven and dropped, as long as the guard lives.
    fn listen() -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    fn lines(&self) -> Vec<BTreeMap<&'static str, String>> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == SLOW_QUERY
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_string());
    }
}

/// A file of some rows, in an engine that tells what takes as long as this.
async fn lake(from: Option<Duration>) -> Lake {
    let lake = Lake::with(EngineSettings { slow_query: from, who: "token etl.1".into(), ..settings() });
    lake.put("t.csv", "n\n1\n2\n3\n").await;
    lake
}

#[tokio::test]
async fn a_slow_statement_is_told_with_its_rows_and_bytes() {
    let (log, _listening) = Log::listen();
    let lake = lake(Some(Duration::ZERO)).await;
    assert_eq!(lake.rows("select count(*) from '/lake/t.csv' where n > 1 -- a comment").await, "2");
    let lines = log.lines();
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
    let (log, _listening) = Log::listen();
    let lake = lake(Some(Duration::ZERO)).await;
    lake.error("select nonsense from '/lake/t.csv'").await;
    drop(lake.engine.execute("select * from '/lake/t.csv'").await.unwrap());
    lake.rows("create view v as select 1 as one").await;
    let lines = log.lines();
    let told: Vec<_> = lines.iter().map(|line| (line["outcome"].as_str(), line.contains_key("error"))).collect();
    assert_eq!(told, [("failed", true), ("left", false), ("done", false)]);
    assert!(lines[0]["error"].contains("nonsense"), "{:?}", lines[0]);
}

#[tokio::test]
async fn options_of_a_table_are_not_told() {
    let (log, _listening) = Log::listen();
    let lake = lake(Some(Duration::ZERO)).await;
    let create = "create external table t stored as csv location '/lake/t.csv' options ('format.has_header' 'true')";
    lake.rows(create).await;
    let lines = log.lines();
    assert!(lines.iter().any(|line| line["sql"].ends_with("location '/lake/t.csv' options (...)")), "{lines:?}");
}

#[tokio::test]
async fn quick_statements_are_not_told_nor_any_where_it_is_off() {
    let (log, _listening) = Log::listen();
    for from in [Some(Duration::from_secs(3600)), None] {
        lake(from).await.rows("select * from '/lake/t.csv'").await;
    }
    assert!(log.lines().is_empty());
}

#[tokio::test]
async fn a_reader_who_takes_his_time_makes_no_slow_statement() {
    let (log, _listening) = Log::listen();
    let from = Duration::from_secs(2);
    let lake = lake(Some(from)).await;
    let mut query = lake.engine.execute("values (1)").await.unwrap();
    forebay_runtime::time::sleep(from * 2).await;
    query.collect().await.unwrap();
    drop(query);
    assert!(log.lines().is_empty());
}
