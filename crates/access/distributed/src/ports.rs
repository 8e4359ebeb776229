//! Ballista's ports behind the cluster's credentials and TLS. Its clients take no connector of ours, but let us change the
//! endpoint that they go to: they are sent to a socket of this process, in a folder of this user, and from there through a
//! guarded connection.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ballista_core::extension::EndpointOverrideFn;
use forebay_protocol::PROTOCOL_VERSION;
use forebay_transport::{Entrance, Guard, Guarded, Peer, Security, Seldom, through};
use forebay_types::{Error, Result, ResultExt};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Endpoint;
use tonic::transport::server::Connected;

/// Connections that have shaken hands and wait to be served.
const ADMITTED_MAX: usize = 64;
/// Those, and connections that shake hands still, of which an [`Entrance`] has 256 at most.
const CONNECTIONS_MAX: usize = 1024;
/// How long an accept that failed rests.
const REST: Duration = Duration::from_millis(50);
/// Ways to others that there are at a time, but for those that are used or about to be: each has a descriptor and a task, and executors come
/// and go.
const WAYS_MAX: usize = 1024;
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Listens at `at`; gives the host that others reach it at, too: the address's own where another is not said. `remedy` is for where that
/// can't be.
pub(crate) async fn listen(at: &str, advertise: Option<String>, remedy: &str) -> Result<(TcpListener, SocketAddr, String)> {
    let place = || format!("can't listen at {at}{remedy}");
    let listener = TcpListener::bind(at).await.context(place)?;
    let address = listener.local_addr().context(place)?;
    if advertise.is_none() && address.ip().is_unspecified() {
        return Err(Error::invalid(format!("{address} is nowhere that others can reach: say where with --advertise HOST:PORT")));
    }
    let host = advertise.unwrap_or_else(|| address.ip().to_string());
    Ok((listener, address, host))
}

/// A connection to a port, and who is at its other end.
pub(crate) struct Port {
    io: Guarded,
    from: SocketAddr,
}

impl Connected for Port {
    type ConnectInfo = Option<Peer>;

    fn connect_info(&self) -> Self::ConnectInfo {
        let caller = self.io.caller()?.clone();
        Some(Peer { caller, address: self.from.to_string(), unix: false, same_user: false, version: PROTOCOL_VERSION })
    }
}

through!(read io: Port);
through!(write io: Port);

/// The connections that a port lets in, for the service behind it.
pub(crate) struct Incoming {
    admitted: mpsc::Receiver<Port>,
    _accepting: AbortOnDropHandle<()>,
}

impl Incoming {
    /// Lets in whom the cluster knows, from now on. What each call needs is looked at with the call (`checked`).
    pub(crate) fn new(listener: TcpListener, security: &Security) -> Result<Self> {
        let guard = Arc::new(Guard::new(security)?);
        let (send, admitted) = mpsc::channel(ADMITTED_MAX);
        let accepting = forebay_runtime::spawn(async move {
            let (mut shaking, entrance, mut failing) = (JoinSet::new(), Entrance::default(), Seldom::default());
            loop {
                while shaking.len() >= CONNECTIONS_MAX || shaking.try_join_next().is_some() {
                    if shaking.len() >= CONNECTIONS_MAX {
                        shaking.join_next().await;
                    }
                }
                let (stream, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        if let Some(times) = failing.happens(forebay_runtime::now()) {
                            tracing::warn!(%error, times, "connections of distributed SQL can't be accepted");
                        }
                        forebay_runtime::time::sleep(REST).await;
                        continue;
                    }
                };
                let (guard, send) = (Arc::clone(&guard), send.clone());
                let place = entrance.enter(&peer.to_string()).await;
                shaking.spawn(async move {
                    let admitted = tokio::select! {
                        admitted = guard.admit(stream) => admitted,
                        () = place.gives_way() => Err(Error::retry("it says nothing, and others wait for its place")),
                    };
                    drop(place);
                    match admitted {
                        // Nobody waits for it when the service ends.
                        Ok(io) => drop(send.send(Port { io, from: peer }).await),
                        Err(error) => tracing::info!(%peer, %error, "connection refused"),
                    }
                });
            }
        });
        Ok(Self { admitted, _accepting: AbortOnDropHandle::new(accepting) })
    }
}

impl Stream for Incoming {
    type Item = std::io::Result<Port>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.admitted.poll_recv(cx).map(|admitted| admitted.map(Ok))
    }
}

/// The connections that a service is given.
pub(crate) fn incoming(listener: TcpListener, security: &Security) -> Result<BoxStream<'static, std::io::Result<Port>>> {
    Ok(Incoming::new(listener, security)?.boxed())
}

/// The ways from this process to ports that are guarded.
#[derive(Clone)]
pub(crate) struct Ways(Arc<Inner>);

