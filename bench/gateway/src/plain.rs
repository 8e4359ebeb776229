//! The smallest server that GETs can be sent to: each is given the same bytes of its memory, whatever it asks for. It has nothing of
//! Forebay.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use forebay_bench_harness::Served;

/// What a head has to fit into.
const HEAD_BYTES: usize = 8 << 10;

/// Starts it in a process of its own, with answers of so many bytes; it ends with what is given.
pub fn start(bytes: u64) -> (Served, SocketAddr) {
    let (served, address) = Served::start(["--plain".to_string(), bytes.to_string()]).unwrap();
    (served, address.parse().unwrap())
}

/// Serves, with a thread for each connection, until its input ends.
pub fn serve(bytes: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    let answer = Arc::new([head.into_bytes(), vec![7; bytes]].concat());
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let (peer, answer) = (peer.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || give(peer, &answer));
        }
    });
    let _ = std::io::read_to_string(std::io::stdin());
}

/// Whoever asks waits for an answer before it asks again, and closes the connection at the end.
fn give(mut peer: TcpStream, answer: &[u8]) -> Result<()> {
    peer.set_nodelay(true)?;
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    loop {
        match peer.read(&mut head[filled..])? {
            0 => return Ok(()),
            read => filled += read,
        }
        if head[..filled].ends_with(b"\r\n\r\n") {
            peer.write_all(answer)?;
            filled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_head_is_answered_when_all_of_it_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        here.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let there = listener.accept().unwrap().0;
        let giving = std::thread::spawn(move || give(there, b"bytes"));
        let mut got = [0; 5];
        for parts in [["GET / HTTP/1.1\r\n", "Host: here\r\n\r\n"], ["GET /again HTTP/1.1\r\n\r", "\n"]] {
            parts.iter().for_each(|part| here.write_all(part.as_bytes()).unwrap());
            here.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"bytes");
        }
        drop(here);
        giving.join().unwrap().unwrap();
    }
}
