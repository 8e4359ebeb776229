//! All rows of a statement, a JSON line each, sent while they are made.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use forebay_rights::needs;
use forebay_trace::Span;
use forebay_types::Error;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;

use super::{Door, Entered, statement};
use crate::asking::{Asked, TIMEOUT_PATTERN, Timeout, lines};
use crate::describe::{Content, Described};
use crate::refusal::Refusal;
use crate::visitor::Sender;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsAsked {
    /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
    #[schemars(with = "Option<String>", extend("pattern" = TIMEOUT_PATTERN), example = &"30s")]
    timeout: Option<Timeout>,
}

pub(super) const PATH: Described = statement::<RowsAsked>(
    "/api/v1/sql/rows",
    "All rows of a statement that reads, as they come.",
    Content {
        kind: lines::JSON_LINES,
        about: "JSON lines, an object with a value a column each.",
        shape: |_| json_schema!({"type": "object", "additionalProperties": true}),
        example: None,
    },
);

pub(super) async fn rows(
    State(door): State<Arc<Door>>,
    sender: Sender,
    headers: HeaderMap,
    asked: Result<Asked<RowsAsked>, Refusal>,
    body: Body,
) -> Result<Response, Refusal> {
    let caller = door.readers.caller(&sender, &needs::statement(), "sql", "/api/v1/sql/rows")?;
    let Asked(asked) = asked?;
    let entered = Entered::new(&door, caller, asked.timeout)?;
    let sql = entered.statement(body).await?;
    let span = Span::of_request(&headers, "http sql");
    lines::answer(entered.deadline, |mut lines| async move {
        let all = async {
            let mut statement = entered.statements.begin(entered.credential.clone(), sql).await?;
            while let Some(made) = statement.next_rows().await? {
                lines.push_made(&made).await?;
            }
            Ok::<(), Error>(())
        };
        entered.within(span.around(all)).await?;
        Ok(lines)
    })
    .await
}
