//! Which requests are plain enough, read from what came.

use std::str;

use httparse::{Header, Status};

pub(super) const HEADERS_MAX: usize = 32;

/// A GET or HEAD with no body, and no header that would be looked at elsewhere.
#[derive(Debug, Default)]
pub(super) struct PlainRequest<'a> {
    pub(super) is_head: bool,
    /// As they were sent.
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) host: &'a str,
    pub(super) range: Option<&'a str>,
    pub(super) checksums: Option<&'a str>,
    pub(super) authorization: Option<&'a str>,
    pub(super) date: Option<&'a str>,
    pub(super) hash: Option<&'a str>,
    /// Bytes of its head, which are all of it.
    pub(super) bytes: usize,
}

/// Reads a request that is there as a whole; none for one that is not, or not so plain.
pub(super) fn parse<'a>(bytes: &'a [u8], headers: &mut [Header<'a>; HEADERS_MAX]) -> Option<(PlainRequest<'a>, usize)> {
    // Most of what is not for here is seen by its first letter.
    if !matches!(bytes.first(), Some(b'G' | b'H')) {
        return None;
    }
    let mut request = httparse::Request::new(headers);
    let Ok(Status::Complete(length)) = request.parse(bytes) else { return None };
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return None,
    };
    if request.version != Some(1) {
        return None;
    }
    let (path, query) = request.path.map(|target| target.split_once('?').unwrap_or((target, "")))?;
    let mut plain = PlainRequest { is_head, path, query, bytes: length, ..PlainRequest::default() };
    let mut host = None;
    for header in request.headers.iter() {
        let mut lower = [0; 32];
        let name = lower.get_mut(..header.name.len())?;
        name.copy_from_slice(header.name.as_bytes());
        name.make_ascii_lowercase();
        let place = match &*name {
            b"host" => &mut host,
            b"range" => &mut plain.range,
            b"x-amz-checksum-mode" => &mut plain.checksums,
            b"authorization" => &mut plain.authorization,
            b"x-amz-date" => &mut plain.date,
            b"x-amz-content-sha256" => &mut plain.hash,
            b"connection" if header.value.eq_ignore_ascii_case(b"keep-alive") => continue,
            // Nobody looks at these.
            b"accept"
            | b"accept-encoding"
            | b"accept-language"
            | b"amz-sdk-invocation-id"
            | b"amz-sdk-request"
            | b"cache-control"
            | b"pragma"
            | b"referer"
            | b"user-agent"
            | b"x-amz-user-agent" => continue,
            _ => return None,
        };
        let is_text = header.value.iter().all(|byte| (b' '..=b'~').contains(byte));
        let text = str::from_utf8(header.value).ok().filter(|_| is_text)?;
        if place.replace(text).is_some() {
            return None;
        }
    }
    plain.host = host?;
    let count = request.headers.len();
    Some((plain, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(text: &str) -> bool {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        parse(text.as_bytes(), &mut headers).is_some()
    }

    #[test]
    fn only_what_has_nothing_to_it() {
        assert!(is_plain("GET /lake/a?x HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n"));
        assert!(is_plain("HEAD /lake/a HTTP/1.1\r\nhOST: h\r\nUser-Agent: x\r\nConnection: Keep-Alive\r\n\r\nGET"));
        for other in [
            "GET /lake/a HTTP/1.1\r\nHost: h\r\n",
            "GET /lake/a HTTP/1.0\r\nHost: h\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\r\nx-amz-server-side-encryption-customer-algorithm: AES256\r\n\r\n",
            "GET /lake/a HTTP/1.1\r\nHost: h\u{e9}\r\n\r\n",
            "PUT /lake/a HTTP/1.1\r\nHost: h\r\n\r\n",
            "",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
