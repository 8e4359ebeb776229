//! A way to an address that can be cut: nothing comes through then, and nobody is told.

use forebay_client::Address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Relay {
    pub address: Address,
    is_cut: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    pub async fn to(target: &Address) -> Self {
        let Address::Tcp(target) = target.clone() else { panic!("{target} is no TCP address") };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap().to_string());
        let is_cut = watch::Sender::new(false);
        let cut = is_cut.clone();
        let task = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                let (target, cut) = (target.clone(), cut.clone());
                tokio::spawn(async move {
                    let Ok(far) = TcpStream::connect(&target).await else { return };
                    let ((from, to), (far_from, far_to)) = (near.into_split(), far.into_split());
                    tokio::join!(pass(from, far_to, cut.subscribe()), pass(far_from, to, cut.subscribe()));
                });
            }
        });
        Self { address, is_cut, task }
    }

    pub fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut is_cut: watch::Receiver<bool>) {
    let mut piece = vec![0; 16 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        if is_cut.wait_for(|is_cut| !is_cut).await.is_err() || to.write_all(&piece[..bytes]).await.is_err() {
            return;
        }
    }
}
