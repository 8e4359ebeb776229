use chrono::TimeDelta;
use forebay_types::Validate;

use crate::client::{raw, request};
use crate::cluster::{Cluster, bytes, gateway_settings};

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
            let answer = crate::client::read(socket, false).await.expect("the connection is kept");
            assert_eq!(answer.body, b"x", "round {round}");
        }
    }
}
