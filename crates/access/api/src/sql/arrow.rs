//! All rows of a statement as a stream of Arrow's IPC format, sent while they are made, to who accepts that.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::Response;
use forebay_trace::Span;
use forebay_types::Error;
use schemars::json_schema;

use super::Entered;
use crate::asking::lines;
use crate::describe::Content;
use crate::refusal::Refusal;

/// What such a stream is called.
const KIND: &str = "application/vnd.apache.arrow.stream";

pub(super) const STREAM: Content = Content {
    kind: KIND,
    about: "All rows, as a stream of Arrow's IPC format.",
    shape: |_| json_schema!({"type": "string", "contentMediaType": KIND}),
    example: None,
};

/// Whether who asks takes Arrow, by name, and does not prefer JSON.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let weight = weight(headers, KIND);
    weight > 0.0 && weight >= self::weight(headers, "application/json")
}

/// How much a kind is wanted that is named; 0 where it is not.
fn weight(headers: &HeaderMap, kind: &str) -> f32 {
    let accepted =
        headers.get_all(ACCEPT).into_iter().filter_map(|header| header.to_str().ok()).flat_map(|kinds| kinds.split(','));
    let weights = accepted.filter_map(|accepted| {
        let mut parts = accepted.split(';').map(str::trim);
        parts.next().filter(|named| named.eq_ignore_ascii_case(kind))?;
        let said = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        said.map_or(Some(1.0), |said| said.parse::<f32>().ok().filter(|weight| (0.0..=1.0).contains(weight)))
    });
    weights.fold(0.0, f32::max)
}

/// The rows. What fails before the first of them is the answer's status; after that the connection breaks off.
pub(super) async fn answer(entered: Entered, sql: String, span: Span) -> Result<Response, Refusal> {
    lines::answer_of(KIND, entered.deadline, |mut made| async move {
        let all = async {
            let mut statement = entered.statements.begin(entered.credential.clone(), sql).await?;
            while let Some(bytes) = statement.next_arrow().await? {
                made.push_bytes(&bytes).await?;
            }
            Ok::<(), Error>(())
        };
        entered.within(span.around(all)).await?;
        Ok(made)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrow_is_for_who_names_it() {
        let accepts = |accepted: &[&str]| {
            let mut headers = HeaderMap::new();
            for accepted in accepted {
                headers.append(ACCEPT, accepted.parse().unwrap());
            }
            is_accepted(&headers)
        };
        assert!(accepts(&[KIND]) && accepts(&["Application/VND.apache.arrow.stream; q=0.5, */*;q=0.1"]));
        assert!(
            accepts(&["application/json", KIND]) && accepts(&["application/json;q=0.9, application/vnd.apache.arrow.stream"])
        );
        let nothing: &[&str] = &[];
        for json in
            [nothing, &["*/*"], &["application/json"], &["application/*"], &["text/html, application/vnd.apache.arrow.file"]]
        {
            assert!(!accepts(json), "{json:?}");
        }
        assert!(
            !accepts(&["application/vnd.apache.arrow.stream;q=0"]) && !accepts(&["application/vnd.apache.arrow.stream;q=nan"])
        );
        assert!(!accepts(&["application/json, application/vnd.apache.arrow.stream;q=0.9"]));
    }
}
