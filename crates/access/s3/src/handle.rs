//! One request from its head to its answer, on the way that all of them may take.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, SERVER};
use http::{HeaderValue, Method};
use hyper::body::{Body, Incoming};

use crate::answer::{Answer, AnswerBody, Served, Turn, plain};
use crate::audit::Asked;
use crate::auth::authenticate;
use crate::context::Context;
use crate::dialect::{S3Error, S3Result, Target};
use crate::meters::operation;
use crate::request::{Reading, Request};
use crate::route::route;

/// Answers one request; a refusal is an answer too.
pub(crate) async fn handle(context: Arc<Context>, from: SocketAddr, request: http::Request<Incoming>, turn: Turn) -> Served {
    let (begun, id) = (forebay_runtime::now(), context.request_id());
    let is_head = request.method() == Method::HEAD;
    let has_body = !request.body().is_end_stream();
    let uri = request.uri().clone();
    let mut asked = Asked::default();
    let answered = answer(&context, request, &mut asked).await;
    asked.tell(from, uri.path(), answered.as_ref().err());
    let mut answer = match answered {
        Ok(answer) => answer,
        Err(error) => {
            let resource = uri.path();
            tracing::debug!(code = error.code, message = error.message, resource, id, "refused");
            let mut answer = refusal(&error, resource, &id, is_head);
            if has_body {
                // What is left of the body is not read: it might be all of a large object.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            answer
        }
    };
    let headers = answer.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.entry(HeaderName::from_static("x-amz-request-id")).or_insert(id);
    }
    headers.insert(SERVER, HeaderValue::from_static("Forebay"));
    answer.body_mut().sending(Arc::clone(&context.meters.sent), turn);
    context.meters.answered(asked.operation, answer.status(), begun.elapsed());
    Ok(answer)
}

fn refusal(error: &S3Error, resource: &str, id: &str, is_head: bool) -> Answer {
    let mut answer = plain(error.status);
    answer.headers_mut().extend(error.headers.clone());
    if error.has_body() && !is_head {
        *answer.body_mut() = AnswerBody::of(error.body(resource, id));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    }
    answer
}

async fn answer(context: &Arc<Context>, request: http::Request<Incoming>, asked: &mut Asked) -> S3Result<Answer> {
    let target = Target::of(&request, &context.settings.domains)?;
    asked.operation = operation(request.method(), &target, request.headers().contains_key("x-amz-copy-source"));
    let (parts, body) = request.into_parts();
    let now = DateTime::<Utc>::from(forebay_runtime::system_time());
    let (caller, hash) = authenticate(&context.keys, &parts, &target.query, now)?;
    asked.caller = Some(caller.clone());
    let request = Request { parts, target, caller, hash };
    asked.changes = Reading::of(&request).is_none();
    route(context, request, body).await
}
