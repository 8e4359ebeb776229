//! Plain GETs over kept connections, presigned before the time is taken, so that the client costs next to nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use forebay_types::split_mix;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::KEY;
use crate::sign::{Key, presign};

/// A GET of an object, or of a range of it.
#[derive(Clone)]
pub struct Ask {
    pub path: String,
    pub range: Option<(u64, u64)>,
    pub bytes: u64,
}

/// Asks for all of it over so many connections, each for the next that nobody asked for; the time that it took.
pub async fn run(address: SocketAddr, asks: &[Ask], connections: usize) -> Duration {
    run_as(KEY, address, asks, connections).await
}

/// The same with another key.
pub async fn run_as(key: Key, address: SocketAddr, asks: &[Ask], connections: usize) -> Duration {
    let requests: Vec<(String, u64)> = asks.iter().map(|ask| (text_as(key, address, ask), ask.bytes)).collect();
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
            tokio::spawn(async move {
                let mut socket = TcpStream::connect(address).await.unwrap();
                socket.set_nodelay(true).unwrap();
                let mut buffer = vec![0; 256 << 10];
                while let Some((text, bytes)) = requests.get(next.fetch_add(1, Relaxed)) {
                    socket.write_all(text.as_bytes()).await.unwrap();
                    assert_eq!(answer(&mut socket, &mut buffer).await, *bytes, "{text}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    begun.elapsed()
}

pub fn text(address: SocketAddr, ask: &Ask) -> String {
    text_as(KEY, address, ask)
}

fn text_as(key: Key, address: SocketAddr, ask: &Ask) -> String {
    let range = ask.range.map_or(String::new(), |(start, end)| format!("Range: bytes={start}-{}\r\n", end - 1));
    format!("GET {} HTTP/1.1\r\nHost: {address}\r\n{range}\r\n", presign(key, address, &ask.path))
}

/// Takes an answer; the bytes of its body.
pub async fn answer(socket: &mut TcpStream, buffer: &mut [u8]) -> u64 {
    let mut filled = 0;
    let (head_end, length) = loop {
        let read = socket.read(&mut buffer[filled..]).await.unwrap();
        assert!(read > 0, "the server closed");
        filled += read;
        if let Some(end) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 20"), "{head}");
            let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            break (end + 4, length.trim().parse::<u64>().unwrap());
        }
    };
    let mut left = length - (filled - head_end) as u64;
    while left > 0 {
        let most = buffer.len().min(left as usize);
        let read = socket.read(&mut buffer[..most]).await.unwrap();
        assert!(read > 0, "the server closed");
        left -= read as u64;
    }
    length
}

/// Random ranges of that many bytes in objects of a size, the same ones every time.
pub fn ranges(paths: &[String], object_bytes: u64, bytes: u64, count: usize) -> Vec<Ask> {
    let mut state = 0;
    let mut roll = |sides: u64| split_mix(&mut state) % sides;
    let asks = (0..count).map(|_| {
        let path = paths[roll(paths.len() as u64) as usize].clone();
        let start = roll(object_bytes - bytes);
        Ask { path, range: Some((start, start + bytes)), bytes }
    });
    asks.collect()
}

pub fn whole(paths: &[String], bytes: u64) -> Vec<Ask> {
    paths.iter().map(|path| Ask { path: path.clone(), range: None, bytes }).collect()
}
