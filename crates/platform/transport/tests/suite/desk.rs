//! A service that does what the request's text says.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use forebay_transport::{
    Address, Answer, Connection, Leaving, Listener, Peer, Place, Response, Security, Sent, Server, ServerLimits, Service, Session,
};
use forebay_types::{Error, Result};
use tokio::task::JoinHandle;

#[derive(Default)]
pub struct Desk {
    /// What `give` gives.
    piece: OnceLock<Bytes>,
    pub refuses: AtomicBool,
    pub opened: AtomicUsize,
    pub closed: AtomicUsize,
    pub calls: Calls,
    pub lent: AtomicUsize,
    pub asked: AtomicUsize,
    pub notices: parking_lot::Mutex<Vec<Bytes>>,
    pub peers: parking_lot::Mutex<Vec<Peer>>,
    /// Bytes that were given and are sent.
    pub given: AtomicU64,
    pub leaving: Leaving,
}

/// The calls of all sessions.
#[derive(Default)]
pub struct Calls {
    pub running: AtomicUsize,
    pub running_most: AtomicUsize,
    pub dropped: AtomicUsize,
}

/// So many bytes that `give` gives.
struct Given {
    desk: Arc<Desk>,
    bytes: u64,
}

forebay_types::shown!(Given: bytes);

impl Sent for Given {
    fn sent(self: Box<Self>) {
        self.desk.given.fetch_add(self.bytes, Ordering::SeqCst);
    }
}

#[derive(Default)]
pub struct DeskService(Arc<Desk>);

pub struct DeskSession {
    desk: Arc<Desk>,
    lent: parking_lot::Mutex<Option<Lent>>,
}

/// What a peer looks at in place.
struct Lent(Arc<Desk>);

impl Lent {
    fn new(desk: &Arc<Desk>) -> Self {
        desk.lent.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(desk))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.lent.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for DeskService {
    type Session = DeskSession;

    fn open(&self, peer: Peer) -> Result<DeskSession> {
        if self.0.refuses.load(Ordering::SeqCst) {
            return Err(Error::denied("not today: come back tomorrow"));
        }
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        self.0.peers.lock().push(peer);
        Ok(DeskSession { desk: self.0.clone(), lent: Default::default() })
    }

    fn leaving(&self) -> Option<Leaving> {
        Some(self.0.leaving.clone())
    }
}

/// Counts a call that runs, and one that was dropped before its end.
struct Running<'a>(&'a Desk, bool);

