use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use forebay_client::Client;
use forebay_metrics::Counter;
use forebay_types::{ErrorKind, Mount, MountName};
use futures::stream::BoxStream;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Semaphore;

use crate::auth::{BodyHash, Caller, Keys};
use crate::body::Room;
use crate::connection::Turn;
use crate::date::Date;
use crate::error::{S3Error, S3Result};
use crate::meters::Meters;
use crate::objects::Drafts;
use crate::settings::GatewaySettings;
use crate::target::Target;
use crate::temporary;
use crate::warm::Heads;

/// What all requests share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) keys: Keys,
    pub(crate) settings: GatewaySettings,
    /// Large pieces of answers that may be under way at once.
    pub(crate) large_pieces: Arc<Semaphore>,
    /// For what is held of uploads.
    pub(crate) room: Room,
    pub(crate) drafts: Drafts,
    pub(crate) meters: Meters,
    /// When the gateway began, in milliseconds since the Unix epoch.
    pub(crate) begun_ms: i64,
    /// The time of answers.
    pub(crate) date: Date,
    /// Headers of objects that were read.
    pub(crate) heads: Heads,
    next_id: AtomicU64,
}

impl Context {
    pub(crate) fn new(client: Client, settings: GatewaySettings) -> Arc<Self> {
        Arc::new(Self {
            client,
            keys: Keys::new(&settings.keys, settings.anonymous),
            room: Room::new(settings.upload_bytes_max),
            settings,
            large_pieces: Arc::new(Semaphore::new(crate::objects::LARGE_PIECES)),
            drafts: Drafts::default(),
            meters: Meters::new(),
            begun_ms: chrono::DateTime::<chrono::Utc>::from(forebay_runtime::system_time()).timestamp_millis(),
            date: Date::default(),
            heads: Heads::default(),
            next_id: AtomicU64::new(forebay_runtime::random()),
        })
    }

    pub(crate) fn request_id(&self) -> String {
        format!("{:016X}", self.next_id())
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// The mount of a bucket's name.
    pub(crate) async fn mount(&self, bucket: &str) -> S3Result<Arc<Mount>> {
        if bucket == temporary::BUCKET {
            // Without a worker there is nothing that could have temporary data.
            return match self.client.view().workers.is_empty() {
                true => Err(S3Error::no_such_bucket().with("BucketName", bucket)),
                false => Ok(Arc::new(temporary::mount())),
            };
        }
        let name: MountName = bucket.parse().map_err(|_| S3Error::no_such_bucket().with("BucketName", bucket))?;
        self.client.mount(&name).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => S3Error::no_such_bucket().with("BucketName", bucket),
            _ => error.into(),
        })
    }
}

/// A request whose caller is known.
pub(crate) struct Request {
    pub(crate) parts: Parts,
    pub(crate) target: Target,
    pub(crate) caller: Caller,
    pub(crate) hash: BodyHash,
}

impl Request {
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.target.query.get(name)
    }
}

/// The body of an answer: what is there at once, then what comes.
pub(crate) struct AnswerBody {
    first: Bytes,
    rest: Option<BoxStream<'static, Result<Bytes, forebay_types::Error>>>,
    /// Bytes still to come; none when nobody knows.
    left: Option<u64>,
    /// Counts what is sent of it.
    sent: Option<Arc<Counter>>,
    /// Ends with the body.
    turn: Option<Turn>,
}

pub(crate) type Answer = Response<AnswerBody>;

impl AnswerBody {
    pub(crate) fn empty() -> Self {
        Self::of(Bytes::new())
    }

    pub(crate) fn of(bytes: Bytes) -> Self {
        Self { left: Some(bytes.len() as u64), first: bytes, rest: None, sent: None, turn: None }
    }

    pub(crate) fn stream(
        first: Bytes,
        rest: BoxStream<'static, Result<Bytes, forebay_types::Error>>,
        bytes: Option<u64>,
    ) -> Self {
        Self { first, rest: Some(rest), left: bytes, sent: None, turn: None }
    }

    /// Counts what is sent of it, and keeps the connection's turn as long as there is more.
    pub(crate) fn sending(&mut self, sent: Arc<Counter>, turn: Turn) {
        self.sent = Some(sent);
        self.turn = Some(turn);
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = forebay_types::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = if self.first.is_empty() {
            let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
            match std::task::ready!(rest.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => {
                    tracing::warn!(%error, "answer broken off");
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            }
        } else {
            std::mem::take(&mut self.first)
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(piece.len() as u64);
        }
        if let Some(sent) = &self.sent {
            sent.add(piece.len() as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && (self.rest.is_none() || self.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

/// An answer without a body.
pub(crate) fn plain(status: StatusCode) -> Answer {
    let mut answer = Response::new(AnswerBody::empty());
    *answer.status_mut() = status;
    answer
}

/// An answer that is a document.
pub(crate) fn document(xml: Bytes) -> Answer {
    let mut answer = Response::new(AnswerBody::of(xml));
    answer.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/xml"));
    answer
}

/// What a service answers; failures are answers too.
pub(crate) type Served = Result<Answer, Infallible>;
