//! Many changes at once, a line each.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use forebay_protocol::CHANGES_MAX;
use forebay_shard_store::exact_json;
use forebay_types::{Error, Result, format_bytes};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::asked::DatasetAsked;
use super::record::Changed;
use super::visit::Come;
use super::{REFUSALS_OF_BODIES, body, described, lines};
use crate::describe::{Content, Described, Verb};
use crate::refusal::{Refusal, Wrong};

/// Bytes of the changes of one request: no more than a worker takes with one call, also where all are of one shard.
const BODY_BYTES_MAX: u64 = 3 << 20;
/// So much of a line that is no change is said again.
const SAID_BYTES_MAX: usize = 200;

/// A line of changes, of those that `forebay shard batch` takes: one of `put` and `delete`.
#[derive(Deserialize, JsonSchema, Serialize)]
#[schemars(extend("oneOf" = [
    {"required": ["put"], "properties": {"put": {"type": "object"}}, "additionalProperties": true},
    {
        "required": ["delete"],
        "properties": {"delete": {"type": ["string", "number", "boolean", "object"]}},
        "additionalProperties": true,
    },
]))]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// A record, an object with its key and columns: it is written, a new one or in place of the one that its key has.
    #[serde(skip_serializing_if = "Option::is_none")]
    put: Option<Map<String, Json>>,
    /// The key of a record: it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    delete: Option<Json>,
    /// Only where the key has no record.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_absent: Option<bool>,
    /// Only where nobody has changed the record since it had this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    if_version: Option<u64>,
}

impl Change {
    /// The change in a line, as `Shards::change_each` takes it.
    fn read(line: &[u8]) -> Result<Json> {
        let wrong = |error: serde_json::Error| {
            let said = &line[..line.len().min(SAID_BYTES_MAX)];
            Error::invalid(format!("{} is no change: {error}", String::from_utf8_lossy(said).trim_end()))
        };
        let change: Self = exact_json(line).map_err(wrong)?;
        serde_json::to_value(change).map_err(wrong)
    }
}

pub(super) const PATH: Described = described::<DatasetAsked>(
    Verb::Post,
    "/api/v1/shards/change",
    "Many changes with one request, a line each. Those of one shard are made together, in their order, or none of them is.",
    Content {
        kind: lines::JSON_LINES,
        about: "JSON lines, one for each change, in their order: the record's version now, or why its shard was not changed.",
        shape: |generator| json_schema!({"anyOf": [generator.subschema_for::<Wrong>(), generator.subschema_for::<Changed>()]}),
        example: None,
    },
)
.with_body(Content {
    kind: lines::JSON_LINES,
    about: "JSON lines, at most 8,192 and 3 MiB of them. With one that is no change of this dataset, none is made.",
    shape: |generator| generator.subschema_for::<Change>(),
    example: Some(
        "{\"put\": {\"id\": 100001, \"name\": \"clerk007\"}, \"if_absent\": true}\n{\"put\": {\"id\": 100002}}\n{\"delete\": 10}\n",
    ),
})
.refused_with(REFUSALS_OF_BODIES);

pub(super) async fn change(come: Come<DatasetAsked>, sent: Body) -> Result<Response, Refusal> {
    let (coming, asked) = come.by_name("shard_change")?;
    let changing = coming.change(asked.dataset, asked.timeout)?;
    let (sent, spent) = body::read(changing.visit(), sent, BODY_BYTES_MAX, too_large).await?;
    let changes = read(&sent)?;
    let shards = changing.visit().open().await?;
    let outcomes = changing.make(shards.change_each(&changes)).await?;
    drop(spent);
    lines::answer(changing.visit().deadline, |mut lines| async move {
        // Its place is taken until all of it is read.
        let _changing = changing;
        for outcome in outcomes {
            match outcome {
                Ok(version) => lines.push(&Changed { version }).await?,
                Err(error) => lines.push(&json!(Wrong::from(&error))).await?,
            }
        }
        Ok(lines)
    })
    .await
}

fn read(sent: &Bytes) -> Result<Vec<Json>, Refusal> {
    let lines = body::lines(sent, CHANGES_MAX, too_large)?;
    Ok(lines.iter().map(|line| Change::read(line)).collect::<Result<_>>()?)
}

fn too_large() -> Refusal {
    let message = format!("a request has {} and {CHANGES_MAX} changes at most: send several", format_bytes(BODY_BYTES_MAX));
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Error::invalid(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_handed_on_as_it_was_sent() {
        let sent = [
            json!({"put": {"id": 1, "name": null, "note": "a"}}),
            json!({"put": {"id": 1}, "if_absent": true}),
            json!({"delete": "x", "if_version": 7}),
        ];
        for change in sent {
            assert_eq!(Change::read(change.to_string().as_bytes()).unwrap(), change);
        }
        let float = r#"{"put":{"id":1,"weight":7.038531e-26}}"#;
        assert_eq!(Change::read(float.as_bytes()).unwrap().to_string(), float);
        let with_nulls = br#"{"put": null, "delete": 7, "if_absent": null, "if_version": null}"#;
        assert_eq!(Change::read(with_nulls).unwrap(), json!({"delete": 7}), "as clients have them that write all fields");
        for wrong in [r#"{"get": 1}"#, r#"{"put": {"id": 1}, "if_verison": 1}"#, r#"{"put": 1}"#, "[]", "nothing"] {
            assert_eq!(Change::read(wrong.as_bytes()).unwrap_err().kind(), forebay_types::ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn what_is_said_of_a_line_that_is_no_change_is_short() {
        let error = Change::read(&vec![b'x'; 1 << 20]).unwrap_err();
        assert!(error.message().len() < 2 * SAID_BYTES_MAX, "{} bytes", error.message().len());
    }

    #[test]
    fn too_many_changes_are_refused() {
        let read_lines = |count: usize| read(&Bytes::from("{\"delete\": 1}\n".repeat(count)));
        assert_eq!(read_lines(CHANGES_MAX).unwrap().len(), CHANGES_MAX);
        assert_eq!(read_lines(CHANGES_MAX + 1).unwrap_err().status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