impl<'a> Running<'a> {
    fn new(desk: &'a Desk) -> Self {
        let running = desk.calls.running.fetch_add(1, Ordering::SeqCst) + 1;
        desk.calls.running_most.fetch_max(running, Ordering::SeqCst);
        Self(desk, false)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.calls.running.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.calls.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Where payloads of "place" come, and in pieces those of "pieces".
struct DeskPlace {
    desk: Arc<Desk>,
    bytes: usize,
    in_pieces: bool,
    memory: Vec<u8>,
    filled: bool,
}

impl Place for DeskPlace {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn memory(&mut self) -> Option<&mut [u8]> {
        (!self.in_pieces).then_some(&mut self.memory)
    }

    fn put(&mut self, piece: &[u8]) {
        self.memory.extend_from_slice(piece);
    }

    fn filled(mut self: Box<Self>) -> Response {
        self.filled = true;
        Response::new(Bytes::from(forebay_types::crc32c(&self.memory).to_le_bytes().to_vec()))
    }
}

impl Drop for DeskPlace {
    fn drop(&mut self) {
        self.desk.calls.dropped.fetch_add(usize::from(!self.filled), Ordering::SeqCst);
    }
}

impl Session for DeskSession {
    async fn call(self: &Arc<Self>, meta: Bytes, payload: Bytes) -> Response {
        self.desk.asked.fetch_add(1, Ordering::SeqCst);
        let mut running = Running::new(&self.desk);
        let text = String::from_utf8_lossy(&meta).into_owned();
        let (what, number) = text.split_once(' ').unwrap_or((&text, "0"));
        let number: u64 = number.parse().unwrap_or(0);
        let response = match what {
            "echo" => Response { meta, payload: vec![payload], ..Response::default() },
            // Answers after so many milliseconds.
            "sleep" => {
                tokio::time::sleep(Duration::from_millis(number)).await;
                Response::new(meta)
            }
            // Gives so many bytes back, in pieces.
            "give" => {
                let piece = self.desk.piece.get_or_init(|| pattern(1 << 20).into()).clone();
                let whole = (number >> 20) as usize;
                let mut pieces = vec![piece.clone(); whole];
                pieces.push(piece.slice(..(number as usize) & ((1 << 20) - 1)));
                let sent = Some(Box::new(Given { desk: self.desk.clone(), bytes: number }) as Box<dyn Sent>);
                Response { meta, payload: pieces, sent, ..Response::default() }
            }
            // Notes it in a task of its own after so many milliseconds; never answers.
            "spawn" => {
                let desk = self.desk.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(number)).await;
                    desk.notices.lock().push("spawned".into());
                });
                std::future::pending().await
            }
            "sum" => Response::new(Bytes::from(forebay_types::crc32c(&payload).to_le_bytes().to_vec())),
            "file" => Response { meta, descriptor: Some(memory(b"what the descriptor holds")), ..Response::default() },
            "ring" => Response { meta, opens_ring: true, ..Response::default() },
            // Keeps who answers busy for so many microseconds.
            "spin" => {
                let began = std::time::Instant::now();
                while began.elapsed() < Duration::from_micros(number) {}
                Response::new(meta)
            }
            "panic at once" => panic!("as asked for"),
            "panic" => {
                tokio::task::yield_now().await;
                panic!("as asked for")
            }
            // Keeps something until the peer is gone.
            "lend" => {
                *self.lent.lock() = Some(Lent::new(&self.desk));
                Response::new(meta)
            }
            other => panic!("no such request: {other}"),
        };
        running.1 = true;
        response
    }

    fn place(self: &Arc<Self>, meta: &Bytes, payload_bytes: u32) -> Option<Box<dyn Place>> {
        let (bytes, in_pieces) = (payload_bytes as usize, meta == "pieces");
        let memory = vec![0; if in_pieces { 0 } else { bytes }];
        let place = || DeskPlace { desk: self.desk.clone(), bytes, in_pieces, memory, filled: false };
        (meta == "place" || in_pieces).then(|| Box::new(place()) as Box<dyn Place>)
    }

    fn failed(&self, meta: &Bytes) -> Response {
        Response::new([b"failed: ", &meta[..]].concat().into())
    }

    fn notice(self: &Arc<Self>, meta: Bytes) {
        assert_ne!(meta, "panic", "as asked for");
        self.desk.notices.lock().push(meta);
    }

    fn closed(&self) -> Option<Box<dyn Send>> {
        self.desk.closed.fetch_add(1, Ordering::SeqCst);
        self.lent.lock().take().map(|lent| Box::new(lent) as Box<dyn Send>)
    }
}

pub fn memory(contents: &[u8]) -> OwnedFd {
    let fd = rustix::fs::memfd_create("desk", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let mut file = std::fs::File::from(fd);
    file.write_all(contents).unwrap();
    file.into()
}

pub fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

pub fn local() -> Address {
    Address::Tcp("127.0.0.1:0".into())
}

/// What servers and clients of these tests are secured by when they don't say otherwise.
pub fn ours() -> Security {
    owner(crate::raw::SECRET)
}

/// Of who knows this secret.
pub fn owner(secret: &str) -> Security {
    Security::owner(secret).unwrap()
}

pub struct Open {
    pub desk: Arc<Desk>,
    pub server: Server,
    pub address: Address,
}

pub async fn open_at(address: &Address, security: Security, limits: ServerLimits) -> Open {
    let listener = Listener::bind(address).await.unwrap();
    let address = listener.local_address();
    let desk = Arc::new(Desk::default());
    let server = Server::start(listener, security, Arc::new(DeskService(desk.clone())), limits).unwrap();
    Open { desk, server, address }
}

pub async fn open() -> Open {
    open_at(&local(), ours(), ServerLimits::default()).await
}

impl Open {
    pub async fn connect(&self) -> Connection {
        Connection::connect(&self.address, &ours()).await.unwrap()
    }
}

/// A call that is under way.
pub fn asked(connection: &Connection, what: impl Into<Bytes>) -> JoinHandle<Result<Answer>> {
    let (connection, what) = (connection.clone(), what.into());
    tokio::spawn(async move { connection.call(what, vec![]).await })
}

/// A folder with a Unix socket's path in it.
pub fn unix() -> (tempfile::TempDir, Address) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    (folder, Address::Unix(path))
}

/// Waits until `what` holds, 5 s at most.
pub async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it did not come to pass within 5 s");
}
