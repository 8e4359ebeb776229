//! Bar of files in memory: writing and reading in sequence, against a plain socket of the same kind.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use forebay_client::{CreateOptions, NodeType};

use crate::rig::Rig;
use crate::sequential::{BYTES, REQUEST, Sequential, gbytes};
use forebay_bench_harness::{Bar, Figure, at_least, median};

/// Sequential writes and reads in requests of 1 MB, against a plain sender and receiver.
pub async fn all(rounds: usize) {
    let rig = Rig::start();
    for (unix, way) in [(false, "tcp"), (true, "unix")] {
        let nodes = rig.nodes(unix).await;
        let file = Sequential::new(&nodes);
        let (mut writes, mut reads, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        let (mut plain, mut kept) = (Vec::new(), Vec::new());
        let mut into = vec![0; REQUEST];
        for _ in 0..rounds {
            plain.push(send_and_receive(unix, |_| ()));
            let mut memory = tempfile::tempfile_in("/dev/shm").unwrap();
            kept.push(send_and_receive(unix, |bytes| memory.write_all(bytes).unwrap()));
            writes.push(file.write(CreateOptions::new(NodeType::File)).await);
            reads.push(file.read(|_| ()).await);
            copies.push(file.read(|bytes| into[..bytes.len()].copy_from_slice(bytes)).await);
            file.delete().await;
        }
        let (plain, writes) = (median(plain), median(writes));
        at_least(&format!("{way} sequential write"), "GB/s", writes, ("plain sender and receiver", plain), 0.9);
        let name = format!("{way} sequential write, beside a receiver that keeps it");
        Figure::new(name, writes, "GB/s", "plain sender and receiver into a new file in memory", median(kept), Bar::Nothing)
            .print(true);
        // Beside the worker it is read in place.
        at_least(&format!("{way} sequential read"), "GB/s", median(reads), ("plain sender and receiver", plain), 0.9);
        let name = format!("{way} sequential read, copied to a buffer");
        at_least(&name, "GB/s", median(copies), ("plain sender and receiver", plain), 0.9);
    }
}

/// What a socket gives: 1 MB writes on a thread, 64 KB reads here, which are the fastest, each handed on.
fn send_and_receive(unix: bool, mut to_keep: impl FnMut(&[u8])) -> f64 {
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
        let read = to.read(&mut buffer).unwrap();
        to_keep(&buffer[..read]);
        left -= read;
    }
    let figure = gbytes(BYTES, began);
    sender.join().unwrap();
    figure
}
