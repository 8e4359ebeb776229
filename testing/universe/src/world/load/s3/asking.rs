//! S3 as programs speak it: each request is signed by an access key and sent once, its body in pieces as it is made.

use std::time::Duration;

use bytes::Bytes;
use forebay_oracle::history::Failure;
use forebay_oracle::load::{answered, cut, objects};
use forebay_runtime::time::sleep;
use forebay_shared_storage::{AccessKey, Forward, PayloadHash, Storage, StorageSettings};
use forebay_types::{Error, Key, Mount, MountId, MountOptions, Result};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::world::gateway::{ADDRESS, Asked, Credentials, Unfinished};

/// Bytes that a program makes at once.
const PIECE_BYTES: usize = 16 << 10;

/// A bucket of the gateway, by an access key.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) name: &'static str,
    storage: Storage,
}

/// A request.
pub(super) struct Ask {
    method: Method,
    key: Option<String>,
    query: Vec<(String, String)>,
    headers: HeaderMap,
    body: Option<Bytes>,
    /// Before each piece of the body.
    pause: Duration,
}

/// An answer: a success, or that what is there is what is known.
pub(super) struct Said {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Bucket {
    pub(super) fn open(name: &'static str, (id, secret): Credentials) -> Self {
        let options = MountOptions { endpoint: Some(format!("http://{ADDRESS}")), ..MountOptions::default() };
        let mount = Mount { id: MountId(1), name: "by-gateway".parse().expect("a name"), url: format!("s3://{name}"), options };
        let access_key = Some(AccessKey { id: id.to_owned(), secret: secret.to_owned() });
        let storage = Storage::open(&mount, StorageSettings { access_key, ..StorageSettings::default() });
        Self { name, storage: storage.expect("an access key is all that it wants") }
    }

    /// What is answered in time, all of it.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Said, Failure> {
        let asked = async {
            let (parts, body) = self.storage.forward(ask.forward()?).await?.into_parts();
            let pieces: Vec<Bytes> = body.try_collect().await?;
            Ok::<_, Error>(Said { status: parts.status, headers: parts.headers, body: pieces.concat().into() })
        };
        let said = answered(asked).await?;
        let is_answer = said.status.is_success() || said.status == StatusCode::NOT_MODIFIED;
        if is_answer { Ok(said) } else { Err(said.refusal()) }
    }

    /// Writes an object in parts, of which there is one; its ETag.
    pub(super) async fn upload(&self, asked: &Asked, key: &str, body: Bytes) -> Result<String, Failure> {
        asked.note_begins();
        let begun = self.ask(Ask::new(Method::POST, key).query("uploads", "")).await?;
        let id = begun.field("UploadId")?;
        asked.note_unfinished(Unfinished { bucket: self.name, key: key.to_owned(), id: id.clone() });
        let part = Ask::new(Method::PUT, key).query("partNumber", "1").query("uploadId", &id).body(body);
        let tag = self.ask(part).await?.etag();
        let document = format!(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part><PartNumber>1</PartNumber>\
             <ETag>\"{tag}\"</ETag></Part></CompleteMultipartUpload>"
        );
        let complete = Ask::new(Method::POST, key).query("uploadId", &id).body(document.into());
        Ok(objects::tag(&self.ask(complete).await?.field("ETag")?))
    }
}

impl Ask {
    pub(super) fn of_bucket(method: Method) -> Self {
        let (query, headers) = (Vec::new(), HeaderMap::new());
        Self { method, key: None, query, headers, body: None, pause: Duration::ZERO }
    }

    pub(super) fn new(method: Method, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..Self::of_bucket(method) }
    }

    pub(super) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, HeaderValue::from_str(value).expect("what a header may say"));
        self
    }

    pub(super) fn body(mut self, body: Bytes) -> Self {
        self.body = Some(body);
        self
    }

    /// With a pause before each piece of its body.
    pub(super) fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    fn forward(self) -> Result<Forward> {
        let Self { method, key, query, headers, body, pause } = self;
        let hash = if body.is_some() { PayloadHash::Unsigned } else { PayloadHash::Empty };
        let body = body.map(|body| (pieces(body.clone(), pause), body.len() as u64));
        Ok(Forward { method, key: key.map(Key::new).transpose()?, query, headers, hash, body })
    }
}

impl Said {
    /// The ETag, without its quotes; nothing where none was told.
    pub(super) fn etag(&self) -> String {
        let told = self.headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok());
        objects::tag(told.unwrap_or_default())
    }

    /// What a document says first under a name. Not all that begins as a success is one.
    pub(super) fn field(&self, name: &str) -> Result<String, Failure> {
        self.fields(name)
            .into_iter()
            .next()
            .ok_or_else(|| Failure { kind: format!("{} without {name}", self.status.as_str()), ..self.refusal() })
    }

    /// All that a document says under a name.
    pub(super) fn fields(&self, name: &str) -> Vec<String> {
        let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
        let text = String::from_utf8_lossy(&self.body);
        let fields = text.split(&begin).skip(1).filter_map(|rest| rest.split_once(&end));
        fields.map(|(field, _)| field.replace("&quot;", "\"").replace("&#34;", "\"")).collect()
    }

    fn refusal(&self) -> Failure {
        let is_missing = self.status == StatusCode::NOT_FOUND && self.fields("Code").iter().any(|code| code == "NoSuchKey");
        let kind = match self.status {
            _ if is_missing => "not found",
            StatusCode::PRECONDITION_FAILED => "conflict",
            StatusCode::INSUFFICIENT_STORAGE => "nospace",
            _ => self.status.as_str(),
        };
        let no_effect = matches!(self.status, StatusCode::PRECONDITION_FAILED | StatusCode::FORBIDDEN);
        Failure { kind: kind.to_owned(), message: cut(&String::from_utf8_lossy(&self.body)), no_effect }
    }
}

/// A body as its program makes it.
fn pieces(body: Bytes, pause: Duration) -> BoxStream<'static, Result<Bytes, Box<dyn std::error::Error + Send + Sync>>> {
    let starts = (0..body.len()).step_by(PIECE_BYTES);
    futures::stream::iter(starts)
        .then(move |start| {
            let piece = body.slice(start..body.len().min(start + PIECE_BYTES));
            async move {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                Ok(piece)
            }
        })
        .boxed()
}
