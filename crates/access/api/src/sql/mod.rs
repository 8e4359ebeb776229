//! `/api/v1/sql`: a statement that reads, with the rights of who asks.
//!
//! Owns: who may ask, how much and how long; how much of its result is kept, or that all of it is sent on.
//!
//! Never does: run one. Who is handed over as [`Statements`] does, looks at the rights of the credential, and refuses what does not
//! only read.
//!
//! Start with [`routes`].

mod answer;
mod arrow;
mod rows;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use forebay_rights::{Who, needs};
use forebay_runtime::time::{Instant, instant, timeout_at};
use forebay_trace::Span;
use forebay_transport::Credential;
use forebay_types::{Error, Result, format_duration};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Readers;
use crate::asking::{Asked, Place, Places, PlacesMax, TIMEOUT_PATTERN, Timeout};
use crate::describe::{Content, Described, Routes, Verb};
use crate::refusal::Refusal;
use crate::visitor::Sender;
use answer::Answer;

/// Bytes of a statement.
const STATEMENT_BYTES_MAX: usize = 64 << 10;
/// Rows of an answer where a request does not say how many, and at most.
const ROWS: usize = 1000;
const ROWS_MAX: usize = 10_000;
/// Statements at a time: each takes memory and time of the process that runs it.
const PLACES: PlacesMax = PlacesMax { all: 16, of_one: 4 };

/// What runs statements of SQL, each with the rights of who asks.
pub trait Statements: Send + Sync + 'static {
    /// Plans a statement and begins it, with the rights of a credential and no others. `Invalid` when it is none or does not only
    /// read, of which nothing is done then; `Denied` when its caller may not. Dropping what comes ends it.
    fn begin(&self, credential: Credential, sql: String) -> BoxFuture<'static, Result<Box<dyn Statement>>>;
}

/// A statement that runs.
pub trait Statement: Send {
    /// The columns of its rows.
    fn columns(&self) -> Vec<ColumnOf>;

    /// The next rows, each a JSON object with a line to itself; none at the end.
    fn next_rows(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>>;

    /// The same as a part of one stream of Arrow's IPC format, whose head comes with the first rows and whose end after the last; none when
    /// it was given out. Rows are asked for in one of both ways.
    fn next_arrow(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>>>;

    /// How far it is.
    fn progress(&self) -> ReadSoFar;

    /// What it does, an operator a line.
    fn plan(&self) -> String;

    /// What whoever asked is to know beside its rows, if there is something.
    fn notice(&self) -> Option<String>;
}

/// A column of a result.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub struct ColumnOf {
    /// Its name.
    pub name: String,
    /// Its type, as Arrow calls it.
    pub kind: String,
}

/// What a statement has read.
#[derive(Clone, Copy, Debug, Default, JsonSchema, PartialEq, Serialize)]
pub struct ReadSoFar {
    /// Bytes that it has read, from wherever they came.
    pub bytes_read: u64,
    /// Tasks, where it ran on many machines; 0 where it did not.
    pub tasks: u64,
}

/// What stands behind the `?`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SqlAsked {
    /// Rows at most, 1,000 where it is not said: where there are more, `is_whole` is false. Of JSON alone: as Arrow come all of them.
    #[schemars(with = "Option<usize>", range(min = 1, max = ROWS_MAX), example = 10, extend("default" = ROWS))]
    rows: Option<RowsMax>,
    /// How long the answer may take, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

/// `rows=`: how many rows an answer may have.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct RowsMax(usize);

impl TryFrom<String> for RowsMax {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        let rows = text.parse::<usize>().ok().filter(|rows| (1..=ROWS_MAX).contains(rows));
        rows.map(Self).ok_or_else(|| format!("rows is a number from 1 to {ROWS_MAX}, and {text:?} is not"))
    }
}

/// What is sent with each of the paths.
const STATEMENT: Content = Content {
    kind: "application/sql",
    about: "The statement, of 64 KiB at most.",
    shape: |_| schemars::json_schema!({"type": "string"}),
    example: Some("select 1 as one"),
};

/// A path that a statement is sent to.
const fn statement<T: JsonSchema>(path: &'static str, about: &'static str, answer: Content) -> Described {
    Described::new(Verb::Post, path, about, answer)
        .asked_by::<T>()
        .with_body(STATEMENT)
        .refused_with(&[400, 404, 408, 409, 413, 429, 500, 503, 504])
}

