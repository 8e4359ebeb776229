//! What must be true of an object for a request about it to be served.

use chrono::DateTime;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use forebay_types::ObjectInfo;

use super::error::{S3Error, S3Result};
use super::shown::{etag, http_date};

/// Whether an object's time says when it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Conditions on it hold or don't.
    Known,
    /// It has none: conditions on it are none (RFC 9110, 13.1.3 and 13.1.4).
    None,
}

/// Whether a read depends on what the object is not, or what is read of it on what it is: then it is looked at before bytes of it
/// are asked for.
pub(crate) fn may_be_known(headers: &HeaderMap) -> bool {
    [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE].iter().any(|name| headers.contains_key(name))
}

/// Whether a range is read, as `If-Range` has it: only of the version that it names. Who goes on with what he has of another one
/// gets all of this one (RFC 9110, 13.1.5).
pub(crate) fn range_counts(headers: &HeaderMap, info: &ObjectInfo, times: Times) -> bool {
    let Some(named) = headers.get(IF_RANGE) else { return true };
    let Ok(named) = named.to_str() else { return false };
    let bare = named.trim().trim_matches('"');
    bare == etag(&info.version.tag).trim_matches('"') || (times == Times::Known && bare == http_date(info.modified_ms))
}

/// Checks a read's conditions in the order of RFC 9110, 13.2.2.
pub(crate) fn check_conditions(headers: &HeaderMap, info: &ObjectInfo, times: Times) -> S3Result<()> {
    let tag = etag(&info.version.tag);
    let names = [IF_MATCH, IF_UNMODIFIED_SINCE, IF_NONE_MATCH, IF_MODIFIED_SINCE];
    check_named(headers, &tag, info, times, names).map_err(|failed| match failed {
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
    })
}

/// The same for the source of a copy, where all failures are preconditions.
pub(crate) fn check_source(headers: &HeaderMap, info: &ObjectInfo, times: Times) -> S3Result<()> {
    let name = HeaderName::from_static;
    let names = [
        name("x-amz-copy-source-if-match"),
        name("x-amz-copy-source-if-unmodified-since"),
        name("x-amz-copy-source-if-none-match"),
        name("x-amz-copy-source-if-modified-since"),
    ];
    let failed = check_named(headers, &etag(&info.version.tag), info, times, names);
    failed.map_err(|_| S3Error::precondition_failed())
}

enum Failed {
    Precondition(&'static str),
    NotModified,
}

fn check_named(headers: &HeaderMap, tag: &str, info: &ObjectInfo, times: Times, names: [HeaderName; 4]) -> Result<(), Failed> {
    let [if_match, if_unmodified, if_none_match, if_modified] = names;
    let modified = info.modified_ms.div_euclid(1000);
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let dated = |name: &HeaderName| text(name).filter(|_| times == Times::Known);
    let seconds = |name: &HeaderName| dated(name).and_then(|date| Some(DateTime::parse_from_rfc2822(date).ok()?.timestamp()));
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

    fn object() -> ObjectInfo {
        let version = ObjectVersion {
            mount: MountId(1),
            key: Key::new("k").unwrap(),
            tag: forebay_types::VersionTag::etag("\"a\""),
            size: 1,
        };
        ObjectInfo { version, modified_ms: 1_700_000_000_500 }
    }

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn code_of(pairs: &[(HeaderName, &str)], times: Times) -> Option<u16> {
        check_conditions(&headers(pairs), &object(), times).err().map(|error| error.status.as_u16())
    }

    fn code(pairs: &[(HeaderName, &str)]) -> Option<u16> {
        code_of(pairs, Times::Known)
    }

    #[test]
    fn a_range_is_of_the_version_that_it_was_asked_of() {
        let counts = |named: &str, times| range_counts(&headers(&[(IF_RANGE, named)]), &object(), times);
        assert!(range_counts(&HeaderMap::new(), &object(), Times::Known));
        for it in ["\"a\"", "a", "Tue, 14 Nov 2023 22:13:20 GMT"] {
            assert!(counts(it, Times::Known), "{it}");
        }
        for other in ["\"b\"", "W/\"a\"", "*", "", "Tue, 14 Nov 2023 22:13:19 GMT", "Tue, 14 Nov 2023 22:13:21 GMT"] {
            assert!(!counts(other, Times::Known), "{other}");
        }
        assert!(counts("\"a\"", Times::None) && !counts("Tue, 14 Nov 2023 22:13:20 GMT", Times::None));
        assert!(may_be_known(&headers(&[(IF_RANGE, "\"a\"")])));
    }

    #[test]
    fn what_has_no_times_is_asked_for_none() {
        let at = "Tue, 14 Nov 2023 22:13:20 GMT";
        assert_eq!(code_of(&[(IF_MODIFIED_SINCE, at)], Times::None), None);
        assert_eq!(code_of(&[(IF_UNMODIFIED_SINCE, "Thu, 01 Jan 1970 00:00:00 GMT")], Times::None), None);
        assert_eq!(code_of(&[(IF_NONE_MATCH, "\"a\""), (IF_MODIFIED_SINCE, at)], Times::None), Some(304));
        let since = (HeaderName::from_static("x-amz-copy-source-if-modified-since"), at);
        assert!(check_source(&headers(std::slice::from_ref(&since)), &object(), Times::Known).is_err());
        assert!(check_source(&headers(&[since]), &object(), Times::None).is_ok());
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
