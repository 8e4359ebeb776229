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

/// A version as an ETag: as the store gave it, or quoted where it has none of its own.
pub(crate) fn etag(tag: &VersionTag) -> String {
    let text = tag.as_str();
    if text.starts_with('m') { format!("\"{text}\"") } else { text.into() }
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

/// A text as a header of an answer.
pub(crate) fn header_value(text: &str) -> S3Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(|_| S3Error::invalid_argument("A header of the answer can't have this value."))
}
