//! Objects: reads from the tiers, copies, and writes to what does not speak S3.

mod conditions;
mod copy;
mod drafts;
mod get;
mod local;
mod parts;
mod pieces;
pub(crate) mod range;

use std::time::{Duration, UNIX_EPOCH};

use forebay_types::{Mount, VersionTag};

pub(crate) use conditions::check;
pub(crate) use copy::copy;
pub(crate) use drafts::Drafts;
pub(crate) use get::{FIRST_BYTES, Head, get};
pub(crate) use local::{NULL_VERSION, delete, delete_local, delete_not_checked, put_local};
pub(crate) use pieces::LARGE_PIECES;

/// The last second of the year 9999.
const SECS_MAX: i64 = 253_402_300_799;

/// Whether a mount's store does not speak S3, so that S3's ways are made here.
pub(crate) fn is_local(mount: &Mount) -> bool {
    !mount.url.starts_with("s3://") && !mount.url.starts_with("s3a://")
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
