//! What must be true of an object for a request about it to be served.

use chrono::DateTime;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use forebay_types::ObjectInfo;

use super::error::{S3Error, S3Result};
use super::shown::{etag, http_date};

/// Whether a read depends on what the object is not: then it is looked at before bytes of it are asked for.
pub(crate) fn may_be_known(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE)
}

/// Checks a read's conditions in the order of RFC 9110, 13.2.2.
pub(crate) fn check_conditions(headers: &HeaderMap, info: &ObjectInfo) -> S3Result<()> {
    let tag = etag(&info.version.tag);
    check_named(headers, &tag, info, [IF_MATCH, IF_UNMODIFIED_SINCE, IF_NONE_MATCH, IF_MODIFIED_SINCE]).map_err(|failed| {
        match failed {
            Failed::Precondition(name) => S3Error::precondition_failed().with("Condition", name),
            Failed::NotModified => {
                let mut error = S3Error::not_modified();
                if let Ok(tag) = HeaderValue::from_str(&tag) {
                    error = error.with_header(ETAG, tag);
                }
                match HeaderValue::from_str(&http_date(info.modified_ms)) {
                    Ok(date) => error.with_header(LAST_MODIFIED, date),
                    Err(_) => error,
                }
            }
        }
    })
}

/// The same for the source of a copy, where all failures are preconditions.
pub(crate) fn check_source(headers: &HeaderMap, info: &ObjectInfo) -> S3Result<()> {
    let name = HeaderName::from_static;
    let names = [
        name("x-amz-copy-source-if-match"),
        name("x-amz-copy-source-if-unmodified-since"),
        name("x-amz-copy-source-if-none-match"),
        name("x-amz-copy-source-if-modified-since"),
    ];
    let failed = check_named(headers, &etag(&info.version.tag), info, names);
    failed.map_err(|_| S3Error::precondition_failed())
}

enum Failed {
    Precondition(&'static str),
    NotModified,
}

fn check_named(headers: &HeaderMap, tag: &str, info: &ObjectInfo, names: [HeaderName; 4]) -> Result<(), Failed> {
    let [if_match, if_unmodified, if_none_match, if_modified] = names;
    let modified = info.modified_ms.div_euclid(1000);
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let seconds = |name: &HeaderName| text(name).and_then(|date| Some(DateTime::parse_from_rfc2822(date).ok()?.timestamp()));
    match text(&if_match) {
        Some(wanted) if !names_tag(wanted, tag, false) => return Err(Failed::Precondition("If-Match")),
        Some(_) => {}
        None if seconds(&if_unmodified).is_some_and(|at| modified > at) => {
            return Err(Failed::Precondition("If-Unmodified-Since"));
        }
        None => {}
    }
    match text(&if_none_match) {
        Some(known) if names_tag(known, tag, true) => Err(Failed::NotModified),
        Some(_) => Ok(()),
        None if seconds(&if_modified).is_some_and(|at| modified <= at) => Err(Failed::NotModified),
        None => Ok(()),
    }
}

/// Whether a list of tags names this one. Quotes may be left out, as S3 lets them be.
fn names_tag(list: &str, tag: &str, weakly: bool) -> bool {
    let bare = tag.trim_matches('"');
    list.split(',').map(str::trim).any(|given| {
        let strong = given.strip_prefix("W/");
        given == "*" || strong.map_or(given, |rest| if weakly { rest } else { "" }).trim_matches('"') == bare
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_types::{Key, MountId, ObjectVersion};

    fn code(pairs: &[(HeaderName, &str)]) -> Option<u16> {
        let version = ObjectVersion {
            mount: MountId(1),
            key: Key::new("k").unwrap(),
            tag: forebay_types::VersionTag::etag("\"a\""),
            size: 1,
        };
        let info = ObjectInfo { version, modified_ms: 1_700_000_000_500 };
        let headers = pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect();
        check_conditions(&headers, &info).err().map(|error| error.status.as_u16())
    }

    #[test]
    fn in_their_order() {
        let (at, before) = ("Tue, 14 Nov 2023 22:13:20 GMT", "Tue, 14 Nov 2023 22:13:19 GMT");
        assert_eq!(code(&[(IF_MATCH, "\"a\"")]), None);
        assert_eq!(code(&[(IF_MATCH, "a")]), None);
        assert_eq!(code(&[(IF_MATCH, "\"b\", \"c\"")]), Some(412));
        assert_eq!(code(&[(IF_MATCH, "W/\"a\"")]), Some(412));
        assert_eq!(code(&[(IF_MATCH, "\"a\""), (IF_UNMODIFIED_SINCE, before)]), None, "the tag goes before the time");
        assert_eq!(code(&[(IF_UNMODIFIED_SINCE, before)]), Some(412));
        assert_eq!(code(&[(IF_UNMODIFIED_SINCE, at)]), None);
        assert_eq!(code(&[(IF_NONE_MATCH, "\"a\"")]), Some(304));
        assert_eq!(code(&[(IF_NONE_MATCH, "*")]), Some(304));
        assert_eq!(code(&[(IF_NONE_MATCH, "W/\"a\"")]), Some(304));
        assert_eq!(code(&[(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, at)]), None, "the tag goes before the time");
        assert_eq!(code(&[(IF_MODIFIED_SINCE, at)]), Some(304));
        assert_eq!(code(&[(IF_MODIFIED_SINCE, before)]), None);
        assert_eq!(code(&[(IF_MODIFIED_SINCE, "yesterday")]), None, "what is no date is no condition");
    }
}
