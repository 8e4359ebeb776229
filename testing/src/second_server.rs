//! An S3 server that others wrote: versitygw over a folder of its own.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_demo::{ACCESS_KEY, SECRET_KEY};
use tempfile::TempDir;

/// How long it may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// versitygw with some buckets, which takes the keys of tests. It ends with this.
pub struct SecondServer {
    process: Child,
    /// Where it listens.
    pub endpoint: String,
    _folder: TempDir,
}

impl SecondServer {
    /// Starts one.
    ///
    /// # Panics
    /// When it is not installed, or does not come up.
    pub fn start(buckets: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, sidecar) = (folder.path().join("data"), folder.path().join("sidecar"));
        let folders = buckets.iter().map(|name| data.join(name)).chain([sidecar.clone()]);
        folders.for_each(|folder| std::fs::create_dir_all(folder).expect("a folder of the second S3 server"));
        // Free now, and nobody else asks for it in the time that the server takes to start.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let process = Command::new(binary())
            .args(["--port", &address.to_string(), "--quiet", "--health", "/_health", "posix", "--sidecar"])
            .args([sidecar, data])
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the second S3 server starts");
        let server = Self { process, endpoint: format!("http://{address}"), _folder: folder };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(began.elapsed() < STARTS_WITHIN, "the second S3 server does not listen at {address}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for SecondServer {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone after this.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where Go and `make test-deps` install it, whether that is on the path or not.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("FOREBAY_VERSITYGW") {
        return named.into();
    }
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([home.join("go/bin"), home.join(".cache/forebay/bin")]);
    let found = folders.map(|folder| folder.join("versitygw")).find(|path| path.is_file());
    found.expect("the second S3 server is not installed: `make test-deps` does it, or name it in FOREBAY_VERSITYGW")
}
