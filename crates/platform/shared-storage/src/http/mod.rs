//! HTTP as this crate needs it: connections that count and hold back what they read, and one client over them.

mod abrupt;
mod connect;
mod payload;
mod tls;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_types::Result;
use futures::StreamExt;
use futures::stream::BoxStream;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::bandwidth::Limiter;
use crate::counters::Tally;
use crate::request::Class;
use abrupt::AbruptConnector;
use connect::{ConnectionState, Connector};

pub(crate) use connect::LinkLocal;
pub(crate) use payload::{BodyError, Payload};
pub(crate) use tls::config as tls_config;

/// Most bytes that a connection reads ahead of who takes them.
const BUFFER_BYTES: usize = 256 << 10;
/// Servers close idle connections after 20 s or more; going first saves a failed request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
/// Most idle connections kept, a class.
const IDLE_MAX: usize = 64;

type Pool = Client<AbruptConnector, Payload>;

/// Sends requests. Each class has connections of its own, so that a connection knows its place at the bound.
#[derive(Clone)]
pub(crate) struct HttpClient {
    demand: Pool,
    prefetch: Pool,
    background: Pool,
    timeout: Duration,
}

/// A request that got no answer, or an answer that broke.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Nothing moved for this long.
    Timeout(Duration),
    /// The connection was refused: nothing listens there.
    Refused,
    /// Anything else, in words.
    Broken(String),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(timeout) => write!(f, "nothing was received for {:.0?}", timeout),
            Self::Refused => f.write_str("connection refused"),
            Self::Broken(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for SendError {}

impl SendError {
    /// All causes in a row, since hyper's own words leave out what happened.
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            if error.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
                return Self::Refused;
            }
            let more = error.to_string();
            if !words.contains(&more) {
                words = format!("{words}: {more}");
            }
            cause = error.source();
        }
        Self::Broken(words)
    }
}

impl HttpClient {
    /// A client that gives up on a request when nothing moves for `timeout`. `https` reads the certificates to trust.
    pub(crate) fn new(
        limiter: &Arc<Limiter>,
        tally: &Arc<Tally>,
        timeout: Duration,
        https: bool,
        link_local: LinkLocal,
    ) -> Result<Self> {
        let tls = tls::config(https)?;
        let pool = |class| {
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(tls.clone())
                .https_or_http()
                .enable_http1()
                .wrap_connector(Connector::new(Arc::clone(limiter), Arc::clone(tally), class, link_local));
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_max_idle_per_host(IDLE_MAX)
                .http1_max_buf_size(BUFFER_BYTES)
                .build(AbruptConnector(connector))
        };
        Ok(Self { demand: pool(Class::Demand), prefetch: pool(Class::Prefetch), background: pool(Class::Background), timeout })
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, mut request: Request<Payload>, class: Class) -> Result<Response<Incoming>, SendError> {
        let captured = capture_connection(&mut request);
        let pool = match class {
            Class::Demand => &self.demand,
            Class::Prefetch => &self.prefetch,
            Class::Background => &self.background,
        };
        let answer = patiently(self.timeout, || state_of(&captured), pool.request(request)).await?;
        answer.map_err(|error| SendError::of(&error))
    }

    /// The bytes of an answer as they come.
    pub(crate) fn stream(&self, answer: Response<Incoming>) -> BoxStream<'static, Result<Bytes, SendError>> {
        let state = answer.extensions().get::<Arc<ConnectionState>>().cloned();
        let timeout = self.timeout;
        futures::stream::unfold(Some(answer.into_body()), move |body| {
            let state = state.clone();
            async move {
                let mut body = body?;
                loop {
                    let frame = match patiently(timeout, || state.clone(), body.frame()).await {
                        Ok(frame) => frame?.map_err(|error| SendError::of(&error)),
                        Err(timeout) => Err(timeout),
                    };
                    match frame.map(|frame| frame.into_data()) {
                        Ok(Ok(data)) => return Some((Ok(data), Some(body))),
                        Ok(Err(_trailers)) => {}
                        Err(error) => return Some((Err(error), None)),
                    }
                }
            }
        })
        .boxed()
    }

    /// All bytes of an answer; those after `bytes_max` are cut off.
    pub(crate) async fn collect(&self, answer: Response<Incoming>, bytes_max: usize) -> Result<Vec<u8>, SendError> {
        let mut stream = self.stream(answer);
        let mut all = Vec::new();
        while let Some(bytes) = stream.next().await {
            all.extend_from_slice(&bytes?);
            if all.len() >= bytes_max {
                all.truncate(bytes_max);
                break;
            }
        }
        Ok(all)
    }
}

fn state_of(captured: &CaptureConnection) -> Option<Arc<ConnectionState>> {
    let mut extras = http::Extensions::new();
    captured.connection_metadata().as_ref()?.get_extras(&mut extras);
    extras.remove()
}

/// Waits as long as something moves on the connection, or it is held back by the bound, which is nobody's fault.
async fn patiently<T>(
    timeout: Duration,
    state: impl Fn() -> Option<Arc<ConnectionState>>,
    future: impl Future<Output = T>,
) -> Result<T, SendError> {
    tokio::pin!(future);
    let mut moved = None;
    let mut moved_at = forebay_runtime::time::instant();
    loop {
        if let Ok(done) = forebay_runtime::time::timeout(timeout / 4, future.as_mut()).await {
            return Ok(done);
        }
        let state = state();
        let now_moved = state.as_ref().map(|state| state.moved_bytes());
        if now_moved != moved || state.is_some_and(|state| state.is_held_back()) {
            (moved, moved_at) = (now_moved, forebay_runtime::time::instant());
        } else if moved_at.elapsed() >= timeout {
            return Err(SendError::Timeout(timeout));
        }
    }
}
