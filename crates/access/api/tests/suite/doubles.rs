//! What stands in the place of the scheduler and of the query engine, which are not built for these tests.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_api::{
    ColumnOf, Http, LoadAsked, LoadProgress, Loads, ReadSoFar, Scheduler, Statement, Statements, TellProgress, Workshop,
};
use forebay_client::{Client, ClientSettings};
use forebay_protocol::{JobState, TaskState, TransferState};
use forebay_shard_store::Columns;
use forebay_shards::{ReadRecords, Records};
use forebay_transport::{Address, Credential, Security};
use forebay_types::{Error, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

/// Opens all doors. What runs statements is a client of the coordinator at `address`; files of datasets that are made anew are below `folder`.
pub fn open(http: &Http, address: Address, folder: &Path) {
    http.show_scheduler(Arc::new(One));
    http.show_loads(Arc::new(Ten));
    http.show_statements(Arc::new(Listings(address)));
    http.show_workshop(Workshop::open(Arc::new(Lines), folder.join("datasets"), |_| None).unwrap());
}

/// Reads objects of JSON lines.
struct Lines;

impl ReadRecords for Lines {
    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        for line in std::fs::read_to_string(file)?.lines() {
            let record = serde_json::from_str(line).map_err(|error| Error::invalid(format!("{line} is no record: {error}")))?;
            each(vec![columns.record_of(&record)?])?;
        }
        Ok(())
    }
}

/// A scheduler with a job, a task of it and a transfer for it.
struct One;

impl Scheduler for One {
    fn jobs(&self) -> BoxFuture<'_, Result<Option<Vec<JobState>>>> {
        let job = JobState {
            id: "a1".into(),
            operation: 7,
            state: "running".into(),
            error: String::new(),
            sql: "select 1".into(),
            priority: -1,
            tasks: 8,
            tasks_running: 2,
            tasks_done: 3,
            tasks_local: 2,
            tasks_with_input: 3,
            tasks_again: 0,
            tasks_copied: 0,
            bytes: 1 << 30,
            bytes_done: 1 << 28,
            bytes_passed: 12,
            rows: None,
            seconds: 1.5,
        };
        async { Ok(Some(vec![job])) }.boxed()
    }

    fn tasks(&self) -> BoxFuture<'_, Result<Option<Vec<TaskState>>>> {
        let (job, state, worker) = ("a1".into(), "done".into(), "w1".into());
        let (bytes, bytes_local) = (4096, 1024);
        let task = TaskState {
            job,
            stage: 2,
            partition: Some(3),
            state,
            worker,
            bytes,
            bytes_local,
            seconds: 0.25,
            ended_seconds_ago: 2.0,
        };
        async { Ok(Some(vec![task])) }.boxed()
    }

    fn transfers(&self) -> BoxFuture<'_, Result<Option<Vec<TransferState>>>> {
        let (path, worker) = ("/lake/a.csv".into(), "w1".into());
        async { Ok(Some(vec![TransferState { path, start: 0, bytes: 4096, worker, seconds: 0.5 }])) }.boxed()
    }
}

/// Loads of ten bytes: that of `/lake/forever` has no end, that of `/lake/none` finds nothing, and that of `/lake/panic` fails by a defect.
struct Ten;

impl Loads for Ten {
    fn load(&self, _: Credential, asked: LoadAsked, tell: TellProgress) -> BoxFuture<'static, Result<u64>> {
        async move {
            match asked.path.key().as_str() {
                "forever" => {
                    tell(LoadProgress { objects: 2, bytes: 10, bytes_done: 4 });
                    std::future::pending::<()>().await;
                }
                "none" => return Err(Error::not_found(format!("{}: nothing is there", asked.path))),
                "panic" => panic!("as a test wants it"),
                _ => tell(LoadProgress { objects: 2, bytes: 10, bytes_done: 10 }),
            }
            Ok(7)
        }
        .boxed()
    }
}

/// `select 1 as one` has a row. `select PATH`: the keys of a folder, as who shows the credential sees them. `select forever` has no end, `select panic` fails by a
/// defect, `select many` has a hundred rows, and `select breaks` as many as Arrow, after which it fails.
struct Listings(Address);

impl Statements for Listings {
    fn begin(&self, credential: Credential, sql: String) -> BoxFuture<'static, Result<Box<dyn Statement>>> {
        let settings = ClientSettings { security: Security::holder(credential), ..ClientSettings::new(self.0.clone()) };
        let begun = async move {
            let mut keys = Vec::new();
            if !sql.starts_with("select ") {
                return Err(Error::invalid("only statements that read are answered here"));
            }
            match sql.trim_start_matches("select ") {
                "forever" => std::future::pending().await,
                "panic" => panic!("as a test wants it"),
                "1 as one" => keys.push("1".into()),
                "many" | "breaks" => keys.extend((0..100).map(|number| format!("{number:03}"))),
                folder if folder.starts_with('/') => {
                    let client = Client::connect(settings).await?;
                    let listed = client.list_all(&folder.parse()?).await?;
                    keys.extend(listed.iter().map(|info| info.version.key.to_string()));
                }
                _ => {}
            }
            Ok(Box::new(Keys::of(keys, sql == "select breaks")) as Box<dyn Statement>)
        };
        begun.boxed()
    }
}

/// Rows, and what they are as Arrow: not in its format, which is not built for these tests, but as much with a head and an end.
struct Keys {
    rows: Option<Vec<String>>,
    pieces: VecDeque<Result<Vec<u8>>>,
}

impl Keys {
    fn of(keys: Vec<String>, breaks: bool) -> Self {
        let last = if breaks { Err(Error::internal("in the midst of it")) } else { Ok(b" END".to_vec()) };
        let pieces = VecDeque::from([Ok(format!("HEAD {}", keys.join(",")).into_bytes()), last]);
        Self { rows: Some(keys), pieces }
    }
}

impl Statement for Keys {
    fn columns(&self) -> Vec<ColumnOf> {
        vec![ColumnOf { name: "key".into(), kind: "Utf8".into() }]
    }

    fn next_rows(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        let lines = |keys: Vec<String>| keys.iter().map(|key| json!({"key": key}).to_string() + "\n").collect::<String>();
        let rows = self.rows.take().map(|keys| lines(keys).into_bytes());
        async { Ok(rows) }.boxed()
    }

    fn next_arrow(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        let piece = self.pieces.pop_front().transpose();
        async move {
            if piece.is_err() {
                // The first piece has gone by then.
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            piece
        }
        .boxed()
    }

    fn progress(&self) -> ReadSoFar {
        ReadSoFar { bytes_read: 11, tasks: 0 }
    }

    fn plan(&self) -> String {
        "ListExec".into()
    }

    fn notice(&self) -> Option<String> {
        Some("it runs in a test".into())
    }
}
