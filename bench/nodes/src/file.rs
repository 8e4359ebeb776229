use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeType};

use crate::figure::{at_least, median};
use crate::rig::Rig;

/// Bytes of the file, and of a request.
const BYTES: usize = 512 << 20;
const REQUEST: usize = 1 << 20;

/// Sequential writes and reads in requests of 1 MB, against a plain sender and receiver.
pub async fn all(rounds: usize) {
    let rig = Rig::start();
    for (unix, way) in [(false, "tcp"), (true, "unix")] {
        let nodes = rig.nodes(unix).await;
        let (mut writes, mut reads, mut copies, mut plain) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut into = vec![0; REQUEST];
        let piece = Bytes::from(vec![7; REQUEST]);
        for _ in 0..rounds {
            plain.push(send_and_receive(unix));
            nodes.create("/tmp/f", CreateOptions::new(NodeType::File)).await.unwrap();
            let began = Instant::now();
            let mut writer = nodes.writer("/tmp/f").await.unwrap();
            for _ in 0..BYTES / REQUEST {
                writer.write_bytes(piece.clone()).await.unwrap();
            }
            assert_eq!(writer.finish().await.unwrap(), BYTES as u64);
            writes.push(gbytes(began));
            let began = Instant::now();
            let mut reader = nodes.reader("/tmp/f", 0).await.unwrap();
            let mut read = 0;
            while let Some(bytes) = reader.next().await.unwrap() {
                read += bytes.len();
            }
            assert_eq!(read, BYTES);
            reads.push(gbytes(began));
            let began = Instant::now();
            let mut reader = nodes.reader("/tmp/f", 0).await.unwrap();
            while let Some(bytes) = reader.next().await.unwrap() {
                into[..bytes.len()].copy_from_slice(&bytes);
            }
            copies.push(gbytes(began));
            nodes.delete("/tmp/f", false).await.unwrap();
        }
        let plain = median(plain);
        at_least(&format!("{way} sequential write"), "GB/s", median(writes), ("plain sender and receiver", plain), 0.9);
        // Beside the worker it is read in place.
        at_least(&format!("{way} sequential read"), "GB/s", median(reads), ("plain sender and receiver", plain), 0.9);
        let name = format!("{way} sequential read, copied to a buffer");
        at_least(&name, "GB/s", median(copies), ("plain sender and receiver", plain), 0.9);
    }
}

fn gbytes(began: Instant) -> f64 {
    BYTES as f64 / began.elapsed().as_secs_f64() / 1e9
}

/// What a socket gives: 1 MB writes on a thread, 64 KB reads here, which are the fastest.
fn send_and_receive(unix: bool) -> f64 {
    let (from, to): (Box<dyn Write + Send>, Box<dyn Read>) = if unix {
        let (from, to) = UnixStream::pair().unwrap();
        (Box::new(from), Box::new(to))
    } else {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Box::new(from), Box::new(listener.accept().unwrap().0))
    };
    let (mut from, mut to) = (from, to);
    let began = Instant::now();
    let sender = std::thread::spawn(move || {
        let piece = vec![7; REQUEST];
        (0..BYTES / REQUEST).for_each(|_| from.write_all(&piece).unwrap());
    });
    let mut buffer = vec![0; 64 << 10];
    let mut left = BYTES;
    while left > 0 {
        left -= to.read(&mut buffer).unwrap();
    }
    let figure = gbytes(began);
    sender.join().unwrap();
    figure
}
