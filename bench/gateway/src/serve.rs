//! A cluster with a gateway as a process of its own.

use std::io::Read;
use std::net::SocketAddr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::rig::Rig;

/// A store, a cluster and its gateway in a process of their own, so that its CPU time is not that of who asks; it ends with the value.
pub struct Served {
    process: Child,
    told: ChildStdin,
    pub gateway: SocketAddr,
}

impl Served {
    /// Starts it with one object of so many bytes; the object's path.
    pub async fn start(bytes: u64) -> (Self, String) {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut told = process.stdin.take().unwrap();
        let mut heard = BufReader::new(process.stdout.take().unwrap()).lines();
        told.write_all(format!("{bytes}\n").as_bytes()).await.unwrap();
        let line = heard.next_line().await.unwrap().expect("it says where it listens");
        let (gateway, path) = line.split_once(' ').unwrap();
        (Self { process, told, gateway: gateway.parse().unwrap() }, path.to_owned())
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id().expect("nobody has waited for it")
    }

    /// Ends it.
    pub async fn stop(mut self) {
        drop(self.told);
        assert!(self.process.wait().await.unwrap().success());
    }
}

/// What such a process does: takes the size of its object, says where it listens, and serves until its input ends.
pub async fn serve() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let paths = rig.store("served", 1, line.trim().parse().unwrap());
    println!("{} {}", rig.address(), paths[0]);
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}
