//! A coordinator and workers that speak the protocol and do what a test tells them.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_client::{
    Address, Client, ClientSettings, ClusterView, ControlCall, ControlReply, ControlRequest, Security, host_id,
};
use forebay_nodes::{CallNumber, DirId, NodeError, NodeErrorKind};
use forebay_protocol::{
    DataNotice, DataReply, DataRequest, Hint, NodeCall, NodeOp, NodeReply, RoutesDelta, Span, WorkerInfo, decode, encode,
};
use forebay_transport::{Listener, Peer, Response, Server, ServerLimits, Service, Session};
use forebay_types::{Error, Key, Mount, MountId, MountOptions, ObjectInfo, ObjectVersion, Result, VersionTag, WorkerId};
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};

pub use crate::mood::Mood;

pub const MOUNT: MountId = MountId(1);

pub struct Shared {
    pub reads: AtomicUsize,
    pub writes: AtomicUsize,
    pub sessions: AtomicUsize,
    pub pins: Mutex<HashSet<u64>>,
    pub counted: Mutex<HashMap<u64, (u32, u64)>>,
    /// Objects that it was told to bring, and those that were read from it.
    pub brought: Mutex<HashSet<Key>>,
    pub read_of: Mutex<HashSet<Key>>,
    pub mood: Mutex<Mood>,
    /// What answers to reads say of it.
    pub hint: Mutex<Hint>,
    pub nodes: NodeScript,
    next_pin: AtomicUsize,
    tier: Tier,
}

/// Calls about temporary nodes, and what a worker says to them.
#[derive(Default)]
pub struct NodeScript {
    pub calls: AtomicUsize,
    /// The container that their paths lead to with their last byte; none hangs.
    pub leads_to: Mutex<Option<DirId>>,
    /// What it says instead.
    pub refuses: Mutex<Option<NodeErrorKind>>,
    /// What it says, where it says anything, of the first put with a number, to which it gives no answer: that it is done, or not.
    pub was_done: Mutex<Option<bool>>,
    /// Numbers of puts, in the order in which they came.
    pub puts: Mutex<Vec<CallNumber>>,
}

/// The memory that is read in place, with where in it objects are.
struct Tier {
    objects: Vec<(ObjectInfo, Vec<u8>, u64)>,
    memory: OwnedFd,
    bytes: u64,
}

pub struct Worker {
    pub shared: Arc<Shared>,
    pub info: WorkerInfo,
    servers: Vec<Server>,
    _folder: tempfile::TempDir,
}

struct WorkerService(Arc<Shared>);

struct WorkerSession {
    shared: Arc<Shared>,
    pins: Mutex<HashSet<u64>>,
}

