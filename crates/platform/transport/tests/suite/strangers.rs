//! Peers that break the protocol, or say nothing.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::{PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST};
use forebay_transport::{Address, Connection, ServerLimits};
use forebay_types::{ErrorKind, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::desk::{Open, local, open, open_at, ours, pattern, until};
use crate::raw::{self, HELLO, NOTICE, REPLY, REQUEST};

fn tcp(open: &Open) -> String {
    open.address.to_string()
}

async fn connect(address: &str) -> Result<Connection> {
    Connection::connect(&Address::Tcp(address.into()), &ours()).await
}

/// Reads until the server ends the connection, which it must.
async fn to_the_end(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let reading = stream.read_to_end(&mut rest);
    // A reset is an end too.
    let _ = tokio::time::timeout(Duration::from_secs(4), reading).await.expect("the server ends the connection");
    rest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_its_connection_and_no_other() {
    let open = open().await;
    let good = open.connect().await;
    for garbage in [b"GET / HTTP/1.1\r\nHost: forebay\r\n\r\n".to_vec(), vec![0; 100_000], vec![0xff; 24], b"x".repeat(23)] {
        let mut stream = TcpStream::connect(tcp(&open)).await.unwrap();
        let _ = stream.write_all(&garbage).await;
        let _ = stream.shutdown().await;
        to_the_end(stream).await;
    }
    good.call("echo".into(), vec![]).await.unwrap();
    assert_eq!(open.desk.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_after_the_handshake_ends_the_session() {
    let open = open().await;
    let good = open.connect().await;
    let mut flipped = raw::frame(REQUEST, 1, b"echo", 0);
    flipped[24] ^= 1;
    let with_descriptor = {
        let mut bytes = raw::frame(REQUEST, 1, b"echo", 0);
        bytes[17] = 1;
        let crc = forebay_types::crc32c_append(forebay_types::crc32c(&bytes[..20]), b"echo");
        bytes[20..24].copy_from_slice(&crc.to_le_bytes());
        bytes
    };
    let twice = [raw::frame(REQUEST, 1, b"sleep 5000", 0), raw::frame(REQUEST, 1, b"sleep 5000", 0)].concat();
    let cases = [
        (vec![0xee; 1000], "no header"),
        (flipped, "checksum"),
        (with_descriptor, "a descriptor over TCP"),
        (raw::frame(REQUEST, 1, b"echo", (64 << 20) + 1), "payload too long"),
        (raw::frame(NOTICE, 0, b"notice", 5), "a notice with a payload"),
        (raw::frame(REPLY, 1, b"reply", 0), "a reply from a client"),
        (raw::frame(HELLO, 0, b"hello", 0), "a second hello"),
        (raw::frame(9, 0, b"", 0), "an unknown kind"),
        (twice, "a tag twice"),
    ];
    for (index, (bytes, what)) in cases.into_iter().enumerate() {
        let mut stream = raw::client(&tcp(&open)).await;
        stream.write_all(&bytes).await.unwrap();
        assert!(to_the_end(stream).await.is_empty(), "{what}");
        until(|| open.desk.closed.load(Ordering::SeqCst) == index + 1).await;
    }
    // A message over the limit is refused by its header, without memory for it.
    let mut stream = raw::client(&tcp(&open)).await;
    let mut header = raw::frame(REQUEST, 1, b"", 0);
    header[..4].copy_from_slice(&((16u32 << 20) + 1).to_le_bytes());
    stream.write_all(&header).await.unwrap();
    assert!(to_the_end(stream).await.is_empty());
    good.call("echo".into(), vec![]).await.unwrap();
    until(|| open.desk.calls.running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_hellos_are_refused() {
    let open = open().await;
    let mut stream = TcpStream::connect(tcp(&open)).await.unwrap();
    let _ = stream.write_all(&raw::frame(HELLO, 0, &vec![0; 5000], 0)).await;
    to_the_end(stream).await;
    let mut stream = TcpStream::connect(tcp(&open)).await.unwrap();
    stream.write_all(&raw::frame(REQUEST, 1, b"echo", 0)).await.unwrap();
    to_the_end(stream).await;
    assert_eq!(open.desk.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_is_refused_by_the_server_in_its_own() {
    let open = open().await;
    let mut stream = TcpStream::connect(tcp(&open)).await.unwrap();
    let hello = raw::frame_of_version(PROTOCOL_VERSION + 1, HELLO, &raw::hello());
    stream.write_all(&hello).await.unwrap();
    let answer = to_the_end(stream).await;
    assert_eq!(answer[16..20], [HELLO, 0, PROTOCOL_VERSION as u8, 0], "a hello of this version");
    let (theirs, ours) = (PROTOCOL_VERSION + 1, format!("{PROTOCOL_VERSION_OLDEST} to {PROTOCOL_VERSION}"));
    let said = format!("peer speaks protocol {theirs}, this is {ours}: upgrade this process");
    assert!(String::from_utf8_lossy(&answer).contains(&said));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_version_before_is_answered_in_its_own_and_says_nothing_of_another() {
    let open = open().await;
    let mut stream = raw::client(&tcp(&open)).await;
    stream.write_all(&raw::frame(REQUEST, 1, b"echo", 0)).await.unwrap();
    let (header, _) = raw::receive_header(&mut stream).await;
    assert_eq!(header[16..20], [REPLY, 0, PROTOCOL_VERSION_OLDEST as u8, 0]);
    stream.write_all(&raw::frame_of_version(PROTOCOL_VERSION, REQUEST, b"echo")).await.unwrap();
    assert!(to_the_end(stream).await.is_empty(), "both have agreed on one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_is_refused_by_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        raw::receive(&mut stream).await;
        stream.write_all(&raw::frame_of_version(PROTOCOL_VERSION_OLDEST - 1, HELLO, &[4, 2, 0])).await.unwrap();
        to_the_end(stream).await;
    };
    let (error, ()) = tokio::join!(connect(&address), server);
    let error = error.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let (theirs, ours) = (PROTOCOL_VERSION_OLDEST - 1, format!("{PROTOCOL_VERSION_OLDEST} to {PROTOCOL_VERSION}"));
    let said = format!("peer speaks protocol {theirs}, this is {ours}: upgrade the peer");
    assert!(error.message().contains(&said), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_payload_changed_on_the_way_is_not_taken() {
    let open = open().await;
    // One that fits the buffer that frames are read through, one that does not, and those with a place of their own.
    let kinds = [("echo", 3000), ("echo", 1 << 20), ("place", 1 << 20), ("pieces", 1 << 20)];
    for (round, (meta, len)) in kinds.into_iter().enumerate() {
        let payload = pattern(len);
        let crc = forebay_types::crc32c(&payload);
        let mut stream = raw::client(&tcp(&open)).await;
        stream.write_all(&raw::frame_with(REQUEST, 1, meta.as_bytes(), &payload, crc)).await.unwrap();
        assert_eq!(raw::receive(&mut stream).await.1, 1, "as it was sent it is answered");
        let asked = open.desk.asked.load(Ordering::SeqCst);
        let mut changed = raw::frame_with(REQUEST, 2, meta.as_bytes(), &payload, crc);
        let at = changed.len() - 1;
        changed[at] ^= 4;
        stream.write_all(&changed).await.unwrap();
        assert!(to_the_end(stream).await.is_empty(), "{meta} of {len} bytes");
        until(|| open.desk.closed.load(Ordering::SeqCst) == round + 1).await;
        assert_eq!(open.desk.asked.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_whose_payload_changed_on_the_way_is_not_given_out() {
    let (address, server) = raw::server(|mut stream| async move {
        let payload = pattern(200_000);
        let crc = forebay_types::crc32c(&payload);
        for flip in [0, 1] {
            let (header, meta) = raw::receive_header(&mut stream).await;
            assert_eq!(meta, b"give");
            assert_eq!(header[20..24], forebay_types::crc32c(b"asked").to_le_bytes(), "by TCP a payload has its checksum");
            let tag = u64::from_le_bytes(header[8..16].try_into().unwrap());
            let mut reply = raw::frame_with(REPLY, tag, b"given", &payload, crc);
            let middle = reply.len() - 100_000;
            reply[middle] ^= flip;
            stream.write_all(&reply).await.unwrap();
        }
        to_the_end(stream).await;
    })
    .await;
    let connection = connect(&address).await.unwrap();
    let answer = connection.call("give".into(), vec![Bytes::from_static(b"ask"), Bytes::from_static(b"ed")]).await.unwrap();
    assert_eq!(answer.payload, pattern(200_000));
    let error = connection.call("give".into(), vec![Bytes::from_static(b"asked")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().contains("checksum"), "{error}");
    drop(connection);
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_dies_within_a_reply_closes_the_call() {
    let (address, server) = raw::server(|mut stream| async move {
        let (_, tag, _) = raw::receive(&mut stream).await;
        stream.write_all(&raw::frame(REPLY, tag, b"half", 1 << 20)).await.unwrap();
        stream.write_all(&vec![1; 1 << 19]).await.unwrap();
    })
    .await;
    let connection = connect(&address).await.unwrap();
    let (first, second) =
        tokio::join!(connection.call("give".into(), vec![]), connection.call("give".into(), vec![Bytes::from_static(b"more")]));
    assert_eq!(first.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Closed);
    server.await.unwrap();
    connection.closed().await;
    assert!(connection.is_closed());
    assert_eq!(connection.call("give".into(), vec![]).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(connection.notify("notice".into()).unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_nothing_closes_the_connection() {
    let (address, server) = raw::server(|mut stream| async move {
        stream.write_all(&raw::frame(REPLY, 77, b"unasked", 0)).await.unwrap();
        to_the_end(stream).await;
    })
    .await;
    let connection = connect(&address).await.unwrap();
    connection.closed().await;
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_never_sent_is_taken_back() {
    let (send_on, wait) = tokio::sync::oneshot::channel::<()>();
    let (address, server) = raw::server(|mut stream| async move {
        wait.await.unwrap();
        let mut kinds = Vec::new();
        loop {
            let (kind, _, meta) = raw::receive(&mut stream).await;
            kinds.push(kind);
            if meta == "last".as_bytes() {
                break;
            }
        }
        // The first call is cancelled after it was begun, those that waited behind it never came.
        assert_eq!(kinds, [REQUEST, 2, REQUEST]);
    })
    .await;
    let connection = connect(&address).await.unwrap();
    let large = vec![Bytes::from(vec![0; 1 << 20]); 60];
    let short = Duration::from_millis(100);
    let full = connection.call("first".into(), large.clone());
    let mut full = Box::pin(full);
    assert!(tokio::time::timeout(short, full.as_mut()).await.is_err());
    for _ in 0..20 {
        assert!(tokio::time::timeout(Duration::from_millis(1), connection.call("later".into(), large.clone())).await.is_err());
    }
    drop(full);
    send_on.send(()).unwrap();
    let last = connection.call("last".into(), vec![]).await;
    assert_eq!(last.unwrap_err().kind(), ErrorKind::Closed);
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_peer_is_given_up_after_five_seconds() {
    let open = open().await;
    let began = Instant::now();
    let mut silent = TcpStream::connect(tcp(&open)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut nothing = [0];
    let (server_side, client_side) = tokio::join!(silent.read(&mut nothing), connect(&address));
    assert_eq!(server_side.unwrap(), 0);
    assert_eq!(client_side.err().unwrap().kind(), ErrorKind::Retry);
    let elapsed = began.elapsed();
    assert!(elapsed > Duration::from_millis(4900) && elapsed < Duration::from_secs(8), "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_out() {
    let limits = ServerLimits { connections: 4, ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let mut silent = Vec::new();
    // As many as may shake hands, and more than there are places for who has.
    for _ in 0..256 {
        silent.push(TcpStream::connect(tcp(&open)).await.unwrap());
    }
    let began = Instant::now();
    let mut calls = Vec::new();
    for _ in 0..4 {
        let connection = open.connect().await;
        connection.call("echo".into(), vec![]).await.unwrap();
        calls.push(connection);
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(connect(&tcp(&open)).await.err().unwrap().kind(), ErrorKind::Retry, "these are the places");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_take_no_more_memory_than_they_may_and_small_ones_go_on() {
    const PAYLOAD: usize = 1 << 20;
    let limits = ServerLimits { request_bytes: Some(8 << 20), ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let reader = open.connect().await;
    let p99 = async || {
        let mut took = Vec::new();
        for _ in 0..300 {
            let began = Instant::now();
            reader.call("echo".into(), vec![Bytes::from_static(&[7; 4096])]).await.unwrap();
            took.push(began.elapsed());
        }
        took.sort();
        took[297]
    };
    let alone = p99().await;
    let payload = Bytes::from(vec![1; PAYLOAD]);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..48 {
        let (connection, payload) = (open.connect().await, payload.clone());
        calls.spawn(async move {
            let calls = (0..6).map(|_| connection.call("sleep 40".into(), vec![payload.clone()]));
            let mut done = 0;
            for call in calls.map(Box::pin).collect::<Vec<_>>() {
                done += usize::from(call.await.is_ok());
            }
            done
        });
    }
    until(|| open.desk.calls.running.load(Ordering::SeqCst) >= 4).await;
    let beside = p99().await;
    let most = open.desk.calls.running_most.load(Ordering::SeqCst);
    assert!((4..=8).contains(&most), "{most} requests of 1 MiB at once, of 8 MiB for all");
    // A machine that has other work to do takes its time, too.
    let bound = (alone * 10).max(Duration::from_millis(50));
    assert!(beside <= bound, "p99 of a small call: {alone:?} alone, {beside:?} beside them");
    let mut done = 0;
    while let Some(some) = calls.join_next().await {
        done += some.unwrap();
    }
    assert_eq!(done, 48 * 6, "all were answered, each in its turn");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_announced_and_do_not_come_hold_no_small_ones_up() {
    let limits = ServerLimits { request_bytes: Some(8 << 20), ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let mut stalled = Vec::new();
    for _ in 0..16 {
        let mut stream = raw::client(&tcp(&open)).await;
        stream.write_all(&raw::frame(REQUEST, 1, b"sum", 64 << 20)).await.unwrap();
        stalled.push(stream);
    }
    let connection = open.connect().await;
    for _ in 0..100 {
        connection.call("echo".into(), vec![Bytes::from_static(&[7; 16 << 10])]).await.unwrap();
    }
    drop(stalled);
    connection.call("sum".into(), vec![Bytes::from(vec![1; 2 << 20])]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_are_bounded_over_all_connections() {
    let limits = ServerLimits { request_bytes: Some(16 << 20), ..ServerLimits::default() };
    let open = open_at(&local(), ours(), limits).await;
    let mut deaf = Vec::new();
    for _ in 0..16 {
        let mut stream = raw::client(&tcp(&open)).await;
        let asked: Vec<u8> = (1..=200).flat_map(|tag| raw::frame(REQUEST, tag, b"give 1048576", 0)).collect();
        stream.write_all(&asked).await.unwrap();
        deaf.push(stream);
    }
    let asked = || open.desk.asked.load(Ordering::SeqCst);
    let mut before = usize::MAX;
    while before != asked() {
        before = asked();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // 8 MiB and one more each, and what the sockets have taken: some MiB each. Without the bound all 3,200 would be made.
    assert!(before < 400, "{before} answers of 1 MiB wait or are in sockets");
    let connection = open.connect().await;
    for _ in 0..50 {
        let answer = connection.call("give 100000".into(), vec![]).await.unwrap();
        assert_eq!(answer.payload.len(), 100_000);
    }
}
