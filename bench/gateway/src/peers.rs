//! The peers: nginx and rclone in front of the same store, each a process with a cache of its own.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_bench_harness::free_address;

use crate::rig::KEY;

/// A peer's process; it ends with the value.
pub struct Peer {
    process: Child,
    pub address: SocketAddr,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

fn start(mut command: Command, address: SocketAddr) -> Peer {
    let process =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{command:?} does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
    Peer { process, address }
}

/// nginx with a cache on disk, whole objects as slices of 1 MiB, as its manual has it. A request's query is its signature, which is
/// another one each second: what is cached is known by its path.
pub fn nginx(store: SocketAddr, folder: &Path) -> Peer {
    let address = free_address().unwrap();
    let folder = folder.join("nginx");
    std::fs::create_dir_all(folder.join("cache")).unwrap();
    let at = folder.display();
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let configuration = format!(
        "daemon off; {user} worker_processes 2; pid {at}/pid; error_log {at}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000;
  proxy_temp_path {at}/temp; client_body_temp_path {at}/body; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
  proxy_cache_path {at}/cache levels=1:2 keys_zone=z:50m max_size=8g inactive=1h use_temp_path=off;
  upstream store {{ server {store}; keepalive 32; }}
  server {{
    listen {address};
    location / {{
      slice 1m;
      proxy_cache z; proxy_cache_key $uri$slice_range; proxy_cache_valid 200 206 1h;
      proxy_set_header Range $slice_range; proxy_set_header Host $http_host; proxy_set_header Connection \"\";
      proxy_http_version 1.1; proxy_pass http://store;
    }}
  }}
}}
"
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, configuration).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&folder).arg("-c").arg(&file);
    start(command, address)
}

/// rclone's S3 server over the store, with its cache of whole files.
pub fn rclone(store: SocketAddr, folder: &Path) -> Peer {
    let address = free_address().unwrap();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let binary =
        [forebay_bench_harness::cache().join("bin/rclone"), home.join("go/bin/rclone")].into_iter().find(|path| path.exists());
    let mut command = Command::new(binary.unwrap_or_else(|| "rclone".into()));
    command
        .args(["serve", "s3", "--config", "/dev/null", "--s3-provider", "Other", "--s3-env-auth", "--vfs-cache-mode", "full"])
        .args(["--s3-endpoint", &format!("http://{store}"), "--addr", &address.to_string()])
        .args(["--auth-key", &format!("{},{}", KEY.id, KEY.secret), "--cache-dir"])
        .arg(folder.join("rclone"))
        .arg(":s3:")
        .env_remove("AWS_CA_BUNDLE");
    start(command, address)
}
