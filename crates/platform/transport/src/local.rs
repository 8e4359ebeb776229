//! A server's own process asks it without a socket.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use forebay_protocol::{AtHand, Handed, Left, META_BYTES_MAX, PAYLOAD_BYTES_MAX, PROTOCOL_VERSION};
use forebay_rights::{Caller, Who};
use forebay_runtime::deadline;
use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::error;

use crate::caught::caught;
use crate::credentials::OWNER;
use crate::waited::while_waited;
use crate::{Address, Admission, Answer, Credential, Peer, Response, Service, Session};

/// What this process serves at Unix sockets, by their paths.
static DOORS: LazyLock<Mutex<HashMap<PathBuf, Arc<Door>>>> = LazyLock::new(Mutex::default);

/// Begins a session, with where it leaves what is kept after its end.
type Opens = dyn Fn(Caller, &Arc<Kept>) -> Result<Arc<dyn LocalSession>> + Send + Sync;

/// The way into a server from its own process.
pub(crate) struct Door {
    /// None once the server is gone: who still holds a connection holds nothing of it.
    open: Mutex<Option<Arc<Opens>>>,
    admits: Arc<Admission>,
    /// Where the server lives: what its calls spawn must not end with a caller's runtime.
    runtime: Handle,
    running: TaskTracker,
    /// No more calls are taken.
    stopping: AtomicBool,
    ended: CancellationToken,
}

impl Door {
    pub(crate) fn of<S: Service>(service: Arc<S>, admits: Arc<Admission>) -> Arc<Self> {
        let open: Arc<Opens> = Arc::new(move |caller, kept: &Arc<Kept>| {
            let address = "this process".to_string();
            let peer = Peer { caller, address, unix: true, same_user: true, version: PROTOCOL_VERSION };
            let session = Arc::new(service.open(peer)?);
            Ok(Arc::new(Open { session, kept: Arc::downgrade(kept) }) as Arc<dyn LocalSession>)
        });
        let running = TaskTracker::new();
        running.close();
        let (stopping, ended) = (AtomicBool::new(false), CancellationToken::new());
        Arc::new(Self { open: Mutex::new(Some(open)), admits, runtime: Handle::current(), running, stopping, ended })
    }

    pub(crate) fn at(address: &Address) -> Option<Arc<Self>> {
        match address {
            Address::Unix(path) => DOORS.lock().get(path).cloned(),
            Address::Tcp(_) => None,
        }
    }
}

/// A door that is found at its address until this is dropped, which ends all that came through it.
pub(crate) struct Opened {
    path: PathBuf,
    door: Arc<Door>,
}

impl Opened {
    pub(crate) fn new(path: PathBuf, door: Arc<Door>) -> Self {
        DOORS.lock().insert(path.clone(), Arc::clone(&door));
        Self { path, door }
    }

    /// Lets nobody in any more, and waits for what runs, so long at most.
    pub(crate) async fn finish(self, within: Duration) {
        self.shut();
        self.door.stopping.store(true, SeqCst);
        // What still runs then ends with the drop.
        let _ = forebay_runtime::time::timeout(within, self.door.running.wait()).await;
    }

    fn shut(&self) {
        let mut doors = DOORS.lock();
        // Another server may have the path by now.
        if doors.get(&self.path).is_some_and(|door| Arc::ptr_eq(door, &self.door)) {
            doors.remove(&self.path);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.shut();
        self.door.ended.cancel();
        let open = self.door.open.lock().take();
        drop(open);
    }
}

/// A connection without a socket: what is at hand is answered in the task of the caller, the rest in one of the server's.
pub(crate) struct Local {
    pub(crate) address: Address,
    door: Arc<Door>,
    /// None when the connection has ended.
    session: Mutex<Option<Arc<dyn LocalSession>>>,
    pub(crate) ended: CancellationToken,
    /// What the session has left for who holds this. Dropped after it.
    _kept: Arc<Kept>,
}

/// What a session gave back at its end.
type Kept = Mutex<Option<Box<dyn Send>>>;

impl Local {
    pub(crate) fn open(door: Arc<Door>, address: Address, shows: Option<&Credential>) -> Result<Arc<Self>> {
        let caller = match shows {
            Some(credential) if credential.id() != OWNER => door.admits.caller(credential)?,
            // The same process is the same user.
            _ => Caller::new(Who::Owner),
        };
        let kept = Arc::<Kept>::default();
        let open = door.open.lock().clone();
        let open = open.ok_or_else(|| Error::closed(format!("{address}: what was there has ended")))?;
        let session = Mutex::new(Some(open(caller, &kept)?));
        let ended = door.ended.child_token();
        let local = Arc::new(Self { address, door, session, ended: ended.clone(), _kept: kept });
        // The session ends when the connection does, also while somebody keeps that.
        let kept = Arc::downgrade(&local);
        local.door.runtime.spawn(async move {
            ended.cancelled().await;
            if let Some(local) = kept.upgrade() {
                drop(local.session.lock().take());
            }
        });
        Ok(local)
    }

