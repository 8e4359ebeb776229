//! Calls and their answers, over each kind of connection.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_runtime::deadline;
use forebay_transport::{Address, Connection, ServerLimits};
use forebay_types::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::desk::{Open, local, open, open_at, ours, pattern, unix, until};
use crate::raw;

/// Over TCP and over a Unix socket.
async fn both() -> [(Option<tempfile::TempDir>, Open); 2] {
    let (folder, address) = unix();
    let unix = open_at(&address, ours(), ServerLimits::default()).await;
    [(None, open().await), (Some(folder), unix)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_echo_comes_back() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let payload = Bytes::from(pattern(100_000));
        let parts = vec![payload.slice(..1), Bytes::new(), payload.slice(1..70_000), payload.slice(70_000..)];
        let answer = connection.call("echo".into(), parts).await.unwrap();
        assert_eq!(answer.meta, "echo");
        assert_eq!(answer.payload, payload);
        assert!(answer.descriptor.is_none());
        let answer = connection.call("echo".into(), vec![]).await.unwrap();
        assert!(answer.payload.is_empty());
        assert_eq!(connection.address(), &open.address);
        assert_eq!(open.server.local_address(), open.address);
        let peer = open.desk.peers.lock()[0].clone();
        let unix = matches!(open.address, Address::Unix(_));
        assert_eq!((peer.unix, peer.same_user), (unix, unix));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_are_answered_in_any_order() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let began = Instant::now();
        let mut calls = JoinSet::new();
        for i in 0..1000u64 {
            let connection = connection.clone();
            calls.spawn(async move {
                let meta = if i % 3 == 0 { format!("echo {i}") } else { format!("sleep {}", 50 + i * 7919 % 50) };
                let payload = if i % 3 == 0 { vec![Bytes::from(pattern(i as usize))] } else { vec![] };
                let answer = connection.call(meta.clone().into(), payload.clone()).await.unwrap();
                assert_eq!(answer.meta, meta);
                assert_eq!(answer.payload, payload.concat());
            });
        }
        calls.join_all().await;
        // One after another they would take 50 s.
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_goes_both_ways() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let piece = Bytes::from(pattern(1 << 20));
        let expected = piece.repeat(64);
        let answer = connection.call("sum".into(), vec![piece; 64]).await.unwrap();
        assert_eq!(answer.meta, forebay_types::crc32c(&expected).to_le_bytes().as_slice());
        let answer = connection.call(format!("give {}", 64 << 20).into(), vec![]).await.unwrap();
        assert!(answer.payload == expected);
        let long = format!("echo {}", "x".repeat(3 << 20));
        let answer = connection.call(long.clone().into(), vec![]).await.unwrap();
        assert!(answer.meta == long);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_come_where_the_service_wants_them() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let mut calls = JoinSet::new();
        let sizes = [1, 100, 16 << 10, 100_000, 3 << 20, (1 << 20) + 7, 5];
        for (what, bytes) in ["place", "pieces"].into_iter().flat_map(|what| sizes.map(|bytes| (what, bytes))) {
            let (connection, payload) = (connection.clone(), Bytes::from(pattern(bytes)));
            calls.spawn(async move {
                let sum = forebay_types::crc32c(&payload).to_le_bytes();
                assert_eq!(connection.call(what.into(), vec![payload]).await.unwrap().meta, sum.as_slice());
                connection.call("echo".into(), vec![]).await.unwrap();
            });
        }
        calls.join_all().await;
        assert_eq!(open.desk.calls.dropped.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_whose_payload_is_cut_off_is_given_up() {
    let open = open().await;
    let Address::Tcp(address) = &open.address else { unreachable!("it listens on TCP") };
    for (given_up, what) in [(1, "place"), (2, "pieces")] {
        let mut stream = raw::client(address).await;
        let frame = raw::frame(raw::REQUEST, 1, what.as_bytes(), 1 << 20);
        stream.write_all(&[&frame, &pattern(500_000)[..]].concat()).await.unwrap();
        drop(stream);
        until(|| open.desk.calls.dropped.load(Ordering::SeqCst) == given_up).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_and_small_answers_mix() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let piece = Bytes::from(pattern(1 << 20));
        let mut calls = JoinSet::new();
        for i in 0..100usize {
            let (connection, piece) = (connection.clone(), piece.clone());
            calls.spawn(async move {
                let len = [0, 1, 4096, 65_536, 3_000_001][i % 5] + i;
                let answer = connection.call(format!("give {len}").into(), vec![]).await.unwrap();
                assert_eq!(answer.payload.len(), len);
                assert!(answer.payload.chunks(1 << 20).all(|chunk| *chunk == piece[..chunk.len()]));
            });
        }
        calls.join_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_is_cancelled_at_the_server() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        let call = connection.call("sleep 60000".into(), vec![]);
        assert!(timeout(Duration::from_millis(100), call).await.is_err());
        until(|| open.desk.calls.dropped.load(Ordering::SeqCst) == 1).await;
        assert_eq!(open.desk.calls.running.load(Ordering::SeqCst), 0);
        connection.call("echo".into(), vec![]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_no_one_wants_any_more_are_left_out() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        for wait_us in (0..40).map(|i| i * 250) {
            let call = connection.call(format!("give {}", 8 << 20).into(), vec![]);
            let _ = timeout(Duration::from_micros(wait_us), call).await;
        }
        let answer = connection.call("echo".into(), vec![Bytes::from_static(b"there")]).await.unwrap();
        assert_eq!(answer.payload, "there");
        assert!(!connection.is_closed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notices_arrive_in_order() {
    for (_folder, open) in both().await {
        let connection = open.connect().await;
        for i in 0..500 {
            connection.notify(format!("notice {i}").into()).unwrap();
        }
        until(|| open.desk.notices.lock().len() == 500).await;
        let notices = open.desk.notices.lock();
        assert!(notices.iter().enumerate().all(|(i, notice)| *notice == format!("notice {i}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_too_long_for_a_frame_are_refused_here() {
    let open = open().await;
    let connection = open.connect().await;
    let piece = Bytes::from(vec![0; 1 << 20]);
    let error = connection.call("sum".into(), vec![piece.clone(); 65]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = connection.call(piece.repeat(17).into(), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = connection.notify(piece.repeat(17).into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    connection.call("echo".into(), vec![]).await.unwrap();
}

/// So many calls at once, each of which is answered.
async fn many(connection: &Connection, count: usize, what: &'static str, payload: Vec<Bytes>) {
    let call = |_| {
        let (connection, payload) = (connection.clone(), payload.clone());
        async move { connection.call(what.into(), payload).await.unwrap() }
    };
    let calls: JoinSet<_> = (0..count).map(call).collect();
    assert_eq!(calls.join_all().await.len(), count);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_runs_no_more_calls_than_its_limit() {
    let limits = ServerLimits { in_flight: 4, ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let connection = open.connect().await;
    many(&connection, 100, "sleep 3", vec![]).await;
    assert_eq!(open.desk.calls.running_most.load(Ordering::SeqCst), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_holds_no_more_payload_than_its_limit() {
    let limits = ServerLimits { payload_bytes: 1 << 20, ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let connection = open.connect().await;
    many(&connection, 20, "sleep 3", vec![Bytes::from(vec![0; 512 << 10])]).await;
    assert_eq!(open.desk.calls.running_most.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_calls_than_a_connection_takes_wait_their_turn() {
    let open = open().await;
    let connection = open.connect().await;
    many(&connection, 3000, "sleep 20", vec![]).await;
    assert!(open.desk.calls.running_most.load(Ordering::SeqCst) <= 1024);
}

/// Calls, and goes on waiting when the time is over that it has told: what of the answer has come, and after how long.
async fn call_beyond(connection: &Connection, what: &str, longest: Duration) -> (Bytes, Duration) {
    let began = Instant::now();
    let mut call = Box::pin(connection.call(what.to_string().into(), vec![]));
    // The call itself is not dropped, so that nothing is cancelled.
    assert!(deadline::within(longest, &mut call).await.is_err(), "it takes longer");
    (call.await.unwrap().meta, began.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_gives_up_what_nobody_waits_for_though_no_word_of_that_comes() {
    let longest = Duration::from_millis(300);
    let (folder, address) = unix();
    let here = open_at(&address, ours(), ServerLimits::default()).await;
    let [tcp, socket] = both().await;
    let connections = [
        (tcp.1.connect().await, &tcp.1.desk),
        (socket.1.connect().await, &socket.1.desk),
        (Connection::nearest(&here.address, &ours()).await.unwrap(), &here.desk),
    ];
    for (connection, desk) in connections {
        let (answer, took) = call_beyond(&connection, "sleep 60000", longest).await;
        assert_eq!(answer, "failed: sleep 60000");
        assert!(took >= longest && took < Duration::from_secs(10), "{took:?}");
        assert_eq!(desk.calls.dropped.load(Ordering::SeqCst), 1);
        // What is done in time is answered, and the next call has its own time.
        let in_time = deadline::within(Duration::from_secs(10), connection.call("sleep 20".into(), vec![])).await;
        assert_eq!(in_time.unwrap().unwrap().meta, "sleep 20");
        assert_eq!(desk.calls.dropped.load(Ordering::SeqCst), 1);
    }
    drop(folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_the_version_before_is_told_nothing_of_time_and_takes_it() {
    let open = open().await;
    let connection = Connection::connect(&open.address, &ours().speaking(8)).await.unwrap();
    let (answer, took) = call_beyond(&connection, "sleep 900", Duration::from_millis(100)).await;
    assert_eq!(answer, "sleep 900");
    assert!(took >= Duration::from_millis(900), "{took:?}");
    assert_eq!(open.desk.calls.dropped.load(Ordering::SeqCst), 0);
}

/// The system takes some megabytes for a reader that takes them later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_left_of_answers_is_what_a_slow_reader_took() {
    let open = open().await;
    let mut reader = raw::client(&open.address.to_string()).await;
    rustix::net::sockopt::set_socket_recv_buffer_size(&reader, 128 << 10).unwrap();
    for tag in 1..=96 {
        reader.write_all(&raw::frame(raw::REQUEST, tag, b"give 262144", 0)).await.unwrap();
    }
    let mut piece = vec![0; 128 << 10];
    let mut taken = 0;
    while taken < 8 << 20 {
        taken += reader.read_exact(&mut piece).await.unwrap() as u64;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let desk = &open.desk;
    let left = || desk.given.load(Ordering::SeqCst).saturating_sub(desk.leaving.held());
    until(|| (taken * 9 / 10..=taken * 11 / 10).contains(&left())).await;
    drop(reader);
    until(|| desk.closed.load(Ordering::SeqCst) == 1 && desk.leaving.held() == 0).await;
}