struct Inner {
    security: Security,
    /// Of this user alone.
    folder: PathBuf,
    runtime: Handle,
    sockets: Mutex<Sockets>,
    tasks: Mutex<JoinSet<()>>,
}

struct Sockets {
    /// How many there are at a time.
    most: usize,
    /// How often any was asked for.
    asked: u64,
    /// By `host:port`.
    by_target: HashMap<String, Way>,
}

/// A socket here.
struct Way {
    path: PathBuf,
    /// When it was asked for last, in [`Sockets::asked`].
    asked: u64,
    asked_at: Instant,
    /// The task at the socket has it too, and each connection.
    seen: Arc<Seen>,
    task: AbortHandle,
}

/// What the task at a socket has seen.
#[derive(Default)]
struct Seen {
    /// Nobody answers at the other end.
    is_away: AtomicBool,
    /// Somebody has come since the socket was asked for last.
    is_taken: AtomicBool,
}

impl Way {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.seen) > 2
    }

    /// Nobody uses it, and who has asked for it has come, or will not come any more: where it went in between he would find no socket.
    fn may_go(&self, now: Instant) -> bool {
        let comes = !self.seen.is_taken.load(Relaxed) && now.saturating_duration_since(self.asked_at) < CONNECT_TIMEOUT;
        !comes && !self.is_used()
    }
}

impl Sockets {
    /// Lets those go that were asked for longest ago until there is room for one, of those that may. Who goes there asks for them anew.
    fn make_room(&mut self, now: Instant) {
        while self.by_target.len() >= self.most {
            let idle = self.by_target.iter().filter(|(_, way)| way.may_go(now));
            let oldest = idle.min_by_key(|(_, way)| way.asked).map(|(target, _)| target.clone());
            let Some(way) = oldest.and_then(|target| self.by_target.remove(&target)) else { return };
            way.task.abort();
            // What stays of it goes with the folder.
            let _ = std::fs::remove_file(&way.path);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What is left there is a few sockets that nobody listens at.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Ways {
    /// The ways of a process that shows this.
    pub(crate) fn new(security: &Security) -> Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let base = runtime.unwrap_or_else(std::env::temp_dir);
        let folder = base.join(format!("forebay-ways-{:016x}", forebay_runtime::random::<u64>()));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let sockets = Mutex::new(Sockets { most: WAYS_MAX, asked: 0, by_target: HashMap::new() });
        let (runtime, tasks) = (Handle::current(), Mutex::default());
        Ok(Self(Arc::new(Inner { security: security.clone(), folder, runtime, sockets, tasks })))
    }

    /// The endpoint of `host:port`.
    pub(crate) fn endpoint(&self, host_port: &str) -> Result<Endpoint> {
        let endpoint = Endpoint::from_shared(format!("http://{host_port}"))
            .map_err(|error| Error::invalid(format!("{host_port} is no address, write host:port: {error}")))?;
        self.guarded(endpoint)
    }

    /// What Ballista asks before it connects.
    pub(crate) fn overrides(&self) -> EndpointOverrideFn {
        let ways = self.clone();
        Arc::new(move |endpoint| ways.guarded(endpoint).map_err(Into::into))
    }

    /// The endpoint of whichever `host:port` is said last. Connections to the one before end.
    pub(crate) fn followed(&self, target: watch::Receiver<String>) -> Result<Endpoint> {
        let path = self.0.folder.join(format!("followed-{:016x}", forebay_runtime::random::<u64>()));
        self.listen(&path, target, Arc::default())?;
        Self::at(&path)
    }

    fn guarded(&self, endpoint: Endpoint) -> Result<Endpoint> {
        let target = endpoint.uri().authority().map(ToString::to_string);
        let target = target.ok_or_else(|| Error::internal(format!("{} names no host", endpoint.uri())))?;
        Self::at(&self.socket(&target)?)
    }

    fn at(socket: &Path) -> Result<Endpoint> {
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display()))
            .map_err(|error| Error::internal(format!("{}: {error}", socket.display())))?;
        Ok(endpoint.connect_timeout(CONNECT_TIMEOUT))
    }

    /// The socket whose other end is a guarded connection to the target.
    fn socket(&self, target: &str) -> Result<PathBuf> {
        let (mut sockets, asked_at) = (self.0.sockets.lock(), forebay_runtime::now());
        sockets.asked += 1;
        let asked = sockets.asked;
        if let Some(way) = sockets.by_target.get_mut(target) {
            (way.asked, way.asked_at) = (asked, asked_at);
            way.seen.is_taken.store(false, Relaxed);
            return Ok(way.path.clone());
        }
        sockets.make_room(asked_at);
        let path = self.0.folder.join(asked.to_string());
        // Nobody says another one.
        let (_, always) = watch::channel(target.to_string());
        let seen = Arc::new(Seen::default());
        let task = self.listen(&path, always, Arc::clone(&seen))?;
        let known = sockets.by_target.insert(target.to_string(), Way { path: path.clone(), asked, asked_at, seen, task });
        assert!(known.is_none(), "one way leads to {target}");
        Ok(path)
    }

