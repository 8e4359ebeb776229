//! Where a server can listen, and where not.

use std::os::unix::fs::PermissionsExt;

use forebay_transport::{Address, Listener, ServerLimits};
use forebay_types::ErrorKind;

use crate::desk::{open, open_at, ours, unix};

async fn refused(address: &Address) -> String {
    let error = Listener::bind(address).await.err().expect("it can't be listened at");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.message().to_string()
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let open = open().await;
    let message = refused(&open.address).await;
    assert!(message.contains(&open.address.to_string()) && message.contains("another port"), "{message}");
}

#[tokio::test]
async fn addresses_of_other_machines_are_refused() {
    let message = refused(&Address::Tcp("192.0.2.1:0".into())).await;
    assert!(message.contains("192.0.2.1:0") && message.contains("this machine"), "{message}");
}

#[tokio::test]
async fn a_socket_is_for_its_user_alone() {
    let (_folder, address) = unix();
    let _open = open_at(&address, ours(), ServerLimits::default()).await;
    let Address::Unix(path) = &address else { unreachable!() };
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced_and_a_live_one_is_not() {
    let (_folder, address) = unix();
    let Address::Unix(path) = &address else { unreachable!() };
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    assert!(path.exists(), "the dead process's file is still there");
    let open = open_at(&address, ours(), ServerLimits::default()).await;
    let message = refused(&address).await;
    assert!(message.contains(&path.display().to_string()) && message.contains("in use"), "{message}");
    open.connect().await.call("echo".into(), vec![]).await.unwrap();
}

#[tokio::test]
async fn what_is_no_socket_stays() {
    let (_folder, address) = unix();
    let Address::Unix(path) = &address else { unreachable!() };
    std::fs::write(path, "data").unwrap();
    let message = refused(&address).await;
    assert!(message.contains("no socket"), "{message}");
    assert_eq!(std::fs::read(path).unwrap(), b"data");
}

#[tokio::test]
async fn socket_paths_have_a_longest() {
    let folder = tempfile::tempdir().unwrap();
    let message = refused(&Address::Unix(folder.path().join("x".repeat(120)))).await;
    assert!(message.contains("107 bytes"), "{message}");
    let message = refused(&Address::Unix(folder.path().join("missing/socket"))).await;
    assert!(message.contains("missing/socket"), "{message}");
}
