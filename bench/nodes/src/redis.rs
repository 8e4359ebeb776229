//! The peer: a Redis server, asked by redis-benchmark or by a client that does nothing but ask.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// A Redis server.
pub struct Redis(forebay_bench_harness::Redis);

impl Redis {
    pub fn start() -> Self {
        Self(forebay_bench_harness::Redis::start(&[]).unwrap())
    }

    /// Requests a second that redis-benchmark says of one connection: `test` is `get` or `set`.
    pub fn run(&self, test: &str, bytes: usize, requests: usize, in_flight: usize, unix: bool) -> f64 {
        let mut command = self.0.benchmark(unix);
        let numbers = [("-c", 1), ("-n", requests), ("-d", bytes), ("-P", in_flight)];
        for (flag, number) in numbers {
            command.args([flag, &number.to_string()]);
        }
        if test == "get" {
            // Else there is nothing to get.
            self.run("set", bytes, 10, 1, unix);
        }
        let output = command.args(["-t", test, "--csv", "--precision", "3"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().last().unwrap_or_default();
        line.split(',').nth(1).unwrap().trim_matches('"').parse().unwrap()
    }
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// A plain client: what Redis gives without waiting for anything but its answer.
pub struct Plain {
    stream: Box<dyn Stream>,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Redis {
    /// A connection, and what it asks for each time: so many requests of `get` or `set` together.
    pub fn plain(&self, test: &str, bytes: usize, together: usize, unix: bool) -> Plain {
        let stream: Box<dyn Stream> = match unix {
            true => Box::new(UnixStream::connect(&self.0.socket).unwrap()),
            false => {
                let stream = TcpStream::connect(("127.0.0.1", self.0.port)).unwrap();
                stream.set_nodelay(true).unwrap();
                Box::new(stream)
            }
        };
        let value = "x".repeat(bytes);
        let set = format!("*3\r\n$3\r\nSET\r\n$5\r\nplain\r\n${bytes}\r\n{value}\r\n");
        let mut plain = Plain { stream, request: set.clone().into_bytes(), answer: vec![0; 5] };
        plain.ask();
        if test == "get" {
            plain.request = "*2\r\n$3\r\nGET\r\n$5\r\nplain\r\n".as_bytes().repeat(together);
            plain.answer = vec![0; format!("${bytes}\r\n{value}\r\n").len() * together];
        } else {
            plain.request = set.into_bytes().repeat(together);
            plain.answer = vec![0; 5 * together];
        }
        plain
    }
}

impl Plain {
    /// Asks, and waits for all of the answer.
    pub fn ask(&mut self) {
        self.stream.write_all(&self.request).unwrap();
        self.stream.read_exact(&mut self.answer).unwrap();
    }
}
