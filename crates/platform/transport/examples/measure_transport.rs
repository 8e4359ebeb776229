//! Round trips and bandwidth of connections between two processes, beside plain loopback TCP:
//! `cargo run --profile fast -p forebay-transport --example measure_transport [-- KIB ...]`, with the sizes of bulk reads.
#![allow(clippy::print_stdout, reason = "it prints figures")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use forebay_transport::{Address, Connection, Listener, Peer, Response, Security, Server, ServerLimits, Service, Session};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes moved for one figure of bandwidth.
const BULK_BYTES: usize = 4 << 30;

struct Store(Bytes);

impl Service for Store {
    type Session = Store;

    fn open(&self, _: Peer) -> forebay_types::Result<Store> {
        Ok(Store(self.0.clone()))
    }
}

impl Session for Store {
    /// Gives as many bytes as the message says.
    async fn call(self: &Arc<Self>, meta: Bytes, _: Bytes) -> Response {
        if &meta[..] == b"ring" {
            return Response { meta, opens_ring: true, ..Response::default() };
        }
        let len = u32::from_le_bytes(meta[..4].try_into().unwrap_or_default()) as usize;
        let payload = if len == 0 { Vec::new() } else { vec![self.0.slice(..len)] };
        Response { meta, payload, ..Response::default() }
    }

    fn failed(&self, meta: &Bytes) -> Response {
        Response::new(meta.clone())
    }

    fn notice(self: &Arc<Self>, _: Bytes) {}
}

#[tokio::main]
async fn main() -> Outcome {
    match std::env::args().nth(1) {
        Some(socket) if socket.starts_with('/') => serve(socket).await,
        _ => tokio::spawn(measure()).await?,
    }
}

async fn serve(socket: String) -> Outcome {
    let store = Arc::new(Store(vec![1; 64 << 20].into()));
    let tcp = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).await?;
    let unix = Listener::bind(&Address::Unix(socket.into())).await?;
    let plain = TcpListener::bind("127.0.0.1:0")?;
    println!("{} {}", tcp.local_address(), plain.local_addr()?);
    let _tcp = Server::start(tcp, Security::default(), store.clone(), ServerLimits::default())?;
    let _unix = Server::start(unix, Security::default(), store, ServerLimits::default())?;
    std::thread::spawn(move || {
        for stream in plain.incoming().flatten() {
            std::thread::spawn(move || give(stream));
        }
    });
    // Ends when the parent does.
    tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await??;
    Ok(())
}

/// Plain TCP: writes of as many bytes as asked for, until there is no one to take them.
fn give(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut len = [0; 8];
    let bytes = vec![1; 64 << 20];
    while stream.read_exact(&mut len).is_ok() {
        stream.write_all(&bytes[..u64::from_le_bytes(len) as usize])?;
    }
    Ok(())
}

async fn measure() -> Outcome {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("socket");
    let mut server = Command::new(std::env::current_exe()?).arg(&socket).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let outcome = figures(&mut server, Address::Unix(socket)).await;
    server.kill()?;
    server.wait()?;
    outcome
}

async fn figures(server: &mut Child, unix: Address) -> Outcome {
    let mut line = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let (tcp, plain) = line.trim().split_once(' ').ok_or("no addresses")?;
    let tcp = Connection::connect(&tcp.parse()?, &Security::default()).await?;
    let unix = Connection::connect(&unix, &Security::default()).await?;
    let asked = std::env::args().skip(1).map(|kib| Ok(kib.parse::<usize>()? << 10)).collect::<Outcome<Vec<_>>>()?;
    let usual = vec![64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
    let near = unix.call(Bytes::from_static(b"ring"), Vec::new()).await?.descriptor.ok_or("no ring")?;
    for len in [0, 64, 1024, 16 << 10] {
        println!("unix  {len:7} B call p50 {:6.1} us", round_trips(&unix, len).await?.0);
    }
    unix.use_ring(near)?;
    for len in [0, 64, 1024, 16 << 10] {
        let (p50, p99) = round_trips(&unix, len).await?;
        println!("ring  {len:7} B call p50 {p50:6.2} us p99 {p99:6.2} us");
    }
    for (name, connection) in [("unix", &unix), ("tcp", &tcp)] {
        for (what, len) in [("small", 0u32), ("64 KiB", 64 << 10)] {
            let (p50, p99) = round_trips(connection, len).await?;
            println!("{name:5} {what:7} call  p50 {p50:6.1} us  p99 {p99:6.1} us");
        }
    }
    println!("plain 64 KiB  read  p50 {:6.1} us", plain_round_trips(plain, 64 << 10)?);
    for len in if asked.is_empty() { usual } else { asked } {
        let mut ratios = Vec::new();
        let mut bests = [0f64; 3];
        for _ in 0..5 {
            let peer = plain_bulk(plain, len)?;
            let ours = bulk(&tcp, len).await?;
            let unix = bulk(&unix, len).await?;
            ratios.push(ours / peer);
            bests = [bests[0].max(ours), bests[1].max(peer), bests[2].max(unix)];
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{:6} KiB reads  tcp {:5.2} GB/s  plain tcp {:5.2} GB/s  ratio {:4.2} (median of 5)  unix {:5.2} GB/s",
            len >> 10,
            bests[0],
            bests[1],
            ratios[2],
            bests[2]
        );
    }
    Ok(())
}

async fn round_trips(connection: &Connection, len: u32) -> Outcome<(f64, f64)> {
    let mut times = Vec::new();
    for _ in 0..20_000 {
        let began = Instant::now();
        let answer = connection.call_near(Bytes::copy_from_slice(&len.to_le_bytes()), Vec::new()).await?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
        assert_eq!(answer.payload.len(), len as usize);
    }
    times.drain(..1000);
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[times.len() * 99 / 100]))
}

/// GB/s with four reads of `len` bytes in flight.
async fn bulk(connection: &Connection, len: usize) -> Outcome<f64> {
    let began = Instant::now();
    let reads = BULK_BYTES / 4 / len / 4;
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let connection = connection.clone();
            tokio::spawn(async move {
                for _ in 0..reads {
                    let answer = connection.call(Bytes::copy_from_slice(&(len as u32).to_le_bytes()), Vec::new()).await?;
                    assert_eq!(answer.payload.len(), len);
                }
                Outcome::Ok(())
            })
        })
        .collect();
    for reader in readers {
        reader.await??;
    }
    Ok((reads * 4 * len) as f64 / began.elapsed().as_secs_f64() / 1e9)
}

/// The same by blocking reads into one buffer of `len` bytes, with four requests sent ahead.
fn plain_bulk(address: &str, len: usize) -> Outcome<f64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; len];
    let reads = BULK_BYTES / 4 / len;
    let ask = (len as u64).to_le_bytes();
    stream.write_all(&ask.repeat(4))?;
    let began = Instant::now();
    for read in 0..reads {
        stream.read_exact(&mut buffer)?;
        if read + 4 < reads {
            stream.write_all(&ask)?;
        }
    }
    Ok((reads * len) as f64 / began.elapsed().as_secs_f64() / 1e9)
}

fn plain_round_trips(address: &str, len: usize) -> Outcome<f64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; len];
    let mut times = Vec::new();
    for _ in 0..10_000 {
        let began = Instant::now();
        stream.write_all(&(len as u64).to_le_bytes())?;
        stream.read_exact(&mut buffer)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
