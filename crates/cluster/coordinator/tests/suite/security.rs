use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_protocol::ControlRequest;
use forebay_transport::{Address, Connection, Security};
use forebay_types::ErrorKind;

use crate::cluster::{ask, settings, token, url};

#[tokio::test]
async fn only_who_proves_the_token_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let settings = CoordinatorSettings { security: token("right"), ..settings(url(&folder)) };
    let coordinator = Coordinator::start(settings).await.unwrap();
    for security in [token("wrong"), Security::default()] {
        let error = Connection::connect(&coordinator.address(), &security).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    let connection = Connection::connect(&coordinator.address(), &token("right")).await.unwrap();
    ask(&connection, ControlRequest::Status).await.unwrap();
}

#[tokio::test]
async fn beyond_loopback_there_must_be_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let open = CoordinatorSettings { listen: Address::Tcp("0.0.0.0:0".into()), ..settings(url(&folder)) };
    let error = Coordinator::start(open.clone()).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("token"), "{error}");
    Coordinator::start(CoordinatorSettings { security: token("right"), ..open }).await.unwrap();
}
