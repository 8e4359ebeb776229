//! The second S3 server, which others wrote.

#![allow(unsafe_code, reason = "the environment is set before any other thread of the tests reads it")]

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_testing::{ACCESS_KEY, SECRET_KEY};

pub fn set_env(name: &str, value: &str) {
    // SAFETY: called once, in the first test that starts a cluster; nothing here changes the environment afterwards.
    unsafe { std::env::set_var(name, value) }
}

/// versitygw over a folder, with buckets; it ends with the test.
pub struct Versity {
    process: Child,
    pub endpoint: String,
    _folder: tempfile::TempDir,
}

impl Drop for Versity {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

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

impl Versity {
    pub fn start(buckets: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in buckets {
            std::fs::create_dir_all(folder.path().join("data").join(name)).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("sidecar")).unwrap();
        // Free now, and nobody else asks for it in the time that the server takes to start.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let process = Command::new(binary())
            .args(["--port", &address.to_string(), "--quiet", "--health", "/_health", "posix", "--sidecar"])
            .arg(folder.path().join("sidecar"))
            .arg(folder.path().join("data"))
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the second S3 server does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { process, endpoint: format!("http://{address}"), _folder: folder }
    }
}
