//! The tags of an object at its store, as the header that gives them to another one.

use std::mem::take;

use forebay_shared_storage::{ForwardBody, PayloadHash};
use futures::TryStreamExt;
use http::{HeaderMap, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Visit, read_xml};
use crate::mounts::is_local;
use crate::request::Reading;
use crate::rights::Object;
use crate::store::{self, Sending};

/// Bytes of a document of tags, of which an object has ten at most.
const TAGS_BYTES_MAX: usize = 64 << 10;
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What `x-amz-tagging` is to say for another object to have the tags of this one; none where it has none, or its store keeps none.
/// `AccessDenied` where the store does not tell them.
pub(super) async fn tags(context: &Context, object: &Object) -> S3Result<Option<HeaderValue>> {
    if is_local(object.mount()) {
        return Ok(None);
    }
    let (hash, query) = (PayloadHash::Empty, vec![("tagging".to_string(), String::new())]);
    let sending = Sending { key: Some(object.key.clone()), query, headers: HeaderMap::new(), hash, body: None };
    let (parts, stream) = store::read(context, object.may_read(), Reading::Get, sending).await?.into_parts();
    match parts.status {
        StatusCode::OK => document(stream).await?.map_or(Ok(None), |document| header(&document)),
        // AWS refuses the copy of what has tags as well. Whether this has any nobody tells who may not read them.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(S3Error::access_denied().saying(
            "The store does not tell the tags of the source: the credentials of its mount want s3:GetObjectTagging there. \
             x-amz-tagging-directive: REPLACE copies without tags.",
        )),
        StatusCode::NOT_IMPLEMENTED => Ok(None),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => Err(S3Error::slow_down()),
        _ => Ok(None),
    }
}

/// All of an answer; none of what is longer than tags are.
async fn document(mut stream: ForwardBody) -> S3Result<Option<Vec<u8>>> {
    let mut document = Vec::new();
    while let Some(piece) = stream.try_next().await? {
        document.extend_from_slice(&piece);
        if document.len() > TAGS_BYTES_MAX {
            return Ok(None);
        }
    }
    Ok(Some(document))
}

/// None where it is no document of tags: a store that does not know them answers with the object itself.
fn header(document: &[u8]) -> S3Result<Option<HeaderValue>> {
    let mut tags = Tags::default();
    let read = read_xml(document, &mut tags);
    if !tags.are_there {
        return Ok(None);
    }
    read.map_err(|_| S3Error::internal())?;
    let shown = |text: &str| utf8_percent_encode(text, KEPT).to_string();
    let all: Vec<String> = tags.all.iter().map(|(key, value)| format!("{}={}", shown(key), shown(value))).collect();
    match all.is_empty() {
        true => Ok(None),
        false => HeaderValue::from_str(&all.join("&")).map(Some).map_err(|_| S3Error::internal()),
    }
}

#[derive(Default)]
struct Tags {
    are_there: bool,
    key: String,
    value: String,
    all: Vec<(String, String)>,
}

impl Visit for Tags {
    fn begin(&mut self, path: &[String]) {
        if let [root] = path {
            self.are_there = root == "Tagging";
        }
    }

    fn text(&mut self, path: &[String], text: String) -> S3Result<()> {
        match path.last().map(String::as_str) {
            Some("Key") => self.key = text,
            Some("Value") => self.value = text,
            Some("Tag") => self.all.push((take(&mut self.key), take(&mut self.value))),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_said_as_a_query_says_them() {
        let of = |tags: &str| header(format!("<Tagging xmlns=\"x\">\n<TagSet>{tags}</TagSet></Tagging>").as_bytes()).unwrap();
        let two = of("<Tag><Key>a b</Key><Value>c&amp;d=/\u{e9}</Value></Tag>\n<Tag><Value/><Key>e</Key></Tag>");
        assert_eq!(two.unwrap(), "a%20b=c%26d%3D%2F%C3%A9&e=");
        assert_eq!(of(""), None);
        assert_eq!(header(b"<Tagging>").unwrap_err().code, "InternalError");
        for object in [&b"PAR1"[..], b"", b"\xff<\x00>", b"a < b & c", b"<page><Tag><Key>k</Key><Value>v</Value></Tag></page>"] {
            assert_eq!(header(object).unwrap(), None, "{object:?} is the object itself");
        }
    }
}