    fn listen(&self, path: &Path, target: watch::Receiver<String>, seen: Arc<Seen>) -> Result<AbortHandle> {
        let _runtime = self.0.runtime.enter();
        let listener = UnixListener::bind(path)?;
        let mut tasks = self.0.tasks.lock();
        while tasks.try_join_next().is_some() {}
        Ok(tasks.spawn(forward(listener, target, self.0.security.clone(), seen)))
    }
}

/// Takes each connection at a socket to the target of then. Ends with its owner.
async fn forward(listener: UnixListener, mut target: watch::Receiver<String>, security: Security, seen: Arc<Seen>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Ok(()) = target.changed() => {
                connections.abort_all();
                continue;
            }
        };
        let Ok((mut near, _)) = accepted else {
            forebay_runtime::time::sleep(REST).await;
            continue;
        };
        // It is used from now on, and only then is it taken.
        let (target, security, seen) = (target.borrow().clone(), security.clone(), Arc::clone(&seen));
        seen.is_taken.store(true, Relaxed);
        connections.spawn(async move {
            match Guarded::connect(&target, &security).await {
                Ok(mut far) => {
                    seen.is_away.store(false, Relaxed);
                    drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
                }
                // Once: an executor asks for a scheduler that is away twenty times a second.
                Err(error) if !seen.is_away.swap(true, Relaxed) => tracing::warn!(%error, "no way there"),
                Err(error) => tracing::debug!(%error, "no way there still"),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use forebay_testbed::until;
    use tokio::net::UnixStream;

    use super::*;

    fn count(ways: &Ways) -> usize {
        ways.0.sockets.lock().by_target.len()
    }

    /// Comes to a socket and goes again: nobody answers at the target.
    async fn come_and_go(ways: &Ways, target: &str) {
        let path = ways.socket(target).unwrap();
        drop(UnixStream::connect(&path).await.unwrap());
        let may_go = || ways.0.sockets.lock().by_target[target].may_go(forebay_runtime::now());
        until("its connection is over", may_go).await;
    }

    #[tokio::test]
    async fn ways_to_executors_that_come_and_go_are_bounded_and_one_that_is_used_stays() {
        let ways = Ways::new(&Security::default()).unwrap();
        ways.0.sockets.lock().most = 3;
        let executor = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = executor.local_addr().unwrap().to_string();
        let used = ways.socket(&at).unwrap();
        let _near = UnixStream::connect(&used).await.unwrap();
        // It says nothing, so that the handshake goes on.
        let _far = executor.accept().await.unwrap();
        come_and_go(&ways, "127.0.0.2:1").await;
        let first = ways.socket("127.0.0.2:1").unwrap();
        for number in 3..9 {
            come_and_go(&ways, "127.0.0.2:1").await;
            assert_eq!(ways.socket("127.0.0.2:1").unwrap(), first, "who is asked for again and again stays");
            come_and_go(&ways, &format!("127.0.0.{number}:1")).await;
            assert!(count(&ways) <= 3);
        }
        assert_eq!(ways.socket(&at).unwrap(), used);
        come_and_go(&ways, "127.0.0.2:1").await;
        for number in 9..11 {
            come_and_go(&ways, &format!("127.0.0.{number}:1")).await;
        }
        assert!(used.exists() && !first.exists());
        let again = ways.socket("127.0.0.2:1").unwrap();
        assert!(again != first && UnixStream::connect(&again).await.is_ok(), "who comes back has a way again");
    }

    #[tokio::test]
    async fn a_way_was_gone_before_who_had_asked_for_it_came_there() {
        let ways = Ways::new(&Security::default()).unwrap();
        ways.0.sockets.lock().most = 3;
        come_and_go(&ways, "127.0.0.2:1").await;
        // More at a time than there may be.
        let asked: Vec<PathBuf> = (3..9).map(|number| ways.socket(&format!("127.0.0.{number}:1")).unwrap()).collect();
        for path in &asked {
            assert!(UnixStream::connect(path).await.is_ok(), "{}", path.display());
        }
        let all_may_go = || {
            let sockets = ways.0.sockets.lock();
            sockets.by_target.values().all(|way| way.may_go(forebay_runtime::now()))
        };
        until("they are idle", all_may_go).await;
        assert_eq!(count(&ways), 6, "the one that was idle went");
        ways.socket("127.0.0.9:1").unwrap();
        assert_eq!(count(&ways), 3, "there are no more than that again");
        let later = forebay_runtime::now() + CONNECT_TIMEOUT;
        assert!(ways.0.sockets.lock().by_target["127.0.0.9:1"].may_go(later), "nobody waits for who never comes");
    }
}
