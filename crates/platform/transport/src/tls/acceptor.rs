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

use super::validity::{Moment, Validity};
use super::{certificates, private_key, provider, roots, unreadable, wanted};
use crate::{TlsSettings, unix_now};

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
/// next second on. Files that can't be used are said in the log, and the ones before them go on; so does a certificate that holds
/// where the one in its place has expired or is not valid yet.
#[derive(Clone)]
pub struct Acceptor(Arc<Kept>);

struct Kept {
    tls: TlsSettings,
    spoken: Spoken,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    shown: Shown,
    /// What the files hold, where that does not hold now and what is shown does.
    aside: Option<Shown>,
    /// That what is shown does not hold was said, and has been so since.
    is_told: bool,
    files: Vec<Stamp>,
    looked: Instant,
}

/// A certificate with what goes with it.
struct Shown {
    config: Arc<ServerConfig>,
    /// None where that can't be read.
    validity: Option<Validity>,
}

impl Shown {
    /// What is wrong with it now.
    fn fault(&self, tls: &TlsSettings, now: Moment) -> Option<String> {
        self.validity?.fault(tls.cert.as_deref()?, now)
    }
}

/// What changes when a file is written or replaced: its time of change, length and number.
type Stamp = Option<(SystemTime, u64, u64)>;

impl Acceptor {
    /// Reads the files. `Invalid`, with the file, where they can't be used. A certificate that has expired or is not valid yet is shown all the
    /// same, as other servers do, and a warning says so: what does not look at it (probes, scrapers) is not to go with it.
    pub fn new(tls: &TlsSettings, spoken: Spoken) -> Result<Self> {
        // Looked at first: what is written meanwhile is read again.
        let files = stamps(tls);
        let shown = configured(tls, spoken)?;
        let loaded = Mutex::new(Loaded { shown, aside: None, is_told: false, files, looked: forebay_runtime::now() });
        let kept = Kept { tls: tls.clone(), spoken, loaded };
        kept.tell(&mut kept.loaded.lock(), Moment::of_unix(unix_now()));
        Ok(Self(Arc::new(kept)))
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
            self.look(&mut loaded, Moment::of_unix(unix_now()));
        }
        Arc::clone(&loaded.shown.config)
    }

    fn look(&self, loaded: &mut Loaded, now: Moment) {
        let (files, standing) = (stamps(&self.tls), loaded.shown.validity);
        if files != loaded.files {
            loaded.files = files;
            loaded.aside = match configured(&self.tls, self.spoken) {
                Ok(new) => {
                    if !takes_over(new.validity, standing, now)
                        && let Some(fault) = new.fault(&self.tls, now)
                    {
                        tracing::warn!("{fault}: what the files held before goes on");
                    }
                    Some(new)
                }
                Err(error) => {
                    tracing::warn!(%error, "TLS files have changed, and can't be used: the ones before them go on");
                    None
                }
            };
        }
        // One that was not valid yet may be by now, with no file changed.
        if let Some(new) = loaded.aside.take_if(|new| takes_over(new.validity, standing, now)) {
            tracing::info!("TLS files have changed: new connections get the new certificate");
            (loaded.shown, loaded.is_told) = (new, false);
        }
        self.tell(loaded, now);
    }

    /// Says that what is shown does not hold, once: again where it has held since, as with a clock that was set.
    fn tell(&self, loaded: &mut Loaded, now: Moment) {
        let fault = loaded.shown.fault(&self.tls, now);
        if !loaded.is_told
            && let Some(fault) = &fault
        {
            tracing::warn!("{fault}: until then clients refuse it");
        }
        loaded.is_told = fault.is_some();
    }
}

/// Whether a new certificate takes the place of the one that stands: not where that would end what holds.
fn takes_over(new: Option<Validity>, standing: Option<Validity>, now: Moment) -> bool {
    let holds = |validity: Option<Validity>| validity.is_none_or(|validity| validity.holds(now));
    holds(new) || !holds(standing)
}

