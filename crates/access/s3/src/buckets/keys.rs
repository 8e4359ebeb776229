use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What S3 leaves as it is when it shows keys encoded.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'*').remove(b'/');

/// A key as a listing shows it: as it is, or encoded as in a form, which XML can carry whatever the key.
pub(crate) fn show(text: &str, encoded: bool) -> String {
    if encoded { utf8_percent_encode(text, KEPT).to_string().replace("%20", "+") } else { text.into() }
}