impl Worker {
    pub async fn start(id: u64, objects: &[(ObjectInfo, Vec<u8>)]) -> Self {
        let tier = rustix::fs::memfd_create("scripted", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        let mut at = 0u64;
        let file = std::fs::File::from(tier.try_clone().unwrap());
        let mut placed = Vec::new();
        for (info, bytes) in objects {
            file.write_all_at(bytes, at).unwrap();
            placed.push((info.clone(), bytes.clone(), at));
            at += (bytes.len() as u64).next_multiple_of(4096);
        }
        let tier_bytes = 1 << 40;
        file.set_len(tier_bytes).unwrap();
        rustix::fs::fcntl_add_seals(&tier, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let shared = Arc::new(Shared {
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            pins: Mutex::default(),
            counted: Mutex::default(),
            brought: Mutex::default(),
            read_of: Mutex::default(),
            mood: Mutex::new(Mood::Well),
            hint: Mutex::default(),
            nodes: NodeScript::default(),
            next_pin: AtomicUsize::new(1),
            tier: Tier { objects: placed, memory: tier, bytes: tier_bytes },
        });
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("worker.sock");
        let mut servers = Vec::new();
        let mut tcp_address = String::new();
        for address in [Address::Tcp("127.0.0.1:0".into()), Address::Unix(socket.clone())] {
            let listener = Listener::bind(&address).await.unwrap();
            if let Address::Tcp(address) = listener.local_address() {
                tcp_address = address;
            }
            let service = Arc::new(WorkerService(Arc::clone(&shared)));
            servers.push(Server::start(listener, Security::default(), service, ServerLimits::default()).unwrap());
        }
        let info = WorkerInfo {
            id: WorkerId(id),
            host: host_id().unwrap(),
            address: tcp_address,
            unix_socket: Some(socket.display().to_string()),
            dram_bytes: 64 << 20,
            disk_bytes: 0,
            turn: id,
            location: "host".into(),
            draining: false,
            protocol: 0,
        };
        Self { shared, info, servers, _folder: folder }
    }

    pub fn reads(&self) -> usize {
        self.shared.reads.load(Ordering::SeqCst)
    }

    pub fn writes(&self) -> usize {
        self.shared.writes.load(Ordering::SeqCst)
    }

    pub fn pins(&self) -> usize {
        self.shared.pins.lock().len()
    }

    pub fn node_calls(&self) -> usize {
        self.shared.nodes.calls.load(Ordering::SeqCst)
    }

    pub fn set(&self, mood: Mood) {
        *self.shared.mood.lock() = mood;
    }

    pub async fn stop(&mut self) {
        for server in self.servers.drain(..) {
            server.shutdown().await;
        }
    }

    /// Ends without a word, whatever it is doing.
    pub fn kill(&mut self) {
        self.servers.clear();
    }
}

impl Service for WorkerService {
    type Session = WorkerSession;

    fn open(&self, _: Peer) -> Result<WorkerSession> {
        self.0.sessions.fetch_add(1, Ordering::SeqCst);
        Ok(WorkerSession { shared: Arc::clone(&self.0), pins: Mutex::default() })
    }
}

impl WorkerSession {
    async fn answer(&self, request: DataRequest, payload: Bytes) -> Result<(DataReply, Vec<Bytes>, Option<OwnedFd>)> {
        let mood = *self.shared.mood.lock();
        let touches = matches!(request, DataRequest::Read { .. } | DataRequest::Put { .. });
        if let DataRequest::Put { .. } = request {
            self.shared.writes.fetch_add(1, Ordering::SeqCst);
        }
        if let DataRequest::Read { version, .. } = &request {
            self.shared.reads.fetch_add(1, Ordering::SeqCst);
            self.shared.read_of.lock().insert(version.key.clone());
        }
        if touches {
            match mood {
                Mood::Slow(time) => tokio::time::sleep(time).await,
                Mood::Hangs => std::future::pending().await,
                Mood::Fails(kind) => return Err(Error::new(kind, "as told")),
                _ => {}
            }
        }
        if mood == Mood::Stopped {
            std::future::pending::<()>().await;
        }
        match request {
            DataRequest::Attach => {
                let tier = self.shared.tier.memory.try_clone().unwrap();
                Ok((DataReply::Attached { arena_bytes: self.shared.tier.bytes }, Vec::new(), Some(tier)))
            }
            DataRequest::Read { version, start, len, in_place, .. } => {
                let (_, bytes, at) = self.shared.tier.objects.iter().find(|(info, ..)| info.version == version).expect("known");
                let range = start as usize..start as usize + len as usize;
                if !in_place || mood == Mood::Full {
                    let payload = Bytes::copy_from_slice(&bytes[range]);
                    return Ok((DataReply::Read { in_place: None, hint: *self.shared.hint.lock() }, vec![payload], None));
                }
                let pin = self.shared.next_pin.fetch_add(1, Ordering::SeqCst) as u64;
                self.pins.lock().insert(pin);
                self.shared.pins.lock().insert(pin);
                let offset = if mood == Mood::Lies { self.shared.tier.bytes } else { at + start };
                let span = Span { offset, len: u64::from(len) };
                Ok((DataReply::Read { in_place: Some((pin, span)), hint: *self.shared.hint.lock() }, Vec::new(), None))
            }
            DataRequest::Prefetch { version, .. } => {
                self.shared.brought.lock().insert(version.key);
                Ok((DataReply::Fetched { bytes: 0 }, Vec::new(), None))
            }
            DataRequest::Queue => Ok((DataReply::Queue(*self.shared.hint.lock()), Vec::new(), None)),
            DataRequest::Put { mount, key, .. } => {
                let version = ObjectVersion { mount, key, tag: VersionTag::etag("\"put\""), size: payload.len() as u64 };
                Ok((DataReply::Info(ObjectInfo { version, modified_ms: 0 }), Vec::new(), None))
            }
            _ => Err(Error::invalid("not scripted")),
        }
    }
}

impl WorkerSession {
    /// The first put gets no answer, the others do; what became of the first one is as told.
    async fn of_put(&self, call: &NodeCall<'_>, was_done: bool) -> Response {
        let reply = match (&call.op, call.number) {
            (NodeOp::WasDone { .. }, _) if !was_done => NodeReply::Outcome(false),
            (NodeOp::WasDone { number, .. }, _) if self.shared.nodes.puts.lock().contains(number) => NodeReply::Length(5),
            (_, Some(number)) => {
                self.shared.nodes.puts.lock().push(number);
                let is_first = self.shared.nodes.puts.lock().len() == 1;
                if is_first { std::future::pending().await } else { NodeReply::Length(5) }
            }
            _ => NodeReply::Failed(NodeError::new(NodeErrorKind::Invalid, "not scripted")),
        };
        Response::new(reply.encode())
    }
}

impl Session for WorkerSession {
    fn call(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> impl Future<Output = Response> + Send {
        let session = Arc::clone(self);
        async move {
            if let Some(call) = NodeCall::decode(&meta) {
                session.shared.nodes.calls.fetch_add(1, Ordering::SeqCst);
                if let Some(kind) = *session.shared.nodes.refuses.lock() {
                    return Response::new(NodeReply::Failed(NodeError::new(kind, "as told")).encode());
                }
                let was_done = *session.shared.nodes.was_done.lock();
                if let (Some(was_done), Ok(call)) = (was_done, call) {
                    return session.of_put(&call, was_done).await;
                }
                let leads_to = *session.shared.nodes.leads_to.lock();
                return match leads_to {
                    Some(dir) => Response::new(NodeReply::Elsewhere { dir, rest: 1 }.encode()),
                    None => std::future::pending().await,
                };
            }
            let (reply, payload, descriptor) = match session.answer(decode(&meta).unwrap(), payload).await {
                Ok(answer) => answer,
                Err(error) => (DataReply::failed(&error), Vec::new(), None),
            };
            Response { meta: encode(&reply), payload, descriptor, ..Response::default() }
        }
    }

    fn failed(&self, _: &Bytes) -> Response {
        Response::new(encode(&DataReply::failed(&Error::internal("a defect of the script"))))
    }

    fn notice(self: &Arc<Self>, meta: Bytes) {
        let DataNotice::Unpin { pins, counts } = decode(&meta).unwrap() else { return };
        for pin in pins {
            assert!(self.pins.lock().remove(&pin), "pin {pin} was given back twice");
            self.shared.pins.lock().remove(&pin);
        }
        for count in counts {
            let mut counted = self.shared.counted.lock();
            let (reads, bytes) = counted.entry(count.operation.0).or_default();
            *reads += count.reads;
            *bytes += count.bytes;
        }
    }

    fn closed(&self) -> Option<Box<dyn Send>> {
        for pin in self.pins.lock().drain() {
            self.shared.pins.lock().remove(&pin);
        }
        self.shared.sessions.fetch_sub(1, Ordering::SeqCst);
        None
    }
}

pub struct Coordinator {
    pub view: Arc<Mutex<ClusterView>>,
    /// What whoever asks for routes gets.
    pub routes: Arc<Mutex<RoutesDelta>>,
    pub address: Address,
    server: Option<Server>,
}

#[derive(Clone)]
struct CoordinatorService(Arc<Mutex<ClusterView>>, Arc<Mutex<RoutesDelta>>);

struct CoordinatorSession(CoordinatorService);

impl Coordinator {
    pub async fn start(workers: &[&Worker]) -> Self {
        let mount = Mount {
            id: MOUNT,
            name: "lake".parse().unwrap(),
            url: "file:///nonexistent-folder-of-a-test".into(),
            options: MountOptions::default(),
        };
        let workers = workers.iter().map(|worker| worker.info.clone()).collect();
        let view = ClusterView { version: 1, epoch: 1, mounts: vec![mount], pins: Vec::new(), workers, poll: None, losses: 0 };
        let view = Arc::new(Mutex::new(view));
        let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).await.unwrap();
        let address = listener.local_address();
        let routes = Arc::new(Mutex::new(RoutesDelta { version: (1 << 32) + 1, ..RoutesDelta::default() }));
        let service = Arc::new(CoordinatorService(Arc::clone(&view), Arc::clone(&routes)));
        let server = Server::start(listener, Security::default(), service, ServerLimits::default()).unwrap();
        Self { view, routes, address, server: Some(server) }
    }

    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
    }

    pub async fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> Client {
        let mut settings = ClientSettings::new(self.address.clone());
        change(&mut settings);
        Client::connect(settings).await.unwrap()
    }
}

impl Service for CoordinatorService {
    type Session = CoordinatorSession;

