//! One service that is at one of several places.

use std::time::{Duration, Instant};

use forebay_transport::{Address, Connection, ServerLimits};
use forebay_types::ErrorKind;
use tokio::net::TcpListener;

use crate::desk::{local, open_at, owner};

const SECRET: &str = "a secret of ours";

fn together(places: &[&Address]) -> Address {
    places.iter().map(ToString::to_string).collect::<Vec<_>>().join(",").parse().unwrap()
}

/// A port that nobody listens at.
async fn nobody() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Address::Tcp(listener.local_addr().unwrap().to_string())
}

/// One that is connected to, as a process that was stopped is, and never says anything.
async fn silent() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    (listener, address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_that_answers_is_taken() {
    let open = open_at(&local(), owner(SECRET), ServerLimits::default()).await;
    let (_listener, stopped) = silent().await;
    for places in [[&nobody().await, &open.address], [&open.address, &nobody().await], [&stopped, &open.address]] {
        let began = Instant::now();
        let connection = Connection::connect(&together(&places), &owner(SECRET)).await.unwrap();
        connection.call("echo".into(), vec![]).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(3), "nobody waits for a place that is silent: {:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_no_place_lets_in_all_are_named_and_a_refusal_is_told_first() {
    let both = together(&[&nobody().await, &nobody().await]);
    let error = Connection::connect(&both, &owner(SECRET)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains(&both.to_string()), "{error}");

    let open = open_at(&local(), owner(SECRET), ServerLimits::default()).await;
    let refuses = together(&[&nobody().await, &open.address]);
    assert_eq!(Connection::connect(&refuses, &owner("a guess of theirs")).await.err().unwrap().kind(), ErrorKind::Denied);
}
