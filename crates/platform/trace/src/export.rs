//! The way of spans to a collector: OTLP over HTTP, in JSON, some hundred at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{Error, Result};
use http::Uri;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::otlp;
use crate::record::Record;
use crate::recorder::Recorder;

/// How often spans are sent.
const EVERY: Duration = Duration::from_millis(500);
/// Spans of one request.
const SPANS_MAX: usize = 512;
/// How long a collector may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the last spans may take when the process ends.
const LAST: Duration = Duration::from_secs(2);
/// What a collector does not take is said so often at most.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Where a collector takes spans, below its address.
const PATH: &str = "v1/traces";

/// Where spans go, and which.
#[derive(Clone, Debug)]
pub struct Collector {
    /// `http://HOST:PORT`, or with `https`; `/v1/traces` is put behind it.
    pub endpoint: String,
    /// The part of the traces that begin in this process that is recorded, 0 to 1.
    pub share: f64,
    /// What this process is.
    pub roles: String,
}

impl Collector {
    /// `Invalid` for what is no address of a collector; whether there is one is not asked.
    pub fn check(endpoint: &str) -> Result<()> {
        address(endpoint).map(|_| ())
    }
}

/// Where a collector takes spans, and whether by TLS.
fn address(endpoint: &str) -> Result<(Uri, bool)> {
    let wrong = |why: &dyn std::fmt::Display| {
        Error::invalid(format!("this is no address of a collector ({why}): write it as http://HOST:4318"))
    };
    let uri = format!("{}/{PATH}", endpoint.trim_end_matches('/'));
    let uri: Uri = uri.parse().map_err(|error: http::uri::InvalidUri| wrong(&error))?;
    match uri.scheme_str() {
        Some("http") => Ok((uri, false)),
        Some("https") => Ok((uri, true)),
        _ => Err(wrong(&"neither http nor https")),
    }
}

/// Spans of this process are sent as long as this is there.
#[derive(Debug)]
pub struct Exporting {
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

impl Exporting {
    /// From now on spans are recorded and sent; must be called within tokio. `Invalid` for what is no address. None, and nothing is done,
    /// in a process that does so already.
    pub fn start(collector: Collector) -> Result<Option<Self>> {
        let door = Door::open(&collector)?;
        let Some(records) = Recorder::begin(collector.share) else { return Ok(None) };
        let (stop, stopped) = oneshot::channel();
        Ok(Some(Self { stop, task: AbortOnDropHandle::new(forebay_runtime::spawn(run(records, door, stopped))) }))
    }

    /// Sends what is left, for at most two seconds.
    pub async fn finish(self) {
        let Self { stop, task } = self;
        // It has ended already when nobody listens.
        let _ = stop.send(());
        let _ = timeout(LAST, task).await;
    }
}

async fn run(mut records: mpsc::Receiver<Record>, door: Door, mut stopped: oneshot::Receiver<()>) {
    let mut told = None;
    loop {
        let is_last = tokio::select! {
            _ = &mut stopped => true,
            () = sleep(EVERY) => false,
        };
        while let Some(failed) = send_some(&mut records, &door).await {
            if told.is_none_or(|told: std::time::Instant| told.elapsed() >= TELL_EVERY) {
                told = Some(forebay_runtime::now());
                let lost = Recorder::get().map_or(0, Recorder::take_lost);
                let collector = door.uri.host().unwrap_or_default();
                tracing::warn!(
                    collector,
                    lost,
                    error = failed,
                    "spans are lost: the collector of otlp-endpoint does not take them"
                );
            }
        }
        if is_last {
            return;
        }
    }
}

/// Sends all spans that wait, or those up to the first request that fails: then it says why.
async fn send_some(records: &mut mpsc::Receiver<Record>, door: &Door) -> Option<String> {
    loop {
        let batch: Vec<Record> = std::iter::from_fn(|| records.try_recv().ok()).take(SPANS_MAX).collect();
        if batch.is_empty() {
            return None;
        }
        if let Err(error) = door.send(&batch).await {
            if let Some(recorder) = Recorder::get() {
                recorder.note_lost(batch.len() as u64);
            }
            return Some(error);
        }
    }
}

/// A collector.
struct Door {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    roles: String,
    /// Tells this process from others.
    instance: String,
}

impl Door {
    fn open(collector: &Collector) -> Result<Self> {
        let (uri, is_https) = address(&collector.endpoint)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls(is_https)?).https_or_http().enable_http1().wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let instance = format!("{:016x}", forebay_runtime::random::<u64>());
        Ok(Self { client, uri, roles: collector.roles.clone(), instance })
    }

    /// Hands spans over; what is wrong when they are not taken.
    async fn send(&self, records: &[Record]) -> Result<(), String> {
        let body = otlp::body(&self.roles, &self.instance, records);
        let request = http::Request::post(self.uri.clone()).header(CONTENT_TYPE, "application/json").body(Full::new(body.into()));
        let request = request.map_err(|error| error.to_string())?;
        let answer = timeout(ANSWER, self.client.request(request)).await;
        let answer = answer.map_err(|_| format!("no answer within {} s", ANSWER.as_secs()))?;
        let status = answer.map_err(|error| error.to_string())?.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
    }
}

/// Whom to trust. Without `https` nobody: no certificate is read then.
fn tls(https: bool) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal("TLS can't be set up").with_source(error))?;
    if !https {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let builder = builder
        .with_native_roots()
        .map_err(|error| Error::invalid(format!("the system has no certificates to trust ({error}): install them")))?;
    Ok(builder.with_no_client_auth())
}
