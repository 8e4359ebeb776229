//! A plain client: it writes a request and waits for all of the answer, and does nothing else.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use forebay_bench_harness::median;

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A connection, and what it asks for each time.
pub struct Plain {
    stream: Box<dyn Stream>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Plain {
    /// Over TCP, or by the Unix socket.
    pub fn connect(port: u16, socket: &Path, unix: bool) -> Self {
        let stream: Box<dyn Stream> = match unix {
            true => Box::new(UnixStream::connect(socket).unwrap()),
            false => {
                let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            }
        };
        Self { stream, request: Vec::new(), answer: Vec::new() }
    }

    /// Asks this from now on, for an answer of so many bytes.
    pub fn of(self, request: Vec<u8>, answer_bytes: usize) -> Self {
        Self { request, answer: vec![0; answer_bytes], ..self }
    }

    /// Asks, and waits for all of the answer.
    pub fn ask(&mut self) {
        self.stream.write_all(&self.request).unwrap();
        self.stream.read_exact(&mut self.answer).unwrap();
    }

    /// The middle time of so many requests, one after the other, in microseconds.
    pub fn p50(&mut self, requests: usize) -> f64 {
        let times = (0..requests).map(|_| {
            let began = Instant::now();
            self.ask();
            began.elapsed().as_secs_f64() * 1e6
        });
        median(times.collect())
    }

    /// Requests a second, one after the other.
    pub fn rate(&mut self, requests: usize) -> f64 {
        let began = Instant::now();
        (0..requests).for_each(|_| self.ask());
        requests as f64 / began.elapsed().as_secs_f64()
    }
}
