//! The peer: a Redis server, asked by redis-benchmark or by a client that does nothing but ask.

use crate::plain::Plain;

/// What a set is answered.
const SET_ANSWER: &str = "+OK\r\n";

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

    /// A connection, and what it asks for each time: so many requests of `get` or `set` together.
    pub fn plain(&self, test: &str, bytes: usize, together: usize, unix: bool) -> Plain {
        let value = "x".repeat(bytes);
        let set = format!("*3\r\n$3\r\nSET\r\n$5\r\nplain\r\n${bytes}\r\n{value}\r\n");
        let mut plain = Plain::connect(self.0.port, &self.0.socket, unix).of(set.clone().into_bytes(), SET_ANSWER.len());
        plain.ask();
        if test == "get" {
            let answer = format!("${bytes}\r\n{value}\r\n");
            plain.of("*2\r\n$3\r\nGET\r\n$5\r\nplain\r\n".as_bytes().repeat(together), answer.len() * together)
        } else {
            plain.of(set.into_bytes().repeat(together), SET_ANSWER.len() * together)
        }
    }
}
