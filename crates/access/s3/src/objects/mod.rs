//! Objects: reads from the tiers, copies, and writes to what does not speak S3.

mod copy;
mod local;
mod parts;
mod tags;
pub(crate) mod uploads;

use std::ops::Range;
use std::sync::Arc;

use forebay_client::{FirstRead, ObjectRead, RangeSpec};
use forebay_types::{Attributes, Error, ErrorKind, ObjectInfo, OperationId};
use http::header::RANGE;
use http::{Method, StatusCode};

use crate::answer::{Answer, AnswerBody, FIRST_BYTES, Head, rest};
use crate::auth::Caller;
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Times, check_conditions, may_be_known, parse_range, range_counts, resolve_range};
use crate::mounts::is_local;
use crate::request::Request;
use crate::rights::Object;
use crate::temporary;
use parts::part_range;

pub(crate) use copy::copy;
pub(crate) use local::{NULL_VERSION, attributes, delete, delete_local, delete_not_checked, no_tags, put_local};

/// Bytes that an object of which nothing is known is asked for at once: what is larger comes in several requests.
const UNKNOWN_BYTES: u64 = 16 << 20;
/// How often an object is looked at that is overwritten each time before the first of its bytes were read.
const LOOKS_MAX: usize = 8;

/// Answers GET and HEAD of an object, out of the tiers where it is there.
pub(crate) async fn get(context: &Arc<Context>, request: &Request, object: &Object) -> S3Result<Answer> {
    let is_head = request.parts.method == Method::HEAD;
    if matches!(request.caller, Caller::Anonymous(_)) && Head::is_set_by(&request.target.query) {
        return Err(S3Error::invalid_request("Request specific response headers cannot be used for anonymous GET requests."));
    }
    let checksums = request.header("x-amz-checksum-mode").is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    if object.mount().name.is_temporary() {
        return temporary::get(context, request, object).await;
    }
    if is_local(object.mount()) && local::is_folder(object) {
        return Err(S3Error::no_such_key());
    }
    if request.target.query.has("partNumber") {
        return part(context, request, object, is_head).await;
    }
    let wanted = match parse_range(request.header(RANGE.as_str())) {
        Ok(wanted) => wanted,
        // No object has it; whether there is one comes first.
        Err(error) => {
            let (info, _) = context.client.stat(&object.path(), false).await?;
            check_conditions(request.headers(), &info, Times::Known)?;
            return Err(error);
        }
    };
    if is_head || may_be_known(request.headers()) {
        return looked_at(context, request, object, (wanted, checksums)).await;
    }
    let operation = context.client.operation();
    let read = ObjectRead { range: first_range(wanted, checksums), first: FIRST_BYTES, complete: checksums && wanted.is_none() };
    let FirstRead { info, attributes, bytes, hit, .. } = first(context, request, object, operation, (wanted, read)).await?;
    context.meters.read(hit);
    check_conditions(request.headers(), &info, Times::Known)?;
    let range = wanted.map(|wanted| resolve_range(wanted, info.version.size)).transpose()?;
    let all = range.clone().unwrap_or(0..info.version.size);
    let sent = all.start + bytes.len() as u64;
    let body = match sent >= all.end {
        true => AnswerBody::of(bytes),
        false => {
            let (client, room) = (context.client.clone(), Arc::clone(&context.large_pieces));
            let rest = rest(client, room, operation, info.version.clone(), sent..all.end, !hit);
            AnswerBody::stream(bytes, rest, Some(all.end - all.start))
        }
    };
    Head { query: &request.target.query, info: &info, attributes: &attributes, range, checksums }.answer(body)
}

/// The first bytes of what is wanted of an object, with what it is.
async fn first(
    context: &Arc<Context>,
    request: &Request,
    object: &Object,
    operation: OperationId,
    (wanted, read): (Option<RangeSpec>, ObjectRead),
) -> S3Result<FirstRead> {
    let mut looks = 0;
    loop {
        looks += 1;
        let error = match context.client.read_object(operation, &object.path(), read).await {
            Ok(first) => return Ok(first),
            Err(error) => error,
        };
        let Some(wanted) = wanted.filter(|_| error.kind() == ErrorKind::Invalid) else { return Err(overwritten(error)) };
        // The object may end before the range.
        let (info, _) = context.client.stat(&object.path(), false).await?;
        check_conditions(request.headers(), &info, Times::Known)?;
        resolve_range(wanted, info.version.size)?;
        // Or it did so, and another one has taken its place that does not.
        if looks == LOOKS_MAX {
            return Err(error.into());
        }
    }
}

