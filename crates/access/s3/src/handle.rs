//! One request from its head to its answer, on the way that all of them may take.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use forebay_trace::Span;
use forebay_transport::caught_future;
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
    // A request that fails by a defect is answered so, and nothing else of its connection knows of it.
    let answered = caught_future(answer(&context, request, &mut asked)).await.unwrap_or_else(|| {
        let who = asked.who();
        tracing::error!(who, %from, operation = asked.operation, path = uri.path(), id, "a request failed by a defect");
        Err(S3Error::internal())
    });
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
    #[cfg(test)]
    assert_ne!(parts.uri.path(), crate::context::FAILS_ON, "as a test wants it");
    let request = Request { parts, target, caller, hash };
    asked.changes = Reading::of(&request).is_none();
    let mut span = Span::of_request(&request.parts.headers, "s3");
    span.set("rpc.method", || asked.operation);
    span.around(route(context, request, body)).await
}

#[cfg(test)]
mod tests {
    use forebay_client::Security;
    use forebay_node::Node;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use crate::context::FAILS_ON;
    use crate::{Anonymous, Gateway, GatewaySettings};

    /// Asks on a connection that goes on; gives the head and the body of the answer.
    async fn ask(socket: &mut TcpStream, path: &str) -> (String, String) {
        socket.write_all(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut came = Vec::new();
        loop {
            assert!(socket.read_buf(&mut came).await.unwrap() > 0, "{path}: the connection ended");
            let text = String::from_utf8_lossy(&came).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() == length.unwrap_or(0usize) {
                return (head.to_string(), body.to_string());
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_that_fails_by_a_defect_is_answered_so_and_its_connection_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let node = Node::lead_in(folder.path(), Security::default()).await.unwrap();
        let client = node.client().await.unwrap();
        let settings = GatewaySettings { anonymous: Anonymous::Read, ..GatewaySettings::new("127.0.0.1:0") };
        let gateway = Gateway::start(client, settings).await.unwrap();
        let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
        for _ in 0..100 {
            let (head, body) = ask(&mut socket, FAILS_ON).await;
            assert!(head.starts_with("HTTP/1.1 500 ") && body.contains("<Code>InternalError</Code>"), "{head} {body}");
            let (head, body) = ask(&mut socket, "/").await;
            assert!(head.starts_with("HTTP/1.1 200 ") && body.contains("ListAllMyBucketsResult"), "{head} {body}");
        }
    }
}
