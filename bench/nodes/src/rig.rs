use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use forebay_client::{Client, ClientSettings, Nodes};

/// A worker in a process of its own.
pub struct Rig {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl Rig {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg("--serve").arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_string(), _folder: folder }
    }

    /// A client over the Unix socket, or over TCP.
    pub async fn nodes(&self, unix: bool) -> Nodes {
        let mut settings = ClientSettings::new(self.address.parse().unwrap());
        settings.in_place = unix;
        Client::connect(settings).await.unwrap().nodes()
    }

    /// Resident memory of the worker's process, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
