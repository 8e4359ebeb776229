//! What stands before S3 itself: each request is counted, delayed and maybe spoilt before it is served.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_runtime::time::sleep;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;
use s3s::service::S3Service;

use crate::bodies::{Link, Paced, Way};
use crate::counters::Kind;
use crate::faults::{Fault, Faults};

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) link: Arc<Link>,
    pub(crate) faults: Faults,
    pub(crate) latency: Mutex<Duration>,
}

/// Serves one request: counts it, delays it, lets a fault have it, or passes it on.
///
/// An error breaks the connection.
pub(crate) async fn serve(
    request: Request<Incoming>,
    service: S3Service,
    shared: Arc<Shared>,
) -> io::Result<Response<Paced<s3s::Body>>> {
    let kind = Kind::of(&request);
    shared.link.tally.request(kind);
    let latency = *shared.latency.lock();
    if !latency.is_zero() {
        sleep(latency).await;
    }
    let fault = shared.faults.next(kind);
    let mut answer = match fault {
        Some(Fault::Status(503)) => refusal(503, "SlowDown"),
        Some(Fault::Status(status)) => refusal(status, "InternalError"),
        Some(Fault::Refused(status, code)) => refusal(status, code),
        Some(Fault::Hang) => std::future::pending().await,
        _ => {
            let request = request.map(|body| s3s::Body::http_body(Paced::new(body, Arc::clone(&shared.link), Way::In, None)));
            service.call(request).await.map_err(io::Error::other)?
        }
    };
    if fault == Some(Fault::LoseAnswer) {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    if let (Some(Fault::Crc32c(sum)), StatusCode::OK) = (fault, answer.status()) {
        let told = HeaderValue::try_from(STANDARD.encode(sum.to_be_bytes())).map_err(io::Error::other)?;
        answer.headers_mut().insert("x-amz-checksum-crc32c", told);
    }
    if fault == Some(Fault::NoLength) {
        answer.headers_mut().remove(CONTENT_LENGTH);
    }
    let way = if kind == Kind::Get && answer.status().is_success() { Way::Out } else { Way::Other };
    let fault = fault.filter(|_| way == Way::Out);
    Ok(answer.map(|body| Paced::new(body, Arc::clone(&shared.link), way, fault)))
}

fn refusal(status: u16, code: &str) -> Response<s3s::Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code><Message>As told.</Message></Error>");
    let mut answer = Response::new(s3s::Body::from(text));
    *answer.status_mut() = status;
    answer
}
