//! The one form of a request that its signature is made of.

use std::borrow::Cow;

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
        let path = if as_sent { self.path.into() } else { reencode(self.path, true) };
        let mut out = Vec::with_capacity(512);
        for part in [self.method, &path] {
            out.extend_from_slice(part.as_bytes());
            out.push(b'\n');
        }
        self.query(&mut out);
        out.push(b'\n');
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

    fn query(&self, out: &mut Vec<u8>) {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (encoded(name), encoded(value))
            })
            .filter(|(name, _)| name != "X-Amz-Signature")
            .collect();
        pairs.sort();
        for (at, (name, value)) in pairs.iter().enumerate() {
            if at > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
        }
    }
}

/// A name or value of the query as S3 encodes it.
fn encoded(text: &str) -> Cow<'_, str> {
    if text.contains('+') { reencode(&text.replace('+', "%20"), false).into_owned().into() } else { reencode(text, false) }
}

/// As S3 encodes it; `slash`: it is a path, whose slashes stay.
fn reencode(text: &str, slash: bool) -> Cow<'_, str> {
    if is_encoded(text, slash) {
        return text.into();
    }
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => utf8_percent_encode(&decoded, if slash { UNRESERVED_OR_SLASH } else { UNRESERVED }).to_string().into(),
        Err(_) => text.into(),
    }
}

/// Whether a text is in that form already, as nearly all clients send it: encoding it again would change nothing.
pub(super) fn is_encoded(text: &str, slash: bool) -> bool {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') || (slash && byte == b'/');
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let fine = match byte {
            b'%' => match (bytes.next().and_then(digit), bytes.next().and_then(digit)) {
                (Some(high), Some(low)) => !stays(high << 4 | low),
                _ => false,
            },
            byte => stays(byte),
        };
        if !fine {
            return false;
        }
    }
    true
}

/// Without spaces at the ends, and one where there are several.
pub(super) fn squeeze(value: &[u8], out: &mut Vec<u8>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_already_stays() {
        let letters = ["a", "%", "2", "F", "f", "/", "~", "é", " ", "%2F", "%C3%A9", "%41"];
        for slash in [true, false] {
            let set = if slash { UNRESERVED_OR_SLASH } else { UNRESERVED };
            for n in 0..letters.len().pow(4) {
                let text: String = (0..4).map(|at| letters[n / letters.len().pow(at) % letters.len()]).collect();
                let slow = percent_decode_str(&text).decode_utf8().map(|decoded| utf8_percent_encode(&decoded, set).to_string());
                assert_eq!(reencode(&text, slash), slow.unwrap_or(text.clone()), "{text}");
            }
        }
        assert!(is_encoded("AKID%2F20130524%2Fus-east-1", false) && is_encoded("a/b%20c", true) && !is_encoded("a/b", false));
    }
}