/// Answers after a look at the object, of the version that it was then.
async fn looked_at(
    context: &Arc<Context>,
    request: &Request,
    object: &Object,
    (wanted, checksums): (Option<RangeSpec>, bool),
) -> S3Result<Answer> {
    let mut looks = 0;
    loop {
        looks += 1;
        let (info, attributes) = context.client.stat(&object.path(), checksums && wanted.is_none()).await?;
        check_conditions(request.headers(), &info, Times::Known)?;
        let wanted = wanted.filter(|_| range_counts(request.headers(), &info, Times::Known));
        let range = wanted.map(|wanted| resolve_range(wanted, info.version.size)).transpose()?;
        let query = &request.target.query;
        let head = Head { query, info: &info, attributes: &attributes, range: range.clone(), checksums };
        if request.parts.method == Method::HEAD {
            return head.answer(AnswerBody::empty());
        }
        match read_version(context, &info, range.unwrap_or(0..info.version.size)).await {
            Err(error) if error.kind() == ErrorKind::Conflict && looks < LOOKS_MAX => {}
            body => return head.answer(body.map_err(overwritten)?),
        }
    }
}

/// What is said of an object that is overwritten again and again while it is read: none of the client's conditions failed.
fn overwritten(error: Error) -> S3Error {
    if error.kind() == ErrorKind::Conflict { S3Error::slow_down() } else { error.into() }
}

/// What the worker asks an object for that nothing is known of: as much as is wanted, but not without end.
fn first_range(wanted: Option<RangeSpec>, checksums: bool) -> RangeSpec {
    match wanted {
        None if checksums => RangeSpec::From { start: 0 },
        None => RangeSpec::Bounded { start: 0, len: UNKNOWN_BYTES },
        Some(RangeSpec::From { start }) => RangeSpec::Bounded { start, len: UNKNOWN_BYTES },
        Some(RangeSpec::Bounded { start, len }) => RangeSpec::Bounded { start, len: len.min(UNKNOWN_BYTES) },
        Some(suffix) => suffix,
    }
}

/// A part of an object that was made of parts: the store knows where it lies, the tiers have its bytes.
async fn part(context: &Arc<Context>, request: &Request, object: &Object, is_head: bool) -> S3Result<Answer> {
    if request.headers().contains_key(RANGE) {
        return Err(S3Error::invalid_request("Cannot specify both Range header and partNumber query parameter"));
    }
    let mut looks = 0;
    loop {
        looks += 1;
        let (info, attributes) = context.client.stat(&object.path(), false).await?;
        check_conditions(request.headers(), &info, Times::Known)?;
        match part_of(context, request, object, (&info, &attributes), is_head).await {
            // It is another one than it was at the look.
            Err(error) if error.status == StatusCode::PRECONDITION_FAILED && looks < LOOKS_MAX => {}
            Err(error) if error.status == StatusCode::PRECONDITION_FAILED => return Err(S3Error::slow_down()),
            answer => return answer,
        }
    }
}

/// The same of a version that is known. `PreconditionFailed` when it is not the current one any more.
async fn part_of(
    context: &Arc<Context>,
    request: &Request,
    object: &Object,
    (info, attributes): (&ObjectInfo, &Attributes),
    is_head: bool,
) -> S3Result<Answer> {
    let part = part_range(context, request, object, info).await?;
    let query = &request.target.query;
    let head = Head { query, info, attributes, range: part.range.clone(), checksums: false };
    let all = part.range.clone().unwrap_or(0..info.version.size);
    let body = match is_head || all.is_empty() {
        true => AnswerBody::empty(),
        false => read_version(context, info, all).await?,
    };
    let mut answer = head.answer(body)?;
    answer.headers_mut().extend(part.headers);
    Ok(answer)
}

/// Bytes of a version that is known, as they come.
async fn read_version(context: &Arc<Context>, info: &ObjectInfo, range: Range<u64>) -> Result<AnswerBody, Error> {
    let operation = context.client.operation();
    let first_end = range.end.min(range.start + u64::from(FIRST_BYTES));
    let first = context.client.read(operation, &info.version, range.start..first_end).await?;
    if first_end == range.end {
        return Ok(AnswerBody::of(first));
    }
    let room = Arc::clone(&context.large_pieces);
    let rest = rest(context.client.clone(), room, operation, info.version.clone(), first_end..range.end, true);
    Ok(AnswerBody::stream(first, rest, Some(range.end - range.start)))
}
