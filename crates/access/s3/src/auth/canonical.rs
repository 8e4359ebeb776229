use http::HeaderMap;
use http::header::HOST;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const UNRESERVED_OR_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// A request in the one form that its signature is made of.
pub(super) struct Canonical<'a> {
    pub(super) method: &'a str,
    /// As it was sent.
    pub(super) path: &'a str,
    /// As it was sent.
    pub(super) query: &'a str,
    pub(super) headers: &'a HeaderMap,
    /// Where HTTP/1.1's Host is not a header.
    pub(super) host: &'a str,
    pub(super) signed: &'a [String],
    pub(super) hash: &'a str,
}

impl Canonical<'_> {
    /// `as_sent`: the path as the client wrote it, for clients that encode more or less than S3 does.
    pub(super) fn bytes(&self, as_sent: bool) -> Vec<u8> {
        let path = match as_sent {
            true => self.path.to_string(),
            false => reencode(self.path, UNRESERVED_OR_SLASH),
        };
        let mut out = format!("{}\n{path}\n{}\n", self.method, self.query()).into_bytes();
        for name in self.signed {
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
            let mut values = self.headers.get_all(name).iter().peekable();
            if name == HOST.as_str() && values.peek().is_none() {
                out.extend_from_slice(self.host.as_bytes());
            }
            for (at, value) in values.enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                squeeze(value.as_bytes(), &mut out);
            }
            out.push(b'\n');
        }
        out.push(b'\n');
        out.extend_from_slice(self.signed.join(";").as_bytes());
        out.push(b'\n');
        out.extend_from_slice(self.hash.as_bytes());
        out
    }

    fn query(&self) -> String {
        if self.query.is_empty() {
            return String::new();
        }
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        let mut pairs: Vec<(String, String)> = pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let encode = |text: &str| reencode(&text.replace('+', "%20"), UNRESERVED);
                (encode(name), encode(value))
            })
            .filter(|(name, _)| name != "X-Amz-Signature")
            .collect();
        pairs.sort();
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }
}

fn reencode(text: &str, set: &'static AsciiSet) -> String {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => utf8_percent_encode(&decoded, set).to_string(),
        Err(_) => text.into(),
    }
}

/// Without spaces at the ends, and one where there are several.
fn squeeze(value: &[u8], out: &mut Vec<u8>) {
    let mut space = false;
    for &byte in value.trim_ascii() {
        if byte == b' ' {
            if !space {
                out.push(byte);
            }
            space = true;
        } else {
            out.push(byte);
            space = false;
        }
    }
}
