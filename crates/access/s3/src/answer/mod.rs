//! What is answered: heads, bodies as they come, and what is kept so that the same ones are said shortly.

mod body;
mod date;
mod head;
mod heads;
mod pieces;
mod turns;

use std::convert::Infallible;

use bytes::Bytes;
use http::{Response, StatusCode};

pub(crate) use body::AnswerBody;
pub(crate) use date::{Date, now_ms};
pub(crate) use head::Head;
pub(crate) use heads::Heads;
pub(crate) use pieces::{FIRST_BYTES, LARGE_PIECES, rest};
pub(crate) use turns::{Turn, Turns};

pub(crate) type Answer = Response<AnswerBody>;

/// An answer without a body.
pub(crate) fn plain(status: StatusCode) -> Answer {
    let mut answer = Response::new(AnswerBody::empty());
    *answer.status_mut() = status;
    answer
}

pub(crate) fn document(xml: Bytes) -> Answer {
    let mut answer = Response::new(AnswerBody::of(xml));
    answer.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/xml"));
    answer
}

/// What a service answers; failures are answers too.
pub(crate) type Served = Result<Answer, Infallible>;
