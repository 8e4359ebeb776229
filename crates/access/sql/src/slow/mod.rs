//! Statements as they are told of: each a span where it is traced, and a line in the log where it takes long.
//!
//! Owns: how long a statement has kept its caller waiting, and what is told of it.
//! Never does: tell secrets; see [`text`].
//! Start with [`Watch`].

mod text;

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_runtime::now;
use forebay_trace::Span;
use forebay_types::{Error, OperationId};

use text::cut;
pub use text::told as sql_told;

/// The target of these lines. They are of level info, and have the fields `who`, `operation`, `outcome`, `error`, `seconds`,
/// `open_seconds`, `rows`, `bytes_read`, `tasks` and `sql`.
pub const SLOW_QUERY: &str = "slow_query";

/// What a statement has read, and on how many tasks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) bytes_read: u64,
    pub(crate) tasks: u64,
}

/// Tells what a statement has spent so far.
pub(crate) type Spending = Arc<dyn Fn() -> Spent + Send + Sync>;

/// Looks at the clock while somebody waits for a statement. Dropped, it tells what took long and was left before its end.
pub(crate) struct Watch {
    line: Option<Box<Line>>,
    pub(crate) span: Span,
    rows: u64,
}

/// What is told, should it take long.
struct Line {
    from: Duration,
    who: Arc<str>,
    sql: String,
    operation: OperationId,
    spending: Option<Spending>,
    began: Instant,
    /// What its caller has waited, but for the wait that goes on.
    waited: Duration,
    waits_since: Option<Instant>,
}

impl Watch {
    /// A statement of `who` begins, and is waited for; it is told of when that takes `from` or longer, never with none.
    pub(crate) fn begin(from: Option<Duration>, who: &Arc<str>, sql: &str) -> Self {
        let began = now();
        let line = from.map(|from| {
            Box::new(Line {
                from,
                who: Arc::clone(who),
                sql: sql.to_string(),
                operation: OperationId(0),
                spending: None,
                began,
                waited: Duration::ZERO,
                waits_since: Some(began),
            })
        });
        let mut span = Span::here("query");
        span.set("enduser.id", || who.to_string());
        span.set("db.query.text", || sql_told(sql));
        Self { line, span, rows: 0 }
    }

    /// It runs from now on. Nobody waits.
    pub(crate) fn runs(&mut self, operation: OperationId, spending: impl FnOnce() -> Spending) {
        self.reads(operation, spending);
        self.gave(0);
    }

    /// It reads as this operation, and `spending` says how much.
    pub(crate) fn reads(&mut self, operation: OperationId, spending: impl FnOnce() -> Spending) {
        self.span.set("forebay.operation", || shown(operation));
        if let Some(line) = &mut self.line {
            (line.operation, line.spending) = (operation, Some(spending()));
        }
    }

    /// Somebody waits for it.
    pub(crate) fn resume(&mut self) {
        if let Some(line) = &mut self.line {
            // A wait that was given up and begun again at once is one.
            line.waits_since.get_or_insert_with(now);
        }
    }

    /// Rows were given out; nobody waits.
    pub(crate) fn gave(&mut self, rows: usize) {
        self.rows += rows as u64;
        if let Some(line) = &mut self.line {
            line.pause();
        }
    }

    /// It has ended, by itself or by an error.
    pub(crate) fn ended(&mut self, error: Option<&Error>) {
        self.end(if error.is_some() { "failed" } else { "done" }, error);
    }

    fn end(&mut self, outcome: &'static str, error: Option<&Error>) {
        let (rows, mut span) = (self.rows, std::mem::take(&mut self.span));
        span.set("forebay.outcome", || outcome);
        span.set("forebay.rows", || rows);
        if let Some(error) = error {
            span.fail(error);
        }
        if let Some(line) = self.line.take() {
            line.tell(outcome, rows, error);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end("left", None);
    }
}

impl Line {
    fn pause(&mut self) {
        self.waited += self.waits_since.take().map_or(Duration::ZERO, |since| now().duration_since(since));
    }

    fn tell(mut self, outcome: &str, rows: u64, error: Option<&Error>) {
        self.pause();
        assert!(self.waited <= now().duration_since(self.began), "{:?} of a query were waited for twice", self.waited);
        if self.waited < self.from {
            return;
        }
        let Spent { bytes_read, tasks } = self.spending.as_ref().map_or_else(Spent::default, |spending| spending());
        tell_slow(&Slow {
            who: &self.who,
            operation: self.operation,
            outcome,
            error: error.map(|error| error as &dyn Display),
            seconds: self.waited.as_secs_f64(),
            open_seconds: self.began.elapsed().as_secs_f64(),
            rows,
            bytes_read,
            tasks,
            sql: &sql_told(&self.sql),
        });
    }
}

/// A statement that took long.
pub struct Slow<'a> {
    /// Whose it is, as the audit log names them.
    pub who: &'a str,
    /// What all of its reads carry.
    pub operation: OperationId,
    /// `done`, `failed`, or `left` before its end.
    pub outcome: &'a str,
    /// Why it failed.
    pub error: Option<&'a dyn Display>,
    /// What its caller has waited for it.
    pub seconds: f64,
    /// From its beginning to its end, what its caller did meanwhile among it.
    pub open_seconds: f64,
    /// Rows that it has given.
    pub rows: u64,
    /// Bytes that it has read, from wherever they came.
    pub bytes_read: u64,
    /// Tasks, where it ran on many machines.
    pub tasks: u64,
    /// The statement, as far as it may be told ([`sql_told`]).
    pub sql: &'a str,
}

/// Writes the line.
pub fn tell_slow(slow: &Slow<'_>) {
    let Slow { who, outcome, seconds, open_seconds, rows, bytes_read, tasks, .. } = *slow;
    let (operation, error) = (shown(slow.operation), slow.error.map(tracing::field::display));
    let sql = cut(slow.sql.to_string());
    tracing::info!(
        target: SLOW_QUERY,
        who,
        operation,
        outcome,
        error,
        seconds,
        open_seconds,
        rows,
        bytes_read,
        tasks,
        sql,
        "slow query"
    );
}

/// As commands name it.
fn shown(operation: OperationId) -> String {
    format!("{:016x}", operation.0)
}

#[cfg(test)]
mod planted {
    use super::*;

    #[test]
    #[should_panic(expected = "of a query were waited for twice")]
    fn time_that_was_not_waited_for_is_counted() {
        let mut watch = Watch::begin(Some(Duration::ZERO), &Arc::from("somebody"), "select 1");
        watch.line.iter_mut().for_each(|line| line.waited = Duration::from_secs(60));
        watch.ended(None);
    }
}
