//! Redis, as what one would put in front of a lake.

use forebay_types::{Error, Result, ResultExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Records that go into it together.
const TOGETHER: usize = 500;

pub(crate) struct Redis(forebay_bench_harness::Redis);

impl Redis {
    /// Starts one, with further settings.
    pub(crate) fn start(settings: &[&str]) -> Result<Self> {
        forebay_bench_harness::Redis::start(settings).map(Self)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", self.0.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Puts records in by their numbers.
    pub(crate) async fn fill(&self, records: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<()> {
        let mut connection = self.connect().await?;
        let mut records = records.enumerate().peekable();
        while records.peek().is_some() {
            let some: Vec<_> = records.by_ref().take(TOGETHER).collect();
            let sets: Vec<u8> = some.iter().flat_map(|(row, record)| set(*row, record.as_ref())).collect();
            connection.0.write_all(&sets).await?;
            for _ in &some {
                connection.line().await?;
            }
        }
        Ok(())
    }

    /// Gets of random records a second, as redis-benchmark says: with so many connections, each with one request at a time.
    pub(crate) async fn rate(&self, records: usize, requests: u64, connections: usize, is_unix: bool) -> Result<f64> {
        let mut command = tokio::process::Command::from(self.0.benchmark(is_unix));
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
