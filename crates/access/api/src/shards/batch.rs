//! Many questions at once, a line each.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use forebay_shards::Shards;
use forebay_types::{Error, Result, format_bytes};
use futures::stream::{self, StreamExt};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::asked::DatasetAsked;
use super::condition::ConditionShape;
use super::search::HITS_MAX;
use super::visit::{Come, Visit};
use super::{REFUSALS_OF_BODIES, body, described, lines};
use crate::describe::{Content, Described, Verb};
use crate::refusal::{Refusal, Wrong};

/// Bytes of the questions of one request.
const BODY_BYTES_MAX: u64 = 8 << 20;
const QUESTIONS_MAX: usize = 10_000;
const ASKED_AT_ONCE: usize = 8;

/// A line of a batch, of those that `forebay shard batch` takes: one of `get`, `search` and `count`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["get"]}, {"required": ["search"]}, {"required": ["count"]}]))]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// The key of a record: it is answered, or null where there is none.
    #[expect(dead_code, reason = "read again by `Shards::answer`")]
    get: Option<Json>,
    /// With `get`: only these columns.
    #[expect(dead_code, reason = "read again by `Shards::answer`")]
    columns: Option<Vec<String>>,
    /// With `get`, of all columns: `{"record": .., "version": ..}` is answered, to change the record only if nobody else has.
    #[expect(dead_code, reason = "read again by `Shards::answer`")]
    versioned: Option<bool>,
    /// A condition: the keys of the records that meet it are answered, ascending.
    #[schemars(with = "Option<ConditionShape>")]
    search: Option<Json>,
    /// With `search`: the key after which they begin.
    #[expect(dead_code, reason = "read again by `Shards::answer`")]
    after: Option<Json>,
    /// With `search`: how many keys at most, up to 10,000. It has to be said.
    #[schemars(range(min = 0, max = HITS_MAX))]
    limit: Option<u64>,
    /// A condition, or null: the number of records that meet it is answered, or of all.
    #[schemars(with = "Option<ConditionShape>")]
    #[expect(dead_code, reason = "read again by `Shards::answer`")]
    count: Option<Json>,
}

impl Question {
    /// Whether a line reads, and not too much: only what stands here is asked with the right to read.
    fn check(line: &[u8]) -> Result<()> {
        let wrong = |error| Error::invalid(format!("{} is no question: {error}", String::from_utf8_lossy(line).trim_end()));
        let question: Self = serde_json::from_slice(line).map_err(wrong)?;
        match question.search.is_some() && question.limit.is_none_or(|limit| limit > HITS_MAX as u64) {
            true => Err(Error::invalid(format!(
                "a search over HTTP has a \"limit\" of {HITS_MAX} at most: go on with \"after\" and the last key"
            ))),
            false => Ok(()),
        }
    }
}

pub(super) const PATH: Described =
    described::<DatasetAsked>(Verb::Post, "/api/v1/shards/batch", "Many questions with one request, a line each.", ANSWERS)
        .with_body(Content {
            kind: lines::JSON_LINES,
            about: "JSON lines, at most 10,000 and 8 MiB of them.",
            shape: |generator| generator.subschema_for::<Question>(),
            example: Some(
                "{\"get\": 7}\n{\"search\": {\"attr\": \"name\", \"eq\": \"clerk007\"}, \"limit\": 2}\n{\"count\": null}\n",
            ),
        })
        .refused_with(REFUSALS_OF_BODIES);

const ANSWERS: Content = Content {
    kind: lines::JSON_LINES,
    about: "JSON lines, one for each that was asked, in their order: a record or null, an array of keys, a number, or what is wrong.",
    shape: |generator| {
        json_schema!({"anyOf": [
            generator.subschema_for::<Wrong>(),
            {"type": "object", "additionalProperties": true},
            {"type": "null"},
            {"type": "array", "items": {}},
            {"type": "integer", "minimum": 0},
        ]})
    },
    example: None,
};

pub(super) async fn batch(come: Come<DatasetAsked>, sent: Body) -> Result<Response, Refusal> {
    let (coming, asked) = come.by_name("shard_batch")?;
    let visit = coming.read(asked.dataset, asked.timeout)?;
    let (sent, spent) = body::read(&visit, sent, BODY_BYTES_MAX, too_large).await?;
    let questions = split(&sent)?;
    let shards = visit.open().await?;
    lines::answer(visit.deadline, |mut lines| async move {
        let mut answers = stream::iter(questions).map(|line| answer(&visit, &shards, line)).buffered(ASKED_AT_ONCE);
        while let Some(answer) = answers.next().await {
            lines.push(&answer).await?;
        }
        drop((answers, spent));
        Ok(lines)
    })
    .await
}

fn too_large() -> Refusal {
    let message = format!("a batch has {} and {QUESTIONS_MAX} questions at most: send several", format_bytes(BODY_BYTES_MAX));
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Error::invalid(message))
}

fn split(body: &Bytes) -> Result<Vec<Bytes>, Refusal> {
    body::lines(body, QUESTIONS_MAX, too_large)
}

/// The answer to a line; what went wrong with it is an answer too.
async fn answer(visit: &Visit, shards: &Shards, line: Bytes) -> Json {
    let answered = async {
        Question::check(&line)?;
        Ok(shards.answer(&line).await)
    };
    match visit.within(answered).await {
        Ok(answer) => answer,
        Err(refusal) => json!(Wrong::from(refusal.error())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reads_and_has_an_end_is_asked() {
        for right in [
            r#"{"get": 5, "columns": ["a"]}"#,
            r#"{"get": 5, "versioned": true}"#,
            r#"{"search": {"attr": "a", "eq": 1}, "after": 3, "limit": 10000}"#,
            r#"{"count": null}"#,
            // What else is wrong with it is said by those who are asked.
            r#"{}"#,
        ] {
            Question::check(right.as_bytes()).unwrap();
        }
        for wrong in [
            r#"{"put": {"a": 1}}"#,
            r#"{"get": 5, "delete": 5}"#,
            r#"{"search": {"attr": "a", "eq": 1}}"#,
            r#"{"search": {"attr": "a", "eq": 1}, "limit": 10001}"#,
            "[1]",
            "nothing",
        ] {
            assert_eq!(Question::check(wrong.as_bytes()).unwrap_err().kind(), forebay_types::ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn blank_lines_are_none_and_too_many_are_refused() {
        let lines = |text: &str| split(&Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(lines("\n {\"count\": null} \r\n\n{}").unwrap().len(), 2);
        assert_eq!(lines(&"{}\n".repeat(QUESTIONS_MAX)).unwrap().len(), QUESTIONS_MAX);
        assert_eq!(lines(&"{}\n".repeat(QUESTIONS_MAX + 1)).unwrap_err().status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