    fn open(&self, _: Peer) -> Result<CoordinatorSession> {
        Ok(CoordinatorSession(self.clone()))
    }
}

impl Session for CoordinatorSession {
    fn call(self: &Arc<Self>, meta: Bytes, _: Bytes) -> impl Future<Output = Response> + Send {
        let (view, routes) = (self.0.0.lock().clone(), self.0.1.lock().clone());
        async move {
            let reply = match decode(&meta).unwrap() {
                ControlCall::Ask(ControlRequest::View { have }) if have == view.version => ControlReply::Unchanged,
                ControlCall::Ask(ControlRequest::View { .. }) => ControlReply::View(view),
                ControlCall::Ask(ControlRequest::Routes { .. }) => ControlReply::Routes(routes),
                _ => ControlReply::failed(&Error::invalid("not scripted")),
            };
            Response::new(encode(&reply))
        }
    }

    fn failed(&self, _: &Bytes) -> Response {
        Response::new(encode(&ControlReply::failed(&Error::internal("a defect of the script"))))
    }

    fn notice(self: &Arc<Self>, _: Bytes) {}
}

/// An object of `len` bytes that no two keys share.
pub fn object(key: &str, len: usize) -> (ObjectInfo, Vec<u8>) {
    let seed = key.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let bytes = (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect();
    let version = ObjectVersion { mount: MOUNT, key: Key::new(key).unwrap(), tag: VersionTag::etag("\"1\""), size: len as u64 };
    (ObjectInfo { version, modified_ms: 1 }, bytes)
}

/// Takes a worker out of the view, as a coordinator does when its lease is over.
pub fn lose(coordinator: &Coordinator, worker: &Worker) {
    let mut view = coordinator.view.lock();
    view.workers.retain(|info| info.id != worker.info.id);
    (view.version, view.losses) = (view.version + 1, view.losses + 1);
}
