//! A link that can be cut, one way or both, and slowed down: connections go through this process on their way.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Bytes that go over at once.
const PIECE_BYTES: usize = 16 << 10;

/// How one direction of a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As fast as it can.
    Open,
    /// So many bytes a second on each connection.
    Slow(u64),
    /// Nothing comes through, and nobody is told: what is sent waits, as packets that are sent again do.
    Cut,
}

/// A link to one address. Ends when dropped.
#[derive(Debug)]
pub struct Link {
    /// Where it listens.
    pub address: SocketAddr,
    target: watch::Sender<SocketAddr>,
    there: watch::Sender<Way>,
    back: watch::Sender<Way>,
    task: JoinHandle<()>,
}

impl Link {
    /// Who connects to `listen` is connected to `target`.
    pub async fn open(listen: SocketAddr, target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let (there, back) = (watch::Sender::new(Way::Open), watch::Sender::new(Way::Open));
        let target = watch::Sender::new(target);
        let task = tokio::spawn(accept(listener, target.clone(), there.clone(), back.clone()));
        Ok(Self { address: listen, target, there, back, task })
    }

    /// Who connects from now on is connected to another target.
    pub fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }

    /// How it is from now on, from those who connect to the target and back.
    pub fn set(&self, there: Way, back: Way) {
        self.there.send_replace(there);
        self.back.send_replace(back);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: watch::Sender<SocketAddr>, there: watch::Sender<Way>, back: watch::Sender<Way>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    let target = *target.borrow();
                    connections.spawn(carry(socket, target, there.subscribe(), back.subscribe()));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

/// Carries one connection until one side ends it. An error ends it too, which is what both sides are told.
async fn carry(socket: TcpStream, target: SocketAddr, mut there: watch::Receiver<Way>, back: watch::Receiver<Way>) {
    until_open(&mut there).await;
    let Ok(other) = TcpStream::connect(target).await else { return };
    // Small messages do not wait for each other.
    let _ = (socket.set_nodelay(true), other.set_nodelay(true));
    let ((from, to), (other_from, other_to)) = (socket.into_split(), other.into_split());
    let _ = tokio::try_join!(pass(from, other_to, there), pass(other_from, to, back));
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = from.read(&mut piece).await?;
        until_open(&mut way).await;
        if bytes == 0 {
            return to.shutdown().await;
        }
        let now = *way.borrow();
        if let Way::Slow(bytes_per_sec) = now {
            tokio::time::sleep(Duration::from_secs_f64(bytes as f64 / bytes_per_sec.max(1) as f64)).await;
        }
        to.write_all(&piece[..bytes]).await?;
    }
}

async fn until_open(way: &mut watch::Receiver<Way>) {
    // The sender lives as long as the link, and with it every connection.
    let _ = way.wait_for(|way| *way != Way::Cut).await;
}
