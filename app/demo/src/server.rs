//! The server as a test holds it: started on its own thread, told what to do, stopped and started again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_runtime::net::{Listener, Stream};
use forebay_runtime::time::sleep;
use forebay_types::{MountOptions, Result, ResultExt};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use s3s::service::S3Service;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::bodies::Link;
use crate::counters::{S3Counters, Tally};
use crate::faults::{Fault, Faults};
use crate::gate::{Shared, serve};
use crate::pace::Pacer;
use crate::service::service;
use crate::settings::S3Settings;
use crate::store::Store;

/// An S3 server on a thread of its own. It stops when dropped.
///
/// ```
/// # use forebay_demo::{S3Server, S3Settings};
/// let server = S3Server::start(S3Settings { buckets: vec!["lake".into()], ..Default::default() }).unwrap();
/// server.put("lake", "greeting.txt", b"hello").unwrap();
/// assert!(server.endpoint().starts_with("http://127.0.0.1:"));
/// ```
pub struct S3Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    store: Arc<Store>,
    service: S3Service,
    running: Option<Running>,
    _temporary: Option<TempDir>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl S3Server {
    /// Starts a server and returns when it listens. `Retry` when the port is in use.
    pub fn start(settings: S3Settings) -> Result<Self> {
        let mut server = Self::without_thread(settings)?;
        server.restart()?;
        Ok(server)
    }

    /// One with a bucket that anybody may use.
    pub fn of_bucket(name: &str) -> Result<Self> {
        Self::start(S3Settings { buckets: vec![name.to_string()], anonymous: true, ..S3Settings::default() })
    }

    /// The options of a mount of it where anybody may use it.
    pub fn mount_options(&self) -> MountOptions {
        MountOptions { endpoint: Some(self.endpoint()), anonymous: true, ..MountOptions::default() }
    }

    /// A server that listens nowhere until [`Self::serve`].
    pub fn without_thread(settings: S3Settings) -> Result<Self> {
        let temporary = settings.folder.as_os_str().is_empty().then(TempDir::new).transpose()?;
        let folder = temporary.as_ref().map_or(settings.folder.as_path(), |folder| folder.path());
        let store = Arc::new(Store::open(folder, settings.in_memory).context(|| format!("S3 server in {}", folder.display()))?);
        for bucket in &settings.buckets {
            store.create_bucket(bucket)?;
        }
        let link =
            Link { tally: Tally::default(), inwards: Pacer::new(settings.bandwidth), outwards: Pacer::new(settings.bandwidth) };
        let latency = Mutex::new(settings.latency);
        let shared = Arc::new(Shared { link: Arc::new(link), faults: Faults::default(), latency });
        let service = service(Arc::clone(&store), settings.anonymous);
        Ok(Self { address: settings.address, shared, store, service, running: None, _temporary: temporary })
    }

    /// Serves what comes in at `listener` in tasks of this runtime, until this is dropped.
    pub fn serve(&self, listener: Listener) -> impl Future<Output = ()> + Send + use<> {
        let (service, shared) = (self.service.clone(), Arc::clone(&self.shared));
        let never = std::future::pending::<()>();
        accept(listener, service, shared, never)
    }

    /// The server's URL, as in `http://127.0.0.1:41234`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked and what it moved since start or the last reset.
    pub fn counters(&self) -> S3Counters {
        self.shared.link.tally.read()
    }

    /// Counts from zero again.
    pub fn reset_counters(&self) {
        self.shared.link.tally.reset();
    }

    /// Uploads in parts that are neither completed nor given up.
    pub fn uploads_open(&self) -> usize {
        self.store.uploads_open()
    }

    /// The next `count` requests that the fault can concern meet it, after those that were asked for before.
    pub fn inject(&self, fault: Fault, count: usize) {
        self.shared.faults.add(fault, count);
    }

    /// Takes back the faults that have not struck.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Bytes a second over all connections together, each way, from now on; none when not set.
    pub fn set_bandwidth(&self, bytes_per_sec: Option<u64>) {
        self.shared.link.inwards.set(bytes_per_sec);
        self.shared.link.outwards.set(bytes_per_sec);
    }

    /// Time before a request is looked at, from now on.
    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock() = latency;
    }

    /// Makes a bucket; nothing happens when it is there.
    pub fn create_bucket(&self, bucket: &str) -> Result<()> {
        Ok(self.store.create_bucket(bucket)?)
    }

    /// Writes an object past HTTP, unpaced and uncounted, and returns its ETag as clients see it.
    pub fn put(&self, bucket: &str, key: &str, data: &[u8]) -> Result<String> {
        let mut draft = self.store.draft(bucket)?;
        draft.write(data)?;
        let object = self.store.commit(draft, bucket, key, None, |_| Ok(())).context(|| format!("{bucket}/{key}"))?;
        Ok(format!("\"{}\"", object.etag))
    }

    /// Stops listening and breaks every connection. Objects stay. Nothing happens when it is stopped.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            // The thread may have ended by itself; joining tells.
            let _ = running.stop.send(());
            let _ = running.thread.join();
        }
    }

    /// Listens again, on the same port. `Retry` when something else took it.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        let listener = std::net::TcpListener::bind(self.address).context(|| format!("S3 server on {}", self.address))?;
        listener.set_nonblocking(true)?;
        self.address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let (service, shared) = (self.service.clone(), Arc::clone(&self.shared));
        let thread = std::thread::Builder::new().name("s3-server".into()).spawn(move || {
            runtime.block_on(async move {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => accept(Listener::Tcp(listener), service, shared, stopped).await,
                    Err(error) => tracing::error!(%error, "s3 server can't listen"),
                }
            });
        })?;
        self.running = Some(Running { stop, thread });
        Ok(())
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Serves connections until `stopped` ends; those that are open then end with this function.
async fn accept<T>(listener: Listener, service: S3Service, shared: Arc<Shared>, stopped: impl Future<Output = T>) {
    tokio::pin!(stopped);
    let mut connections = JoinSet::new();
    loop {
        let socket = tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            socket = listener.accept() => socket,
        };
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        match socket {
            Ok((socket, _)) => {
                if let Stream::Tcp(tcp) = &socket {
                    let _ = tcp.set_nodelay(true);
                }
                connections.spawn(async move {
                    let handler = service_fn(move |request| serve(request, service.clone(), Arc::clone(&shared)));
                    let served = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(socket), handler)
                        .await;
                    if let Err(error) = served {
                        tracing::debug!(%error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "s3 server can't accept");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}
