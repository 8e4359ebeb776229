//! A network that is slow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Bytes that the network takes before it is slow.
const BUFFER: u32 = 128 << 10;

/// A network before a worker that passes so many bytes a second of what the worker sends, over all connections.
pub struct Paced {
    pub address: String,
    target: watch::Sender<Option<String>>,
    pace: Arc<Pace>,
    task: JoinHandle<()>,
}

/// What the network has passed.
struct Pace {
    bytes_per_sec: f64,
    free_at: Mutex<Instant>,
    passed: AtomicU64,
}

impl Pace {
    async fn turn(&self, bytes: usize) {
        let until = {
            let mut free_at = self.free_at.lock().unwrap();
            let start = (*free_at).max(Instant::now() - Duration::from_millis(20));
            *free_at = start + Duration::from_secs_f64(bytes as f64 / self.bytes_per_sec);
            *free_at
        };
        tokio::time::sleep_until(until).await;
    }
}

impl Paced {
    pub async fn start(bytes_per_sec: f64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (target, seen) = watch::channel(None::<String>);
        let pace = Arc::new(Pace { bytes_per_sec, free_at: Mutex::new(Instant::now()), passed: AtomicU64::new(0) });
        let passing = Arc::clone(&pace);
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (mut seen, pace) = (seen.clone(), Arc::clone(&pace));
                tokio::spawn(async move {
                    let to = seen.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                    let socket = TcpSocket::new_v4().unwrap();
                    socket.set_recv_buffer_size(BUFFER).unwrap();
                    let far = socket.connect(to.parse().unwrap()).await.unwrap();
                    near.set_nodelay(true).unwrap();
                    far.set_nodelay(true).unwrap();
                    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                    tokio::join!(pass(near_read, far_write, None), pass(far_read, near_write, Some(pace)));
                });
            }
        });
        Self { address, target, pace: passing, task }
    }

    /// Bytes that it has passed of what the worker sent.
    pub fn passed(&self) -> u64 {
        self.pace.passed.load(Relaxed)
    }

    /// Where it leads to: connections of before wait for this.
    pub fn to(&self, address: &str) {
        self.target.send_replace(Some(address.to_string()));
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, pace: Option<Arc<Pace>>) {
    let mut buffer = vec![0; 32 << 10];
    loop {
        let read = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        if let Some(pace) = &pace {
            pace.turn(read).await;
            pace.passed.fetch_add(read as u64, Relaxed);
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
