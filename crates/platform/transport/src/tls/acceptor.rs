//! The listening side of TLS: certificates that are replaced while the process runs, and clients that show theirs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

use forebay_runtime::time::timeout;
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{certificates, private_key, provider, roots, unreadable, wanted};
use crate::TlsSettings;

/// How often connections look whether the files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Whoever is refused has so long to hear why, and is read so far.
const FAREWELL: Duration = Duration::from_secs(1);
const UNREAD_BYTES_MAX: u64 = 64 << 10;

/// What is spoken behind TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// Frames, or another protocol between processes of a cluster.
    Ours,
    /// HTTP/2 alone, as gRPC does.
    Http2,
    /// HTTP/1.1, by clients that may know TLS 1.2 only.
    Http1,
    /// The same, where some of it is for clients that have no certificate: who shows none is let in, and is known by that
    /// ([`crate::Introduced::has_shown_certificate`]).
    Http1Probed,
}

impl Spoken {
    fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Ours | Self::Http2 => vec![&TLS13],
            Self::Http1 | Self::Http1Probed => vec![&TLS12, &TLS13],
        }
    }

    /// What clients may ask for (ALPN).
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Ours => Vec::new(),
            Self::Http2 => vec![b"h2".to_vec()],
            Self::Http1 | Self::Http1Probed => vec![b"http/1.1".to_vec()],
        }
    }
}

/// Begins TLS on connections that came in, with the certificate that its files hold now: one that was replaced is shown from the
/// next second on. Files that can't be used are said in the log, and the ones before them go on.
#[derive(Clone)]
pub struct Acceptor(Arc<Kept>);

struct Kept {
    tls: TlsSettings,
    spoken: Spoken,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    files: Vec<Stamp>,
    looked: Instant,
}

/// What changes when a file is written or replaced: its time of change, length and number.
type Stamp = Option<(SystemTime, u64, u64)>;

impl Acceptor {
    /// Reads the files. `Invalid`, with the file, where they can't be used.
    pub fn new(tls: &TlsSettings, spoken: Spoken) -> Result<Self> {
        // Looked at first: what is written meanwhile is read again.
        let files = stamps(tls);
        let config = configured(tls, spoken)?;
        let loaded = Mutex::new(Loaded { config, files, looked: forebay_runtime::now() });
        Ok(Self(Arc::new(Kept { tls: tls.clone(), spoken, loaded })))
    }

    /// Begins TLS on a connection.
    pub async fn accept<IO: AsyncRead + AsyncWrite + Unpin>(&self, stream: IO) -> io::Result<TlsStream<IO>> {
        match TlsAcceptor::from(self.0.current()).accept(stream).into_fallible().await {
            Ok(stream) => Ok(stream),
            Err((error, mut stream)) => {
                // What was wrong is on its way: a socket that is closed with bytes unread would take it back.
                let said = async {
                    stream.shutdown().await?;
                    tokio::io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut tokio::io::sink()).await
                };
                let _ = timeout(FAREWELL, said).await;
                Err(error)
            }
        }
    }
}

impl Kept {
    fn current(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock();
        if loaded.looked.elapsed() >= LOOK_EVERY {
            loaded.looked = forebay_runtime::now();
            let files = stamps(&self.tls);
            if files != loaded.files {
                loaded.files = files;
                match configured(&self.tls, self.spoken) {
                    Ok(config) => {
                        tracing::info!("TLS files have changed: new connections get the new certificate");
                        loaded.config = config;
                    }
                    Err(error) => tracing::warn!(%error, "TLS files have changed, and can't be used: the ones before them go on"),
                }
            }
        }
        Arc::clone(&loaded.config)
    }
}

fn stamps(tls: &TlsSettings) -> Vec<Stamp> {
    [&tls.cert, &tls.key, &tls.client_ca].into_iter().flatten().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn configured(tls: &TlsSettings, spoken: Spoken) -> Result<Arc<ServerConfig>> {
    let cert = wanted(&tls.cert, "certificate", "to listen")?;
    let key = wanted(&tls.key, "private key", "to listen")?;
    let chain = certificates(cert, "certificate")?;
    let private = private_key(key)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&spoken.versions())
        .map_err(|error| Error::internal(format!("TLS can't be set up: {error}")))?;
    let builder = match &tls.client_ca {
        Some(ca) => builder.with_client_cert_verifier(known_clients(ca, spoken)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, private).map_err(|error| {
        Error::invalid(format!(
            "TLS certificate {} and private key {} can't be used together: {error}",
            cert.display(),
            key.display()
        ))
    })?;
    config.alpn_protocols = spoken.names();
    if tls.client_ca.is_some() {
        // A session that goes on would not show its certificate again, which may be nobody's any more.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}

fn known_clients(ca: &Path, spoken: Spoken) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca, "CA certificate of clients")?), provider());
    let verifier = if spoken == Spoken::Http1Probed { verifier.allow_unauthenticated() } else { verifier };
    verifier.build().map_err(|error| unreadable(ca, "CA certificate of clients", error))
}
