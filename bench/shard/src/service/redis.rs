//! Redis, as what one would put in front of a lake.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_types::{Error, Result, ResultExt};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Records that go into it together.
const TOGETHER: usize = 500;
/// How often a start is looked at.
const SOON: Duration = Duration::from_millis(20);

/// A Redis server that keeps nothing on disk.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    socket: PathBuf,
    _folder: TempDir,
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Redis {
    /// Starts one, with further settings.
    pub(crate) async fn start(settings: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let socket = folder.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--unixsocket".as_ref(), socket.as_os_str()])
            .args(settings)
            .stdout(Stdio::null())
            .spawn()
            .context(|| "redis-server is needed: apt-get install redis-server")?;
        let mut redis = Self { child, port, socket, _folder: folder };
        while redis.connect().await.is_err() || !redis.socket.exists() {
            if let Some(status) = redis.child.try_wait()? {
                return Err(Error::internal(format!("redis-server has ended: {status}")));
            }
            tokio::time::sleep(SOON).await;
        }
        Ok(redis)
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Puts records in by their numbers.
    pub(crate) async fn fill(&self, records: impl Iterator<Item = String>) -> Result<()> {
        let mut connection = self.connect().await?;
        let mut records = records.enumerate().peekable();
        while records.peek().is_some() {
            let some: Vec<_> = records.by_ref().take(TOGETHER).collect();
            let sets: Vec<u8> = some.iter().flat_map(|(row, record)| set(*row, record.as_bytes())).collect();
            connection.0.write_all(&sets).await?;
            for _ in &some {
                connection.line().await?;
            }
        }
        Ok(())
    }

    /// Gets of random records a second, as redis-benchmark says: with so many connections, each with one request at a time.
    pub(crate) async fn rate(&self, records: usize, requests: u64, connections: usize, is_unix: bool) -> Result<f64> {
        let mut command = tokio::process::Command::new("redis-benchmark");
        match is_unix {
            true => command.arg("-s").arg(&self.socket),
            false => command.args(["-p", &self.port.to_string()]),
        };
        command.args(["-c", &connections.to_string(), "-n", &requests.to_string(), "-r", &records.to_string(), "--csv"]);
        let output = command.args(["get", "key:__rand_int__"]).output().await.context(|| "redis-benchmark")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate = text.lines().last().and_then(|line| line.split("\",\"").nth(1)).and_then(|rate| rate.parse().ok());
        rate.ok_or_else(|| Error::internal(format!("redis-benchmark says no rate: {text:?}")))
    }
}

/// A connection that asks one thing at a time.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The record of a number, if it is there.
    pub(crate) async fn get(&mut self, row: usize) -> Result<Option<Vec<u8>>> {
        let name = name(row);
        self.0.write_all(format!("*2\r\n$3\r\nGET\r\n${}\r\n{name}\r\n", name.len()).as_bytes()).await?;
        let head = self.line().await?;
        let length = head.strip_prefix('$').and_then(|length| length.parse::<i64>().ok());
        let length = length.ok_or_else(|| Error::internal(format!("redis answers {head:?}")))?;
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let mut value = vec![0; length + 2];
        self.0.read_exact(&mut value).await?;
        value.truncate(length);
        Ok(Some(value))
    }

    /// Keeps the record of a number.
    pub(crate) async fn set(&mut self, row: usize, record: &[u8]) -> Result<()> {
        self.0.write_all(&set(row, record)).await?;
        self.line().await.map(drop)
    }

    /// Bytes that the server takes.
    pub(crate) async fn used_memory(&mut self) -> Result<u64> {
        self.0.write_all(b"*2\r\n$4\r\nINFO\r\n$6\r\nmemory\r\n").await?;
        self.line().await?;
        let mut used = None;
        // It ends with an empty line.
        loop {
            let line = self.line().await?;
            match line.strip_prefix("used_memory:") {
                Some(bytes) => used = bytes.parse().ok(),
                None if line.is_empty() => return used.ok_or_else(|| Error::internal("redis tells no used_memory")),
                None => {}
            }
        }
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some(line) if !line.starts_with('-') => Ok(line.to_string()),
            _ => Err(Error::internal(format!("redis answers {line:?}"))),
        }
    }
}

/// As redis-benchmark names them.
fn name(row: usize) -> String {
    format!("key:{row:012}")
}

fn set(row: usize, record: &[u8]) -> Vec<u8> {
    let name = name(row);
    let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n{name}\r\n${}\r\n", name.len(), record.len());
    [head.as_bytes(), record, b"\r\n"].concat()
}
