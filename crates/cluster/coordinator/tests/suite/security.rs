//! Nobody is answered who has not proved the secret, on loopback as beyond it.

use forebay_coordinator::{Coordinator, CoordinatorSettings};
use forebay_protocol::ControlRequest;
use forebay_transport::{Address, Connection, Security};
use forebay_types::ErrorKind;

use crate::cluster::{ask, owner, settings, url};

#[tokio::test]
async fn only_who_proves_the_secret_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let settings = CoordinatorSettings { security: owner("the right secret"), ..settings(url(&folder)) };
    let coordinator = Coordinator::start(settings).await.unwrap();
    for security in [owner("the wrong secret"), Security::default()] {
        let error = Connection::connect(&coordinator.address(), &security).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    let connection = Connection::connect(&coordinator.address(), &owner("the right secret")).await.unwrap();
    ask(&connection, ControlRequest::Status).await.unwrap();
}

#[tokio::test]
async fn beyond_loopback_too_nobody_gets_in_who_has_proved_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = CoordinatorSettings { listen: Address::Tcp("0.0.0.0:0".into()), ..settings(url(&folder)) };
    let coordinator = Coordinator::start(settings).await.unwrap();
    let Address::Tcp(listening) = coordinator.address() else { panic!("it listens at a port") };
    let address = Address::Tcp(listening.replace("0.0.0.0", "127.0.0.1"));
    for stranger in [owner("of somebody else's"), Security { shows: None, ..Security::default() }] {
        let error = Connection::connect(&address, &stranger).await.map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    let connection = Connection::connect(&address, &Security::default()).await.unwrap();
    ask(&connection, ControlRequest::Status).await.unwrap();
}
