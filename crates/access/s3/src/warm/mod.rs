//! The short way: a signed GET or HEAD of an object with nothing unusual about it, all of which is at hand in this process.
//!
//! It takes what it is sure of and leaves everything else, refusals among it, to the way of all requests; what it answers is
//! what would be answered there.

mod request;

use std::borrow::Cow;
use std::io::Write;
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use forebay_client::{AtHand, RangeSpec};
use http::StatusCode;
use percent_encoding::percent_decode_str;

use crate::answer::FIRST_BYTES;
use crate::auth::{Caller, Right, Sent, signer};
use crate::context::Context;
use crate::dialect::{bucket_in_host, key_of, parse_range, resolve_range};
use crate::mounts::TEMPORARY;
use request::{HEADERS_MAX, PlainRequest, parse};

/// An answer that is ready to be sent.
pub(crate) struct WarmAnswer {
    /// Bytes of what came that the request was.
    pub(crate) taken: usize,
    pub(crate) body: Bytes,
}

/// Answers the request at the beginning of `bytes`, whose head is written to `head`. None when it is not there as a whole, or
/// is not for here: nothing was begun then.
pub(crate) fn answer(context: &Context, bytes: &[u8], head: &mut Vec<u8>) -> Option<WarmAnswer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let (request, count) = parse(bytes, &mut headers)?;
    #[cfg(test)]
    assert_ne!(request.path, crate::context::FAILS_ON, "as a test wants it");
    let (begun, now) = (forebay_runtime::now(), forebay_runtime::system_time().duration_since(UNIX_EPOCH).ok()?);
    let sent = Sent {
        method: if request.is_head { "HEAD" } else { "GET" },
        path: request.path,
        query: request.query,
        headers: &headers[..count],
        authorization: request.authorization,
        date: request.date,
        hash: request.hash,
    };
    let caller = Caller::Key(signer(&context.keys, &sent, now.as_millis() as i64)?);
    read(context, &request, &caller, (begun, now), head)
}

/// Reads for who asked, once that is known.
fn read(
    context: &Context,
    request: &PlainRequest<'_>,
    caller: &Caller,
    (begun, now): (Instant, Duration),
    head: &mut Vec<u8>,
) -> Option<WarmAnswer> {
    let path = request.path.strip_prefix('/')?;
    let (bucket, key) = match bucket_in_host(request.host, &context.settings.domains) {
        Some(bucket) => (bucket, path),
        None => path.split_once('/')?,
    };
    let (bucket, key) = (decoded(bucket)?, decoded(key)?);
    if key.is_empty() || bucket == TEMPORARY || !caller.may(&bucket, Right::Read) {
        return None;
    }
    let mount = context.client.known_mount(&bucket)?;
    let checksums = request.checksums.is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    let wanted = parse_range(request.range).ok()?;
    let complete = checksums && wanted.is_none();
    let at_hand = AtHand {
        operation: context.client.operation(),
        mount: mount.id,
        key: key_of(&key).ok()?,
        range: (!request.is_head).then_some(wanted.unwrap_or(RangeSpec::From { start: 0 })),
        bytes_max: FIRST_BYTES,
        complete,
    };
    let handed = context.client.at_hand(&at_hand)?;
    let common = context.heads.of(&handed, complete)?;
    let size = handed.info.version.size;
    let part = wanted.map(|wanted| resolve_range(wanted, size)).transpose().ok()?;
    let whole = part.as_ref().map_or(size, |part| part.end - part.start);
    assert!(request.is_head || handed.bytes.len() as u64 == whole, "{} bytes answer for {whole}", handed.bytes.len());
    let (status, line) = match part {
        Some(_) => (StatusCode::PARTIAL_CONTENT, &b"HTTP/1.1 206 Partial Content\r\n"[..]),
        None => (StatusCode::OK, &b"HTTP/1.1 200 OK\r\n"[..]),
    };
    head.clear();
    head.extend_from_slice(line);
    head.extend_from_slice(&common);
    let written = match &part {
        Some(part) => {
            let (start, end) = (part.start, part.end);
            write!(head, "content-length: {}\r\ncontent-range: bytes {start}-{}/{size}\r\n", end - start, end - 1)
        }
        None => write!(head, "content-length: {size}\r\n"),
    };
    written.ok()?;
    write!(head, "x-amz-request-id: {:016X}\r\nserver: Forebay\r\ndate: ", context.next_id()).ok()?;
    context.date.write(now.as_secs(), head);
    head.extend_from_slice(b"\r\n\r\n");
    if !request.is_head {
        context.meters.read(true);
        context.meters.sent.add(handed.bytes.len() as u64);
    }
    let operation = if request.is_head { "head_object" } else { "get_object" };
    context.meters.answered(operation, status, begun.elapsed());
    Some(WarmAnswer { taken: request.bytes, body: handed.bytes })
}

fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('%') { percent_decode_str(text).decode_utf8().ok() } else { Some(text.into()) }
}
