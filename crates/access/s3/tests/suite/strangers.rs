//! What must be refused, without a trace in the cache or at the store.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::client::{raw, read, request};
use crate::rig::cluster::{Cluster, gateway_settings};

#[tokio::test(flavor = "multi_thread")]
async fn forgeries_are_refused_without_a_trace() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "secret", &[7; 100_000]).unwrap();
    s3.reset_counters();
    let at = cluster.address();
    let get = || request("GET", "/lake/secret");
    let code = |answer: crate::rig::client::Answer| (answer.status, answer.code());
    let is = |status: u16, code: &str| (status, code.to_string());

    let mut wrong = get();
    wrong.secret = "wrong".into();
    assert_eq!(code(wrong.send(at).await), is(403, "SignatureDoesNotMatch"));
    let mut unknown = get();
    unknown.id = "NOBODY".into();
    assert_eq!(code(unknown.send(at).await), is(403, "InvalidAccessKeyId"));
    for minutes in [-16, 16] {
        let mut late = get();
        late.at += TimeDelta::minutes(minutes);
        assert_eq!(code(late.send(at).await), is(403, "RequestTimeTooSkewed"), "a request that is replayed later");
    }
    let mut added = get();
    added.unsigned.push(("x-amz-copy-source".into(), "/lake/secret".into()));
    assert_eq!(code(added.send(at).await), is(403, "AccessDenied"), "what was added on the way");
    // A signature is for one request only.
    let signed = get().head(at);
    for other in [
        signed.replacen("GET", "DELETE", 1),
        signed.replacen("/lake/secret", "/lake/secre%74?x=y", 1),
        signed.replacen("/secret", "/public", 1),
    ] {
        let answer = raw(at, other.as_bytes(), false).await.unwrap();
        assert_eq!(code(answer), is(403, "SignatureDoesNotMatch"), "{other}");
    }
    let url = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let mut old = get();
    old.at -= TimeDelta::minutes(10);
    let expired = raw(at, url(&old.presigned(at, TimeDelta::minutes(5))).as_bytes(), false).await.unwrap();
    assert_eq!(code(expired), is(403, "AccessDenied"));
    let ever = raw(at, url(&get().presigned(at, TimeDelta::days(30))).as_bytes(), false).await.unwrap();
    assert_eq!(code(ever), is(400, "AuthorizationQueryParametersError"));
    // Spaces of three bytes each.
    let spaces = get().presigned(at, TimeDelta::minutes(5)).replacen("X-Amz-Date=", "X-Amz-Date=%E3%80%80%E3%80%80%E3%80%80", 1);
    let spaced = raw(at, url(&spaces).as_bytes(), false).await.unwrap();
    assert_eq!(code(spaced), is(400, "AuthorizationQueryParametersError"));
    let mut put = get().presigned(at, TimeDelta::minutes(5));
    put = format!("PUT {put} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(code(raw(at, put.as_bytes(), false).await.unwrap()), is(403, "SignatureDoesNotMatch"));
    let v2 = raw(at, url("/lake/secret?AWSAccessKeyId=a&Signature=b&Expires=9").as_bytes(), false).await.unwrap();
    assert!(v2.text().contains("s3v4"), "with what to do: {}", v2.text());
    assert_eq!(code(v2), is(400, "InvalidRequest"));

    assert_eq!((s3.counters().requests(), cluster.cached()), (0, 0));
    assert_eq!(get().send(at).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn traversal_is_refused_and_never_resolved() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "etc/passwd", b"x").unwrap();
    s3.reset_counters();
    for path in
        ["/lake/../etc/passwd", "/lake/a/%2e%2e/etc/passwd", "/lake/%2E/etc", "/lake/..%2fetc", "/lake/a%00b", "/lake/%ff%fe"]
    {
        let answer = request("GET", path).send(cluster.address()).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "InvalidURI"), "{path}");
    }
    let many = "<Delete><Object><Key>../etc/passwd</Key></Object></Delete>";
    let answer = request("POST", "/lake?delete").body(many).send(cluster.address()).await;
    assert!(answer.text().contains("<Code>InvalidURI</Code>"), "{}", answer.text());
    let copy = request("PUT", "/lake/b").header("x-amz-copy-source", "/lake/a/../etc/passwd").send(cluster.address()).await;
    assert_eq!(copy.code(), "InvalidURI");
    assert_eq!((s3.counters().requests(), cluster.cached()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_is_off_until_it_is_switched_on() {
    let mut settings = gateway_settings();
    settings.anonymous = forebay_s3::Anonymous::Read;
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "a", b"open").unwrap();
    let at = cluster.address();
    let unsigned = async |text: &str| {
        raw(at, format!("{text} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").as_bytes(), false).await.unwrap()
    };
    assert_eq!(unsigned("GET /lake/a").await.body, b"open");
    assert_eq!(unsigned("PUT /lake/b").await.code(), "AccessDenied");
    assert_eq!(unsigned("GET /lake/a?response-content-type=text/html").await.code(), "InvalidRequest");
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_huge_or_no_http_are_refused() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.reset_counters();
    let at = cluster.address();
    let huge = format!("GET /lake/a HTTP/1.1\r\nHost: x\r\nx-amz-meta-a: {}\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET /lake/a HTTP/1.1\r\nHost: x\r\n{}\r\n", "x: y\r\n".repeat(500));
    let long = format!("GET /lake/{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(100_000));
    for bad in [
        huge.as_str(),
        &many,
        &long,
        "\x16\x03\x01\x02\x00\x01\x00",
        "GET /lake/a\r\n\r\n",
        "PUT /lake/a HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "PUT /lake/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    ] {
        let answer = raw(at, bad.as_bytes(), false).await;
        assert!(answer.is_none_or(|answer| (400..500).contains(&answer.status)), "{:.60}", bad);
    }
    assert_eq!(s3.counters().requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_unknown_length_is_refused() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.reset_counters();
    let put = request("PUT", "/lake/a").header("transfer-encoding", "chunked").hash("UNSIGNED-PAYLOAD");
    let mut text = put.head(cluster.address()).into_bytes();
    text.extend_from_slice(b"5\r\nhello\r\n0\r\n\r\n");
    let answer = raw(cluster.address(), &text, false).await.unwrap();
    assert_eq!((answer.status, answer.code().as_str()), (411, "MissingContentLength"));
    assert_eq!(s3.counters().requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_hold_nobody_up() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "large", &vec![1; 40 << 20]).unwrap();
    s3.put("data", "small", b"small").unwrap();
    let at = cluster.address();
    let mut slow = Vec::new();
    for _ in 0..60 {
        let mut socket = tokio::net::TcpStream::connect(at).await.unwrap();
        socket.write_all(request("GET", "/lake/large").head(at).as_bytes()).await.unwrap();
        let mut first = [0; 100];
        socket.read_exact(&mut first).await.unwrap();
        slow.push(socket);
    }
    let other = async {
        for _ in 0..20 {
            assert_eq!(request("GET", "/lake/small").send(at).await.body, b"small");
        }
        assert_eq!(request("GET", "/lake/large").send(at).await.body.len(), 40 << 20);
    };
    tokio::time::timeout(Duration::from_secs(30), other).await.expect("others are served");
    // Half a head waits, and is in nobody's way either.
    let mut half = tokio::net::TcpStream::connect(at).await.unwrap();
    half.write_all(b"GET /lake/small HTTP/1.1\r\nHos").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(200), read(&mut half, false)).await.is_err());
    assert_eq!(request("GET", "/lake/small").send(at).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_nobody_out() {
    let mut settings = gateway_settings();
    settings.connections_max = 2;
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "a", b"bytes").unwrap();
    let mut silent = Vec::new();
    for at in 0..300 {
        let mut socket = tokio::net::TcpStream::connect(cluster.address()).await.unwrap();
        // Some say something, and never all of it.
        if at % 2 == 0 {
            socket.write_all(b"GET /lake/a HTTP/1.1\r\nHost: a\r\n").await.unwrap();
        }
        silent.push(socket);
    }
    let answer = tokio::time::timeout(Duration::from_secs(20), request("GET", "/lake/a").send(cluster.address())).await;
    let answer = answer.expect("an answer in time");
    assert_eq!((answer.status, answer.text().as_str()), (200, "bytes"));
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_when_too_many_connections_are_served_is_told_to_come_later() {
    let mut settings = gateway_settings();
    settings.connections_max = 4;
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    s3.put("data", "a", b"bytes").unwrap();
    let at = cluster.address();
    // One host has half of them.
    let mut served = Vec::new();
    for _ in 0..2 {
        let mut socket = tokio::net::TcpStream::connect(at).await.unwrap();
        socket.write_all(request("GET", "/lake/a").head(at).as_bytes()).await.unwrap();
        assert_eq!(read(&mut socket, false).await.unwrap().body, b"bytes");
        served.push(socket);
    }
    let answers = [request("GET", "/lake/a").send(at).await, request("PUT", "/lake/b").body(vec![7; 1 << 20]).send(at).await];
    for answer in answers {
        assert_eq!((answer.status, answer.code().as_str()), (503, "SlowDown"), "{}", answer.text());
        assert!(answer.text().contains("close some") && answer.header("connection") == Some("close"), "{}", answer.text());
    }
    drop(served);
    let free = async {
        while request("GET", "/lake/a").send(at).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), free).await.expect("their places are free again");
}