/// What all statements share.
struct Door {
    readers: Readers,
    statements: Arc<OnceLock<Arc<dyn Statements>>>,
    places: Arc<Places>,
}

/// The path, for `readers`, each with its own rights, from when what runs statements is there.
pub(crate) fn routes(readers: Readers, statements: Arc<OnceLock<Arc<dyn Statements>>>) -> (Router, Vec<Described>) {
    let about = "A statement that reads: SELECT, WITH, VALUES, SHOW, or EXPLAIN of one.";
    let answer = Content::json::<Answer>("Its columns and rows, and what it took.");
    let path = Described { or: Some(arrow::STREAM), ..statement::<SqlAsked>("/api/v1/sql", about, answer) };
    let (router, described) = Routes::new().with(path, sql).with(rows::PATH, rows::rows).into_parts();
    (router.with_state(Arc::new(Door { readers, statements, places: Places::new(PLACES) })), described)
}

async fn sql(
    State(door): State<Arc<Door>>,
    sender: Sender,
    headers: HeaderMap,
    asked: Result<Asked<SqlAsked>, Refusal>,
    body: Body,
) -> Result<Response, Refusal> {
    // Who is nobody's hears of nothing else first.
    let caller = door.readers.caller(&sender, &needs::statement(), "sql", "/api/v1/sql")?;
    let Asked(SqlAsked { rows, timeout }) = asked?;
    let as_arrow = arrow::is_accepted(&headers);
    if as_arrow && rows.is_some() {
        return Err(Refusal::invalid("all rows of a statement come as Arrow: bound them by LIMIT, and leave `rows` out"));
    }
    let entered = Entered::new(&door, caller, timeout)?;
    let sql = entered.statement(body).await?;
    let span = Span::of_request(&headers, "http sql");
    if as_arrow {
        return arrow::answer(entered, sql, span).await;
    }
    let answered =
        answer::answer(entered.statements.as_ref(), entered.credential.clone(), sql, rows.map_or(ROWS, |RowsMax(rows)| rows));
    Ok(Json(entered.within(span.around(answered)).await?).into_response())
}

/// A request that was let in: what runs its statement, for whom, and until when it is answered.
struct Entered {
    statements: Arc<dyn Statements>,
    credential: Credential,
    timeout: Duration,
    deadline: Instant,
    _place: Place,
}

impl Entered {
    /// 404 where no SQL is served; 429 or 503 where too many statements are under way.
    fn new(door: &Door, (who, credential): (Who, Credential), timeout: Option<Timeout>) -> Result<Self, Refusal> {
        let statements = door.statements.get().cloned().ok_or_else(|| {
            Error::not_found(
                "no SQL is served here: `forebay up` does with its Flight SQL (--flight), from when that has started",
            )
        })?;
        let place = door.places.take(&who.to_string())?;
        let timeout = timeout.unwrap_or_default().duration();
        Ok(Self { statements, credential, timeout, deadline: instant() + timeout, _place: place })
    }

    /// The statement, as long as there is time for it to come; 408 after that.
    async fn statement(&self, body: Body) -> Result<String, Refusal> {
        timeout_at(self.deadline, read(body)).await.map_err(|_| self.late(StatusCode::REQUEST_TIMEOUT))?
    }

    /// Work on the answer, as long as there is time for it; 504 after that.
    async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T, Refusal> {
        Ok(timeout_at(self.deadline, work).await.map_err(|_| self.late(StatusCode::GATEWAY_TIMEOUT))??)
    }

    fn late(&self, status: StatusCode) -> Refusal {
        let timeout = format_duration(self.timeout);
        let message = format!("not answered within {timeout}: ask for less, or with a longer `timeout`");
        Refusal::new(status, Error::retry(message))
    }
}

async fn read(body: Body) -> Result<String, Refusal> {
    let too_large = || {
        let message = format!("a statement has {STATEMENT_BYTES_MAX} bytes at most");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Error::invalid(message))
    };
    // One that breaks off has nobody who reads what is said of it.
    let bytes = to_bytes(body, STATEMENT_BYTES_MAX).await.map_err(|_| too_large())?;
    String::from_utf8(bytes.into()).map_err(|_| Refusal::invalid("a statement is text in UTF-8"))
}
