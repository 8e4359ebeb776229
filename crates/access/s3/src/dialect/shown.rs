//! How keys, versions and times are written to clients.

use std::time::{Duration, UNIX_EPOCH};

use forebay_types::VersionTag;
use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::{S3Error, S3Result};

/// The last second of the year 9999.
const SECS_MAX: i64 = 253_402_300_799;
/// What S3 leaves as it is when it shows keys encoded.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*').remove(b'/');

/// A key as a listing shows it: as it is, or encoded as in a form, which XML can carry whatever the key.
pub(crate) fn show_key(text: &str, encoded: bool) -> String {
    if encoded { utf8_percent_encode(text, KEPT).to_string().replace("%20", "+") } else { text.into() }
}

/// A version as an ETag: as the store gave it. Where it has none of its own it is made of the same numbers, the last one first: some
/// clients (s3fs, and Dask by it) read what stands before the first `-` as a number in hexadecimal, and take that for the version.
pub(crate) fn etag(tag: &VersionTag) -> String {
    match tag.as_str().strip_prefix('m') {
        Some(numbers) if are_numbers(numbers) => format!("\"{}\"", turned(numbers)),
        _ => tag.as_str().into(),
    }
}

/// The version that is shown as an ETag; quotes may be left out.
pub(crate) fn version_shown(etag: &str) -> VersionTag {
    let bare = etag.trim_matches('"');
    VersionTag::etag(&if are_numbers(bare) { format!("m{}", turned(bare)) } else { format!("\"{bare}\"") })
}

/// Whether a text is what [`VersionTag`] makes of a file or a time, but for the letter before it.
fn are_numbers(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    matches!(text.split('-').count(), 3 | 4) && text.split('-').all(is_number)
}

fn turned(numbers: &str) -> String {
    numbers.rsplit('-').collect::<Vec<_>>().join("-")
}

/// A time as HTTP writes it, in whole seconds.
pub(crate) fn http_date(modified_ms: i64) -> String {
    // What the format has no year for is as old as it can say.
    let secs = modified_ms.div_euclid(1000).clamp(0, SECS_MAX);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs.unsigned_abs()))
}

/// A time as S3's documents write it.
pub(crate) fn iso_date(modified_ms: i64) -> String {
    let time = chrono::DateTime::from_timestamp_millis(modified_ms).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

pub(crate) fn header_value(text: &str) -> S3Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(|_| S3Error::invalid_argument("A header of the answer can't have this value."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_by_the_etag_that_it_is_shown_as() {
        let file = VersionTag::file(0x80cd2, 300_000, 1_700_000_000_123_456_789, 1_700_000_001_123_456_789);
        let tags = [file.clone(), VersionTag::file(1, 0, -1, 5), VersionTag::modified(7, 9), VersionTag::etag("\"0x8DC-1\"")];
        for tag in tags {
            let shown = etag(&tag);
            assert!(shown.starts_with('"') && shown.ends_with('"') && shown.len() > 2, "{shown}");
            assert_eq!(version_shown(&shown), tag);
            assert_eq!(version_shown(shown.trim_matches('"')), tag);
        }
        for other in ["\"d41d8cd98f00b204e9800998ecf8427e\"", "\"d41d8cd98f00b204e9800998ecf8427e-2\"", "\"1-2-g\"", "\"1--2\""] {
            assert_eq!(version_shown(other).as_str(), other);
        }
        assert_eq!(etag(&VersionTag::etag("mine-1-2")), "mine-1-2", "as the store gave it");
        // A number to clients that read one there, and another one as soon as the file is.
        let first = |tag: &VersionTag| u64::from_str_radix(etag(tag).trim_matches('"').split('-').next().unwrap(), 16).unwrap();
        assert_eq!(first(&file), 1_700_000_001_123_456_789);
    }
}
