//! A network that is cut without either end noticing, to put between two processes of a test.

use forebay_transport::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A network between two processes that can be cut: connections stay open, and nothing passes.
pub struct Proxy {
    /// Where it listens.
    pub address: Address,
    flows: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// To what `target` holds by the time of the first connection.
    pub async fn start(target: watch::Receiver<Option<String>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let (flows, seen) = watch::channel(true);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (seen, mut target) = (seen.clone(), target.clone());
                tokio::spawn(async move {
                    let to = target.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                    let Ok(far) = TcpStream::connect(to).await else { return };
                    near.set_nodelay(true).unwrap();
                    far.set_nodelay(true).unwrap();
                    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                    tokio::join!(pass(near_read, far_write, seen.clone()), pass(far_read, near_write, seen));
                });
            }
        });
        Self { address, flows, task }
    }

    /// To a fixed address.
    pub async fn before(target: &Address) -> Self {
        let Address::Tcp(target) = target else { panic!("{target} is not TCP") };
        Self::start(watch::channel(Some(target.clone())).1).await
    }

    /// Nothing passes from now on.
    pub fn cut(&self) {
        self.flows.send_replace(false);
    }

    /// All passes again, what came meanwhile too.
    pub fn heal(&self) {
        self.flows.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut flows: watch::Receiver<bool>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        if flows.wait_for(|flows| *flows).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
