use std::io::{Read, Seek};
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use forebay_transport::{Address, Connection, Security, ServerLimits};
use forebay_types::ErrorKind;
use tokio::task::JoinSet;

use crate::desk::{Open, local, open, open_at, pattern, unix, until};

async fn both() -> [(Option<tempfile::TempDir>, Open); 2] {
    let (folder, address) = unix();
    let unix = open_at(&address, Security::default(), ServerLimits::default()).await;
    [(None, open().await), (Some(folder), unix)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_comes_back() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let payload = Bytes::from(pattern(100_000));
        let parts = vec![payload.slice(..1), Bytes::new(), payload.slice(1..70_000), payload.slice(70_000..)];
        let answer = connection.call(Bytes::from_static(b"echo"), parts).await.unwrap();
        assert_eq!(answer.meta, "echo");
        assert_eq!(answer.payload, payload);
        assert!(answer.descriptor.is_none());
        let answer = connection.call(Bytes::from_static(b"echo"), vec![]).await.unwrap();
        assert!(answer.payload.is_empty());
        assert_eq!(connection.address(), &open.address);
    }
}
