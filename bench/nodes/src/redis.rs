use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A Redis server that keeps nothing on disk.
pub struct Redis {
    child: Child,
    port: u16,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

/// What redis-benchmark says of one test.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ops_per_sec: f64,
    pub p50_us: f64,
}

impl Redis {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let socket = folder.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--unixsocket".as_ref(), socket.as_os_str()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed: apt-get install redis-server");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() || !socket.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, socket, _folder: folder }
    }

    /// One run of redis-benchmark with one connection: `test` is `get` or `set`.
    pub fn run(&self, test: &str, bytes: usize, requests: usize, in_flight: usize, unix: bool) -> Run {
        let mut command = Command::new("redis-benchmark");
        match unix {
            true => command.arg("-s").arg(&self.socket),
            false => command.args(["-p", &self.port.to_string()]),
        };
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
        let fields: Vec<f64> = line.split(',').skip(1).map(|field| field.trim_matches('"').parse().unwrap()).collect();
        Run { ops_per_sec: fields[0], p50_us: fields[3] * 1e3 }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
