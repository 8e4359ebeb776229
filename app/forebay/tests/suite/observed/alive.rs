//! What whoever restarts processes is told.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::Role;

/// Who finds no answer would end a process that serves all who are connected.
#[test]
fn a_process_without_descriptors_says_that_it_is_there() {
    const FILES: usize = 160;
    let home = tempfile::tempdir().unwrap();
    let up = Role::up_after(home.path(), &format!("ulimit -n {FILES}"));
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let asked = || {
        let mut stream = TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head, *b"HTTP/1.1 200");
        stream
    };
    let taken = || fs::read_dir(format!("/proc/{}/fd", up.id())).unwrap().count();
    // Who says nothing at another port has one each: this one leaves some.
    let other = up.place("flight-sql");
    let mut held = Vec::new();
    while taken() < FILES {
        assert!(held.len() < FILES, "it has taken {}", taken());
        let (before, began) = (taken(), Instant::now());
        held.push(TcpStream::connect(&other).unwrap());
        while taken() <= before && began.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    // More often than there are descriptors that are kept: who holds on to his connection keeps none of them.
    let more: Vec<_> = (0..12).map(|_| asked()).collect();
    drop((held, more));
    let began = Instant::now();
    while !up.log().contains("HTTP connections can't be accepted") {
        assert!(began.elapsed() < Duration::from_secs(10), "nobody is told: {}", up.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}
