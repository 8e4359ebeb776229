//! Bars of the memory that a gateway's process takes beside the tiers: at work, and with ten thousand idle connections.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::load::{Ask, answer, ranges, run, text, whole};
use crate::rig::{Rig, environment};
use forebay_bench_harness::{at_most, cpu};

const FILE_BYTES: u64 = 30_000_000;
const IDLE: usize = 10_000;

/// This process's memory that is not the tiers' (which are shared memory), in bytes: the gateway, the worker, the
/// coordinator, the store and the load together, so more than a gateway has.
fn own_bytes() -> u64 {
    cpu::own_bytes("RssAnon:")
}

pub async fn all() {
    environment();
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let files = rig.store("files", 32, FILE_BYTES as usize);
    let small = rig.store("small", 2000, 50_000);
    let most = Arc::new(AtomicU64::new(0));
    let watching = tokio::spawn({
        let most = Arc::clone(&most);
        async move {
            loop {
                most.fetch_max(own_bytes(), Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    for _ in 0..2 {
        run(rig.address(), &whole(&files, FILE_BYTES), 16).await;
        run(rig.address(), &whole(&small, 50_000), 16).await;
        run(rig.address(), &ranges(&files, FILE_BYTES, 1 << 20, 2000), 16).await;
    }
    watching.abort();
    at_most("memory-at-work", "bytes", most.load(Relaxed) as f64, ("bound", 150e6), 1.0);
    idle(&rig, &whole(&small, 50_000)[0]).await;
}

/// Each has asked once and is kept. The other ends are a process of its own: its memory is not the gateway's, and one
/// process may not have the descriptors of both.
async fn idle(rig: &Rig, ask: &Ask) {
    descriptors();
    let request = text(rig.address(), ask);
    let mut clients = Command::new(std::env::current_exe().unwrap())
        .args(["--idle-clients-of", &rig.address().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut told, mut heard) = (clients.stdin.take().unwrap(), BufReader::new(clients.stdout.take().unwrap()).lines());
    told.write_all(request.as_bytes()).await.unwrap();
    drop(told);
    assert_eq!(heard.next_line().await.unwrap().as_deref(), Some("connected"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    at_most("memory-with-10000-idle-connections", "bytes", own_bytes() as f64, ("bound", 400e6), 1.0);
    assert_eq!(heard.next_line().await.unwrap().as_deref(), Some("still served"));
    assert!(clients.wait().await.unwrap().success());
}

/// The other ends: connects 10,000 times, asks what comes at standard input, waits, and asks some of them again.
pub async fn idle_clients(gateway: SocketAddr) {
    descriptors();
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request).unwrap();
    let mut buffer = vec![0; 256 << 10];
    let mut sockets = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        let mut socket = TcpStream::connect(gateway).await.unwrap();
        socket.write_all(&request).await.unwrap();
        answer(&mut socket, &mut buffer).await;
        sockets.push(socket);
    }
    println!("connected");
    tokio::time::sleep(Duration::from_secs(2)).await;
    for socket in sockets.iter_mut().step_by(100) {
        socket.write_all(&request).await.unwrap();
        answer(socket, &mut buffer).await;
    }
    println!("still served");
}

/// As many files and sockets as this process may have at all.
fn descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert!(maximum.is_none_or(|most| most > IDLE as u64 + 500), "raise the hard limit of open files (ulimit -Hn)");
}
