//! Reads through the gateway: what they cost, and what is never answered.

use chrono::TimeDelta;
use forebay_testbed::until;
use forebay_types::Validate;

use crate::rig::client::{raw, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};
use crate::rig::fickle::Fickle;

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_object_costs_one_get_and_no_head() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let body = bytes(1, 50_000);
    for (key, extra) in [("plain", None), ("as-boto3", Some(("x-amz-checksum-mode", "ENABLED")))] {
        s3.put("data", key, &body).unwrap();
        s3.reset_counters();
        let mut asked = request("GET", &format!("/lake/{key}"));
        if let Some((name, value)) = extra {
            asked = asked.header(name, value);
        }
        let answer = asked.send(cluster.address()).await;
        assert_eq!((answer.status, answer.body == body), (200, true));
        let counted = s3.counters();
        assert_eq!((counted.gets, counted.heads, counted.bytes_out), (1, 0, 50_000), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_ranges_fetch_little_more_than_they_are() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let body = bytes(2, 30 << 20);
    s3.put("data", "big", &body).unwrap();
    s3.reset_counters();
    let mut asked = 0;
    for n in 0..40usize {
        let start = (n * 7_919_777) % (body.len() - 65536);
        let range = format!("bytes={start}-{}", start + 65535);
        let answer = request("GET", "/lake/big").header("range", &range).send(cluster.address()).await;
        assert_eq!(answer.status, 206);
        assert!(answer.body == body[start..start + 65536], "{range}");
        assert_eq!(answer.header("content-range").unwrap(), format!("bytes {start}-{}/{}", start + 65535, body.len()));
        asked += 65536;
    }
    let counted = s3.counters();
    assert!(counted.bytes_out * 10 <= asked * 11, "{} bytes for {asked}", counted.bytes_out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hit_asks_the_store_nothing_and_is_signed_all_the_same() {
    let rule = |options: &mut forebay_types::MountOptions| options.validate = Validate::Immutable;
    let (cluster, s3) = Cluster::over_s3(rule, gateway_settings()).await;
    s3.put("data", "hot", b"hot bytes").unwrap();
    let get = || request("GET", "/lake/hot");
    assert_eq!(get().send(cluster.address()).await.body, b"hot bytes");
    s3.reset_counters();
    assert_eq!(get().send(cluster.address()).await.body, b"hot bytes");
    assert_eq!(request("HEAD", "/lake/hot").send(cluster.address()).await.header("content-length"), Some("9"));
    let mut forged = get();
    forged.secret = "guessed".into();
    let refused = forged.send(cluster.address()).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "SignatureDoesNotMatch"));
    let unsigned = raw(cluster.address(), b"GET /lake/hot HTTP/1.1\r\nHost: x\r\n\r\n", false).await.unwrap();
    assert_eq!((unsigned.status, unsigned.code().as_str()), (403, "AccessDenied"));
    assert_eq!(s3.counters().requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn overwritten_past_the_gateway_is_never_stale_and_never_mixed() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    for seed in 0..20 {
        let body = vec![seed; 2_000_000 + usize::from(seed) * 100_000];
        s3.put("data", "over", &body).unwrap();
        let answer = request("GET", "/lake/over").send(cluster.address()).await;
        assert!(answer.body == body, "version {seed}: {} bytes of {:?}", answer.body.len(), answer.body.first());
    }
}

/// Objects overwritten past the gateway again and again, under readers: each answer is of one version, and no older than
/// the rule lets it be.
async fn overwritten_under_readers(rule: Validate, stale_for: std::time::Duration) {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
    use std::time::{Duration, Instant};
    let (cluster, s3) = Cluster::over_s3(|options| options.validate = rule, gateway_settings()).await;
    let (at, s3) = (cluster.address(), Arc::new(s3));
    // Two pieces of an answer, of which only the first is read with the version.
    let body = |version: u8| vec![version; 1_500_000 + usize::from(version) * 1000];
    s3.put("data", "over", &body(0)).unwrap();
    let written = Arc::new(parking_lot::Mutex::new(vec![Instant::now()]));
    let (done, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (written, done, answers) = (Arc::clone(&written), Arc::clone(&done), Arc::clone(&answers));
            tokio::spawn(async move {
                let mut last = 0;
                while !done.load(SeqCst) {
                    let asked = Instant::now();
                    let text = request("GET", "/lake/over").head(at);
                    // One that is overwritten while it is under way may be broken off; it is never another.
                    let Some(answer) = raw(at, text.as_bytes(), false).await else { continue };
                    if answer.status != 200 {
                        assert_eq!(answer.status, 503, "{}", answer.text());
                        continue;
                    }
                    let version = answer.body[0];
                    let whole = vec![version; 1_500_000 + usize::from(version) * 1000];
                    assert!(answer.body == whole, "a mixture, or a part, of version {version}");
                    // The version that followed it was written, and long enough ago to be seen?
                    let next = written.lock().get(usize::from(version) + 1).copied();
                    assert!(next.is_none_or(|next| next + stale_for >= asked), "version {version} is stale");
                    assert!(version >= last || stale_for > Duration::ZERO, "back in time");
                    last = version;
                    answers.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    for version in 1..30 {
        let (s3, data) = (Arc::clone(&s3), body(version));
        tokio::task::spawn_blocking(move || s3.put("data", "over", &data).unwrap()).await.unwrap();
        written.lock().push(Instant::now());
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    done.store(true, SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    assert!(answers.load(SeqCst) > 10, "{answers:?} answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn never_stale_when_every_open_asks() {
    overwritten_under_readers(Validate::Always, std::time::Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_no_longer_than_the_rule_says() {
    let ttl = std::time::Duration::from_millis(300);
    overwritten_under_readers(Validate::Ttl(ttl), ttl).await;
    // Within that time what is known is what is answered, without a question to the store.
    let rule = |options: &mut forebay_types::MountOptions| options.validate = Validate::Ttl(std::time::Duration::from_secs(60));
    let (cluster, s3) = Cluster::over_s3(rule, gateway_settings()).await;
    s3.put("data", "slow", b"first").unwrap();
    assert_eq!(request("GET", "/lake/slow").send(cluster.address()).await.body, b"first");
    s3.put("data", "slow", b"other").unwrap();
    s3.reset_counters();
    assert_eq!(request("GET", "/lake/slow").send(cluster.address()).await.body, b"first");
    assert_eq!(s3.counters().requests(), 0);
    // A write through the gateway is seen at once.
    assert_eq!(request("PUT", "/lake/slow").body("third").send(cluster.address()).await.status, 200);
    assert_eq!(request("GET", "/lake/slow").send(cluster.address()).await.body, b"third");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_object_streams() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let body = bytes(3, 90 << 20);
    s3.put("data", "large", &body).unwrap();
    for _ in 0..2 {
        let answer = request("GET", "/lake/large").send(cluster.address()).await;
        assert_eq!((answer.status, answer.body.len()), (200, body.len()));
        assert!(answer.body == body);
    }
    let answer = request("GET", "/lake/large").header("range", "bytes=67000000-68000000").send(cluster.address()).await;
    assert!(answer.body == body[67_000_000..=68_000_000], "across the border of two segments");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_reads_on_is_brought_ahead_of_it() {
    use tokio::io::AsyncWriteExt;
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "long", &bytes(4, 64 << 20)).unwrap();
    s3.reset_counters();
    let mut socket = tokio::net::TcpStream::connect(cluster.address()).await.unwrap();
    socket.write_all(request("GET", "/lake/long").head(cluster.address()).as_bytes()).await.unwrap();
    // The first request brings 16 MiB, and nobody has read more than the socket takes.
    until("more is brought", || s3.counters().bytes_out > (16 << 20) + (512 << 10)).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let ahead = s3.counters().bytes_out;
    assert!(ahead < 48 << 20, "{ahead} bytes for a client that takes none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_only_with_the_version_that_it_began_with() {
    let (cluster, s3) = Cluster::over_s3(|options| options.validate = Validate::Immutable, gateway_settings()).await;
    for size in [1000, 3_000_000] {
        let body = bytes(5, size);
        s3.put("data", &format!("half/{size}"), &body).unwrap();
        let resume = |named: &str| {
            let resumed = request("GET", &format!("/lake/half/{size}")).header("range", "bytes=600-");
            resumed.header("if-range", named).send(cluster.address())
        };
        // Of what nobody has read before, and of what is at hand.
        for _ in 0..2 {
            let other = resume("\"another\"").await;
            assert!(other.status == 200 && other.body == body && other.header("content-range").is_none(), "{}", other.status);
            let (tag, time) = (other.header("etag").unwrap(), other.header("last-modified").unwrap());
            for named in [tag, time] {
                let same = resume(named).await;
                assert!(same.status == 206 && same.body == body[600..], "{named}: {}", same.status);
            }
        }
        let head = request("HEAD", &format!("/lake/half/{size}")).header("range", "bytes=600-").header("if-range", "\"another\"");
        let head = head.send(cluster.address()).await;
        assert_eq!((head.status, head.header("content-length").unwrap()), (200, size.to_string().as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_presigned_url_needs_no_more() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "a b", b"by url").unwrap();
    let path = request("GET", "/lake/a%20b").presigned(cluster.address(), TimeDelta::minutes(5));
    let text = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nRange: bytes=3-5\r\n\r\n", cluster.address());
    let answer = raw(cluster.address(), text.as_bytes(), false).await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (206, "url"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_idle_connections_are_kept() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "x", b"x").unwrap();
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(tokio::net::TcpStream::connect(cluster.address()).await.unwrap());
    }
    use tokio::io::AsyncWriteExt;
    for round in 0..2 {
        for socket in idle.iter_mut().step_by(10) {
            socket.write_all(request("GET", "/lake/x").head(cluster.address()).as_bytes()).await.unwrap();
            let answer = crate::rig::client::read(socket, false).await.expect("the connection is kept");
            assert_eq!(answer.body, b"x", "round {round}");
        }
    }
}

/// A gateway over a store that has these versions of `key`, a request each.
async fn over_fickle(versions: &[&[u8]]) -> (Cluster, Fickle) {
    let store = Fickle::start(versions.iter().map(|bytes| bytes.to_vec()).collect()).await;
    let mut cluster = Cluster::start().await;
    cluster.mount("lake", "s3://data", &store.endpoint, |_| {}).await;
    cluster.serve(gateway_settings()).await;
    (cluster, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_what_is_overwritten_by_something_longer_is_no_wrong_request() {
    let long = bytes(3, 5000);
    let (cluster, store) = over_fickle(&[&b"short"[..], &long[..]]).await;
    let answer = request("GET", "/lake/key").header("range", "bytes=100-199").send(cluster.address()).await;
    assert_eq!((answer.status, answer.body == long[100..200]), (206, true), "{} {}", answer.head, answer.text());
    assert!(store.asked() > 1, "the short one was looked at first");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_overwritten_between_look_and_read_fails_no_condition() {
    let (cluster, _store) = over_fickle(&[&b"one"[..], &b"two"[..], &b"last"[..]]).await;
    let get = || request("GET", "/lake/key").header("if-none-match", "\"another\"");
    let answer = get().send(cluster.address()).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"last"[..]), "{}", answer.text());
    // One that is never the same twice.
    let versions: Vec<Vec<u8>> = (0..1000u32).map(|n| n.to_be_bytes().to_vec()).collect();
    let (cluster, _store) = over_fickle(&versions.iter().map(Vec::as_slice).collect::<Vec<_>>()).await;
    let answer = get().send(cluster.address()).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "SlowDown"));
}
