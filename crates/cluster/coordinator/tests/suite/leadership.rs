//! A standby beside a leader: it takes over when that one stops or loses its database.

use std::time::{Duration, Instant};

use forebay_coordinator::Coordinator;
use forebay_protocol::{AdminRequest, ControlReply, ControlRequest};
use forebay_testing::Postgres;
use forebay_transport::{Connection, Security};
use forebay_types::{ErrorKind, MountOptions};

use crate::cluster::{ask, settings};

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_when_the_leader_stops_or_loses_the_database() {
    let server = Postgres::with_password();
    let url = server.database("meta").unwrap();
    let data = tempfile::tempdir().unwrap();
    let first = Coordinator::start(settings(url.clone())).await.unwrap();
    let epoch = first.status().epoch;
    let connection = Connection::connect(&first.address(), &Security::default()).await.unwrap();
    let add = AdminRequest::MountAdd {
        name: "lake".parse().unwrap(),
        url: format!("file://{}", data.path().display()),
        options: MountOptions::default(),
    };
    let ControlReply::Mount(mount) = ask(&connection, add).await.unwrap() else { panic!("no mount") };

    let standby = tokio::spawn(Coordinator::start(settings(url.clone())));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!standby.is_finished(), "the first leads");
    first.shutdown().await;
    let stopped = Instant::now();
    let second = standby.await.unwrap().unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
    let connection = Connection::connect(&second.address(), &Security::default()).await.unwrap();
    let ControlReply::View(view) = ask(&connection, ControlRequest::View { have: 0 }).await.unwrap() else { panic!("no view") };
    assert!(view.epoch > epoch);
    assert_eq!(view.mounts, std::slice::from_ref(&mount));

    // The database crashes: the leader can't know whether it still is one.
    server.crash().unwrap();
    let error = tokio::time::timeout(Duration::from_secs(6), second.stopped()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().contains("leadership is lost") && error.message().contains("127.0.0.1"), "{error}");
    tokio::time::timeout(Duration::from_secs(2), connection.closed()).await.unwrap();

    server.resume().unwrap();
    let third = Coordinator::start(settings(url)).await.unwrap();
    assert!(third.status().epoch > view.epoch);
    assert_eq!(third.status().mounts[0].mount, mount);
    third.shutdown().await;
}
