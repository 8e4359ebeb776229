//! What a statement gives, as much of it as an answer has.

use forebay_transport::Credential;
use forebay_types::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{ColumnOf, ReadSoFar, Statement, Statements};

/// Bytes of the rows of an answer.
const ROWS_BYTES_MAX: usize = 8 << 20;

/// The result of a statement, and what it took.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Answer {
    /// In their order.
    columns: Vec<ColumnOf>,
    /// Each an object with a value a column, in the digits that it was written with.
    #[schemars(with = "Vec<Map<String, Value>>")]
    rows: Vec<Box<RawValue>>,
    /// There are no more rows.
    is_whole: bool,
    /// How long it took to the last of these rows.
    seconds: f64,
    /// What it has read for them.
    read: ReadSoFar,
    /// What it does, an operator a line. How long each takes is told by EXPLAIN ANALYZE.
    plan: String,
    /// What is to be known beside the rows: why the statement ran in one process where there is a cluster, or that it ran again in smaller
    /// batches. Mostly null.
    notice: Option<String>,
}

/// Runs a statement up to so many rows.
pub(super) async fn answer(statements: &dyn Statements, credential: Credential, sql: String, rows_max: usize) -> Result<Answer> {
    let began = forebay_runtime::now();
    let mut statement = statements.begin(credential, sql).await?;
    let (rows, is_whole) = collect(statement.as_mut(), rows_max, ROWS_BYTES_MAX).await?;
    let seconds = began.elapsed().as_secs_f64();
    let (columns, read, plan, notice) = (statement.columns(), statement.progress(), statement.plan(), statement.notice());
    Ok(Answer { columns, rows, is_whole, seconds, read, plan, notice })
}

/// Rows up to so many, of so many bytes; and whether these are all.
async fn collect(statement: &mut dyn Statement, rows_max: usize, bytes_max: usize) -> Result<(Vec<Box<RawValue>>, bool)> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(lines) = statement.next_rows().await? {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            bytes += line.len();
            if rows.len() == rows_max || bytes > bytes_max {
                return Ok((rows, false));
            }
            let row = serde_json::from_slice(line).map_err(|error| Error::internal(format!("a row is no JSON: {error}")))?;
            rows.push(row);
            debug_assert!(rows.len() <= rows_max && bytes <= bytes_max, "an answer has an end");
        }
    }
    Ok((rows, true))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    /// More digits than a float has.
    const FIRST: &str = "{\"n\":0.12345678901234567890}";

    /// Rows without an end, some at a time.
    struct Endless(u64);

    impl Statement for Endless {
        fn columns(&self) -> Vec<ColumnOf> {
            Vec::new()
        }

        fn next_rows(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
            self.0 += 3;
            let lines =
                (self.0 - 3..self.0).map(|number| format!("{{\"n\":{number}.12345678901234567890}}\n")).collect::<String>();
            async move { Ok(Some(lines.into_bytes())) }.boxed()
        }

        fn next_arrow(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
            async { Ok(None) }.boxed()
        }

        fn progress(&self) -> ReadSoFar {
            ReadSoFar::default()
        }

        fn plan(&self) -> String {
            String::new()
        }

        fn notice(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn an_answer_ends_though_the_result_does_not() {
        let take = |rows_max, bytes_max| {
            let mut endless = Endless(0);
            let (rows, is_whole) = collect(&mut endless, rows_max, bytes_max).now_or_never().unwrap().unwrap();
            assert!(!is_whole && rows[0].get() == FIRST, "{rows:?}");
            (rows.len(), endless.0)
        };
        assert_eq!(take(7, usize::MAX), (7, 9), "and no more is asked for than is kept");
        assert_eq!(take(usize::MAX, FIRST.len() * 5), (5, 6));
    }
}
