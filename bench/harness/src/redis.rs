//! The peer: a Redis server that keeps nothing on disk.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_types::{Error, Result, ResultExt};
use tempfile::TempDir;

/// How often a start is looked at.
const SOON: Duration = Duration::from_millis(20);

/// A server of this machine; it ends with this.
pub struct Redis {
    child: Child,
    /// Its port on loopback.
    pub port: u16,
    /// Its Unix socket.
    pub socket: PathBuf,
    _folder: TempDir,
}

impl Redis {
    /// Starts one with further settings, and waits until it answers.
    pub fn start(settings: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = crate::free_address()?.port();
        let socket = folder.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--unixsocket".as_ref(), socket.as_os_str()])
            .args(settings)
            .stdout(Stdio::null())
            .spawn()
            .context(|| "redis-server is needed: apt-get install redis-server")?;
        let mut redis = Self { child, port, socket, _folder: folder };
        while TcpStream::connect(("127.0.0.1", port)).is_err() || !redis.socket.exists() {
            if let Some(status) = redis.child.try_wait()? {
                return Err(Error::internal(format!("redis-server has ended: {status}")));
            }
            std::thread::sleep(SOON);
        }
        Ok(redis)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `redis-benchmark` against it.
    pub fn benchmark(&self, is_unix: bool) -> Command {
        let mut command = Command::new("redis-benchmark");
        match is_unix {
            true => command.arg("-s").arg(&self.socket),
            false => command.args(["-p", &self.port.to_string()]),
        };
        command
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