fn stamps(tls: &TlsSettings) -> Vec<Stamp> {
    [&tls.cert, &tls.key, &tls.client_ca].into_iter().flatten().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

fn configured(tls: &TlsSettings, spoken: Spoken) -> Result<Shown> {
    let cert = wanted(&tls.cert, "certificate", "to listen")?;
    let key = wanted(&tls.key, "private key", "to listen")?;
    let chain = certificates(cert, "certificate")?;
    // The first one is the server's own: what stands behind it may be there for old clients alone.
    let validity = chain.first().and_then(|certificate| Validity::of(certificate));
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
    Ok(Shown { config: Arc::new(config), validity })
}

fn known_clients(ca: &Path, spoken: Spoken) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca, "CA certificate of clients")?), provider());
    let verifier = if spoken == Spoken::Http1Probed { verifier.allow_unauthenticated() } else { verifier };
    verifier.build().map_err(|error| unreadable(ca, "CA certificate of clients", error))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate that holds from the beginning of one year to that of another, in files that are replaced.
    fn put(folder: &Path, from: i32, to: i32) -> TlsSettings {
        let mut params = CertificateParams::new(vec!["localhost".to_string()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        let key = KeyPair::generate().unwrap();
        let replace = |name: &str, contents: String| {
            let (new, path) = (folder.join("new"), folder.join(name));
            fs::write(&new, contents).unwrap();
            fs::rename(new, &path).unwrap();
            Some(path)
        };
        let cert = replace("cert.pem", params.self_signed(&key).unwrap().pem());
        TlsSettings { cert, key: replace("key.pem", key.serialize_pem()), ..TlsSettings::default() }
    }

    #[test]
    fn a_certificate_that_does_not_hold_takes_the_place_of_none_that_does() {
        let folder = tempfile::tempdir().unwrap();
        let tls = put(folder.path(), 2020, 2030);
        let acceptor = Acceptor::new(&tls, Spoken::Ours).unwrap();
        // In the midst of that year.
        let shown = |year: u64| {
            let mut loaded = acceptor.0.loaded.lock();
            acceptor.0.look(&mut loaded, Moment::of_unix((year - 1970) * 31_556_952 + 15_000_000));
            loaded.shown.validity.unwrap().to_string()
        };
        let of = |from: u64, to: u64| format!("{from}-01-01 00:00:00 UTC to {to}-01-01 00:00:00 UTC");
        assert_eq!(shown(2026), of(2020, 2030));
        put(folder.path(), 2010, 2025);
        assert_eq!(shown(2026), of(2020, 2030), "the new one has expired");
        put(folder.path(), 2027, 2040);
        assert_eq!(shown(2026), of(2020, 2030), "the new one is not valid yet");
        assert_eq!(shown(2028), of(2027, 2040), "it is by now");
        put(folder.path(), 2029, 2050);
        assert_eq!(shown(2030), of(2029, 2050), "both hold: the new one");
        put(folder.path(), 2020, 2030);
        assert_eq!(shown(2060), of(2020, 2030), "none does: what the files hold");
    }

    #[test]
    fn a_certificate_that_expires_while_it_is_shown_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let acceptor = Acceptor::new(&put(folder.path(), 2020, 2130), Spoken::Ours).unwrap();
        let is_told = |year: u64| {
            let mut loaded = acceptor.0.loaded.lock();
            acceptor.0.look(&mut loaded, Moment::of_unix((year - 1970) * 31_556_952 + 15_000_000));
            loaded.is_told
        };
        assert_eq!([2019, 2026, 2129, 2130, 2131].map(is_told), [true, false, false, true, true]);
        put(folder.path(), 2129, 2140);
        assert_eq!([2131, 2141].map(is_told), [false, true], "another one is told anew");
    }

    #[test]
    fn a_server_begins_with_a_certificate_that_has_expired() {
        let folder = tempfile::tempdir().unwrap();
        let tls = put(folder.path(), 2010, 2015);
        let acceptor = Acceptor::new(&tls, Spoken::Http1).unwrap();
        let fault = acceptor.0.loaded.lock().shown.fault(&tls, Moment::of_unix(unix_now())).unwrap();
        assert!(fault.contains("cert.pem has expired: it holds from 2010-01-01 00:00:00 UTC to 2015-01-01"), "{fault}");
    }
}
