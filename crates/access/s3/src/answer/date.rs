//! The time, as answers have it.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use chrono::{DateTime, Utc};
use parking_lot::RwLock;

/// The time as HTTP writes it, made once a second.
pub(crate) struct Date(RwLock<(u64, Arc<str>)>);

impl Default for Date {
    fn default() -> Self {
        Self(RwLock::new((0, text(0))))
    }
}

impl Date {
    /// Appends the date of a second since the Unix epoch.
    pub(crate) fn write(&self, secs: u64, out: &mut Vec<u8>) {
        {
            let kept = self.0.read();
            if kept.0 == secs {
                return out.extend_from_slice(kept.1.as_bytes());
            }
        }
        let made = text(secs);
        out.extend_from_slice(made.as_bytes());
        *self.0.write() = (secs, made);
    }
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    DateTime::<Utc>::from(forebay_runtime::system_time()).timestamp_millis()
}

fn text(secs: u64) -> Arc<str> {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs)).into()
}