    pub(crate) async fn call(&self, meta: Bytes, payload: Vec<Bytes>) -> Result<Answer> {
        let payload_bytes: usize = payload.iter().map(Bytes::len).sum();
        if meta.len() > META_BYTES_MAX as usize || payload_bytes > PAYLOAD_BYTES_MAX as usize {
            return Err(Error::invalid(format!(
                "a request of {} + {payload_bytes} bytes exceeds the limits of {META_BYTES_MAX} + {PAYLOAD_BYTES_MAX} bytes",
                meta.len()
            )));
        }
        let running = self.door.running.token();
        let session = self.session()?;
        let asked = meta.clone();
        let mut call = Arc::clone(&session).call(Left::new(deadline::left()), meta, joined(payload));
        let mut response = match self.poll_once(&mut call) {
            None => self.failed(&session, &asked),
            Some(Poll::Ready(response)) => response,
            Some(Poll::Pending) => {
                // It must go on though its caller does not ask for it: others may wait for what it fetches.
                // A server that stops waits until the caller has the answer.
                let task = AbortOnDropHandle::new(self.door.runtime.spawn(async move { (call.await, running) }));
                let response = tokio::select! {
                    biased;
                    response = task => response,
                    () = self.ended.cancelled() => return Err(self.why_ended()),
                };
                match response {
                    Ok((response, _running)) => response,
                    Err(error) if error.is_panic() => self.failed(&session, &asked),
                    Err(_) => {
                        self.ended.cancel();
                        return Err(self.why_ended());
                    }
                }
            }
        };
        let descriptor = response.descriptor.take();
        let (meta, payload) = (response.meta.clone(), of_its_own(&response.payload));
        let answer = Answer { version: PROTOCOL_VERSION, meta, payload, descriptor };
        response.reached();
        Ok(answer)
    }

    /// Takes an answer that is at hand without a task for it; None when the call panics.
    fn poll_once(&self, call: &mut Call) -> Option<Poll<Response>> {
        let _entered = self.door.runtime.enter();
        // The future is to wake whoever polls it last, which will be a task.
        caught(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop())))
    }

    /// What a call is answered that failed by a defect.
    fn failed(&self, session: &Arc<dyn LocalSession>, asked: &Bytes) -> Response {
        error!(address = %self.address, "a call of this process failed by a defect, which was reported where it happened");
        session.failed(asked)
    }

    pub(crate) fn notify(&self, meta: Bytes) -> Result<()> {
        let session = self.session()?;
        let _entered = self.door.runtime.enter();
        caught(|| session.notice(meta)).ok_or_else(|| Error::internal(format!("{}: a notice was lost by a defect", self.address)))
    }

    /// What the server answers at once.
    pub(crate) fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        let session = self.session().ok()?;
        // Who gets nothing here asks as usual.
        caught(|| session.at_hand(wanted))?
    }

    fn session(&self) -> Result<Arc<dyn LocalSession>> {
        let session = self.session.lock().clone();
        let takes_more = !self.ended.is_cancelled() && !self.door.stopping.load(SeqCst);
        session.filter(|_| takes_more).ok_or_else(|| self.why_ended())
    }

    fn why_ended(&self) -> Error {
        Error::closed(format!("connection to {} has ended", self.address))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

type Call = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A [`Session`] of any service; it is told its end when nothing of it runs any more.
trait LocalSession: Send + Sync {
    fn call(self: Arc<Self>, left: Left, meta: Bytes, payload: Bytes) -> Call;
    fn failed(&self, meta: &Bytes) -> Response;
    fn notice(&self, meta: Bytes);
    fn at_hand(&self, wanted: &AtHand) -> Option<Handed>;
}

struct Open<S: Session> {
    session: Arc<S>,
    kept: Weak<Kept>,
}

impl<S: Session> LocalSession for Open<S> {
    fn call(self: Arc<Self>, left: Left, meta: Bytes, payload: Bytes) -> Call {
        let session = Arc::clone(&self.session);
        Box::pin(async move {
            let response = while_waited(session, left, meta, payload).await;
            // It is told its end when nothing of it runs any more.
            drop(self);
            response
        })
    }

    fn failed(&self, meta: &Bytes) -> Response {
        self.session.failed(meta)
    }

    fn notice(&self, meta: Bytes) {
        self.session.notice(meta);
    }

    fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        self.session.at_hand(wanted)
    }
}

impl<S: Session> Drop for Open<S> {
    fn drop(&mut self) {
        let left = caught(|| self.session.closed()).flatten();
        if let Some(kept) = self.kept.upgrade() {
            *kept.lock() = left;
        }
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.swap_remove(0),
        _ => of_its_own(&pieces),
    }
}

/// A copy, as a socket makes one: what is answered may lie in memory that the server needs back.
fn of_its_own(pieces: &[Bytes]) -> Bytes {
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}
