//! What the bars run against: a store behind a link of 1 Gbit/s, and a cluster with a gateway in this process.

use std::net::SocketAddr;

use forebay_bench_harness::until_input_ends;
use forebay_client::{AdminRequest, Client, ClientSettings};
use forebay_demo::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
use forebay_node::Node;
use forebay_s3::{AccessRule, GatewaySettings};
use forebay_shared_storage::{AccessKey, StorageSettings};
use forebay_transport::Security;
use forebay_types::{MountOptions, split_mix};

use crate::sign::Key;

/// The store's key, which the gateway takes as well, so that all servers are asked the same.
pub const KEY: Key = Key { id: ACCESS_KEY, secret: SECRET_KEY };
/// Of somebody who may read the mount, and nothing else.
pub const LIMITED: Key = Key { id: "limited", secret: "a secret of the limited key" };
/// 1 Gbit/s in bytes.
pub const LINK: u64 = 125_000_000;
/// The bucket, and the mount.
pub const BUCKET: &str = "lake";

/// A store behind a link, and a cluster with a gateway in front of it.
pub struct Rig {
    pub s3: S3Server,
    pub node: Node,
    pub folder: tempfile::TempDir,
}

impl Rig {
    pub async fn start() -> Self {
        let s3 = S3Settings { buckets: vec![BUCKET.into()], bandwidth: Some(LINK), ..S3Settings::default() };
        let s3 = S3Server::start(s3).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = Node::lead_in(folder.path(), Security::default()).await.unwrap();
        let worker = node.worker_in(folder.path(), 2 << 30);
        node.start_worker(worker).await.unwrap();
        let access_key = Some(AccessKey { id: ACCESS_KEY.into(), secret: SECRET_KEY.into() });
        let storage = StorageSettings { access_key, ..StorageSettings::default() };
        let client = Client::connect(ClientSettings { storage, ..node.client_settings() }).await.unwrap();
        let options = MountOptions { endpoint: Some(s3.endpoint()), ..MountOptions::default() };
        let (name, url) = (BUCKET.parse().unwrap(), format!("s3://{BUCKET}"));
        client.control(AdminRequest::MountAdd { name, url, options }).await.unwrap();
        let mut settings = GatewaySettings::new("127.0.0.1:0");
        settings.keys.push(AccessRule::new(ACCESS_KEY, SECRET_KEY));
        let limited = AccessRule::new(LIMITED.id, LIMITED.secret).read_only();
        settings.keys.push(limited.only(vec![BUCKET.parse().unwrap()]));
        node.serve_s3(client, settings).await.unwrap();
        Self { s3, node, folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.node.gateway.as_ref().unwrap().address()
    }

    /// `count` objects of `bytes` bytes, past the link; their paths.
    pub fn store(&self, name: &str, count: usize, bytes: usize) -> Vec<String> {
        let mut state = 0;
        let mut object = vec![0; bytes];
        let paths = (0..count).map(|n| {
            for eight in object.chunks_mut(8) {
                eight.copy_from_slice(&split_mix(&mut state).to_le_bytes()[..eight.len()]);
            }
            self.s3.put(BUCKET, &format!("{name}/{n}"), &object).unwrap();
            format!("/{BUCKET}/{name}/{n}")
        });
        paths.collect()
    }
}

/// As a process of its own, so that its CPU time is not that of who asks: makes one object of so many bytes, says where it listens and the
/// object's path, and serves until its input ends.
pub async fn serve(bytes: usize) {
    let rig = Rig::start().await;
    rig.s3.set_bandwidth(None);
    let paths = rig.store("served", 1, bytes);
    println!("{} {}", rig.address(), paths[0]);
    until_input_ends().await;
}

/// The worker takes the store's key from the environment.
pub fn environment() {
    assert_eq!(std::env::var("AWS_ACCESS_KEY_ID").as_deref(), Ok(ACCESS_KEY), "run with AWS_ACCESS_KEY_ID={ACCESS_KEY}");
    assert_eq!(std::env::var("AWS_SECRET_ACCESS_KEY").as_deref(), Ok(SECRET_KEY), "and AWS_SECRET_ACCESS_KEY={SECRET_KEY}");
}
