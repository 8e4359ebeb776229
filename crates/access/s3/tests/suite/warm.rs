//! What is at hand is answered by a shorter way: the same answers, to the same callers, on the same connections.

use std::net::SocketAddr;

use chrono::TimeDelta;
use forebay_s3::AccessRule;
use forebay_types::Validate;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::rig::client::{Answer, Signed, raw, read, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

fn immutable(options: &mut forebay_types::MountOptions) {
    options.validate = Validate::Immutable;
}

/// The same request, and with a header that only the way of all requests knows: the head's lines without what differs from
/// answer to answer, and the body.
async fn both(at: SocketAddr, text: &str) -> [(u16, Vec<String>, Vec<u8>); 2] {
    let detour = text.replacen("\r\n", "\r\nForwarded: for=x\r\n", 1);
    let mut answers = Vec::new();
    for text in [text, &detour] {
        let answer = raw(at, text.as_bytes(), text.starts_with("HEAD")).await.unwrap_or_else(|| panic!("no answer to {text}"));
        let lines = answer.head.lines().map(String::from);
        let mut lines: Vec<_> =
            lines.filter(|line| !line.starts_with("date: ") && !line.starts_with("x-amz-request-id: ")).collect();
        lines.sort();
        answers.push((answer.status, lines, crate::rig::client::without_ids(&answer.body)));
    }
    [answers.remove(0), answers.remove(0)]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_of_both_ways_are_the_same() {
    let (cluster, s3) = Cluster::over_s3(immutable, gateway_settings()).await;
    let at = cluster.address();
    let body = bytes(5, 3_000_000);
    let long = format!("x/{}", "y".repeat(300));
    let keys = ["a", "a b/ä+€", "empty", "small", &long];
    for key in keys {
        let body = match key {
            "empty" => &[][..],
            "small" => &body[..70_001],
            _ => &body[..],
        };
        s3.put("data", key, body).unwrap();
    }
    let put = request("PUT", "/lake/told").header("content-type", "text/x; a=b").header("x-amz-meta-a", "of mine");
    assert_eq!(put.header("cache-control", "max-age=5").body("told").send(at).await.status, 200);
    let wire = |key: &str| -> String {
        let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        key.bytes().map(|byte| if keep(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
    };
    let ranges = [
        "",
        "bytes=0-0",
        "bytes=0-65535",
        "bytes=5000-70000",
        "bytes=-100",
        "bytes=69000-",
        "bytes=0-",
        "bytes=9-3",
        "bytes=0-1,4-5",
        "bytes=9999999-",
        "bytes=-0",
        "lines=1-2",
        "bytes=0-999999999",
    ];
    let (mut asked, before) = (0, cluster.at_hand());
    for key in keys.into_iter().chain(["told", "gone"]) {
        let path = format!("/lake/{}", wire(key));
        for method in ["GET", "HEAD"] {
            for range in ranges {
                for checksums in [false, true] {
                    let ask = |range: &str| {
                        let mut asked = request(method, &path);
                        if !range.is_empty() {
                            asked = asked.header("range", range);
                        }
                        if checksums { asked.header("x-amz-checksum-mode", "ENABLED") } else { asked }
                    };
                    let text = ask(range).head(at);
                    // Once so that it is there.
                    raw(at, text.as_bytes(), method == "HEAD").await.unwrap();
                    let [short, long] = both(at, &text).await;
                    assert_eq!((short.0, &short.1), (long.0, &long.1), "{text}");
                    assert!(short.2 == long.2, "{text}");
                    asked += 1;
                }
                let signed = request(method, &path).presigned(at, TimeDelta::minutes(5));
                let range = if range.is_empty() { String::new() } else { format!("Range: {range}\r\n") };
                let text = format!("{method} {signed} HTTP/1.1\r\nHost: {at}\r\nUser-Agent: x\r\n{range}\r\n");
                let [short, long] = both(at, &text).await;
                assert!(short == long, "{text}{:?}\n{:?}", short.1, long.1);
                asked += 1;
            }
        }
    }
    let at_hand = cluster.at_hand() - before;
    assert!(at_hand > asked / 5, "{at_hand} of {asked} requests took the shorter way");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_at_hand_is_for_those_who_may() {
    let mut settings = gateway_settings();
    settings.keys.push(AccessRule::new("AKIDOTHER", "other").only(vec!["elsewhere".parse().unwrap()]));
    let (cluster, s3) = Cluster::over_s3(immutable, settings).await;
    let at = cluster.address();
    s3.put("data", "a", &bytes(1, 50_000)).unwrap();
    let get = || request("GET", "/lake/a");
    let as_other = || Signed { id: "AKIDOTHER".into(), secret: "other".into(), ..get() };
    for _ in 0..3 {
        assert_eq!(get().send(at).await.status, 200);
        let refused = as_other().send(at).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "AccessDenied"));
    }
    let before = cluster.at_hand();
    assert!(before > 0);
    // A URL is good until it expires, wherever the answer comes from.
    let url = |path: String| format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    let short = url(get().presigned(at, TimeDelta::seconds(1)));
    let answer = raw(at, short.as_bytes(), false).await.unwrap();
    assert!(answer.status == 200 || answer.text().contains("expired"));
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let late = raw(at, short.as_bytes(), false).await.unwrap();
    assert_eq!((late.status, late.code().as_str()), (403, "AccessDenied"));
    // What is signed can't be changed.
    let signed = get().header("range", "bytes=0-9").head(at);
    assert_eq!(raw(at, signed.as_bytes(), false).await.unwrap().body.len(), 10);
    for (from, to) in [("bytes=0-9", "bytes=0-99"), ("/lake/a", "/lake/b"), ("GET", "HEAD")] {
        let text = signed.replacen(from, to, 1);
        assert_eq!(raw(at, text.as_bytes(), to == "HEAD").await.unwrap().status, 403, "{text}");
    }
    // What became another object is not what it was.
    assert_eq!(request("PUT", "/lake/a").body("new").send(at).await.status, 200);
    assert_eq!(get().send(at).await.body, b"new");
    assert_eq!(request("DELETE", "/lake/a").send(at).await.status, 204);
    assert_eq!(get().send(at).await.status, 404);
}

/// One connection, asked everything in one go and in turns: who serves it changes, the order of answers does not.
#[tokio::test(flavor = "multi_thread")]
async fn one_connection_for_all_kinds_of_requests() {
    let (cluster, s3) = Cluster::over_s3(immutable, gateway_settings()).await;
    let at = cluster.address();
    let (small, large) = (bytes(1, 60_000), bytes(2, 9_000_000));
    s3.put("data", "small", &small).unwrap();
    s3.put("data", "large", &large).unwrap();
    assert_eq!(request("GET", "/lake/small").send(at).await.status, 200);
    let texts = move |n: usize| -> (Vec<u8>, bool) {
        let asked = match n % 7 {
            0 | 3 => request("GET", "/lake/small"),
            1 => request("GET", "/lake/small").header("range", "bytes=100-40000"),
            2 => request("GET", "/lake?list-type=2"),
            4 => request("PUT", "/lake/put").body(bytes(n as u64, 5000 * n)),
            5 => request("HEAD", "/lake/small"),
            _ => request("GET", "/lake/large"),
        };
        let mut text = asked.head(at).into_bytes();
        text.extend_from_slice(&asked.body);
        (text, n % 7 == 5)
    };
    let right = |n: usize, answer: &Answer| match n % 7 {
        0 | 3 => answer.status == 200 && answer.body == small,
        1 => answer.status == 206 && answer.body == small[100..=40000],
        2 => answer.text().contains("<Key>large</Key>"),
        4 => answer.status == 200 && answer.body.is_empty(),
        5 => answer.status == 200 && answer.header("content-length") == Some("60000"),
        _ => answer.status == 200 && answer.body == large,
    };
    let before = cluster.at_hand();
    let mut socket = TcpStream::connect(at).await.unwrap();
    for n in 0..42 {
        let (text, is_head) = texts(n);
        // In two pieces, now and then.
        let cut = if n % 4 == 0 { text.len() / 2 } else { 0 };
        socket.write_all(&text[..cut]).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(if cut > 0 { 5 } else { 0 })).await;
        socket.write_all(&text[cut..]).await.unwrap();
        let answer = read(&mut socket, is_head).await.unwrap();
        assert!(right(n, &answer), "{n}: {}", answer.head);
    }
    assert!(cluster.at_hand() - before >= 12, "the shorter way is taken again after the other one");
    let (mut taking, mut giving) = TcpStream::connect(at).await.unwrap().into_split();
    let asking = tokio::spawn(async move {
        for n in 0..70 {
            giving.write_all(&texts(n).0).await.unwrap();
        }
        giving
    });
    let mut taken = crate::rig::client::Taken::default();
    for n in 0..70 {
        let answer = taken.next(&mut taking, n % 7 == 5).await.unwrap();
        assert!(right(n, &answer), "{n}: {}", answer.head);
    }
    drop(asking.await.unwrap());
}
