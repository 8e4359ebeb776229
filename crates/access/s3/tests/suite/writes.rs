//! Writes through the gateway: acknowledged when the store has them, and by whom.

use crate::rig::client::{request, sha256};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};
use crate::rig::parrot::Parrot;

fn list(text: &str) -> Vec<String> {
    text.split("<Key>").skip(1).map(|rest| rest.split_once('<').unwrap().0.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_is_in_the_store_byte_for_byte() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    for (n, size) in [0, 1, 4096, 300_000, 9_000_000].into_iter().enumerate() {
        let body = bytes(n as u64, size);
        let answer = request("PUT", &format!("/lake/w/{n}%20x")).body(body.clone()).send(cluster.address()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        // From the store itself, past the gateway.
        let direct = reqless(&s3, &format!("/data/w/{n}%20x")).await;
        assert!(direct == body, "{size} bytes");
    }
}

/// An object as the store has it.
async fn reqless(s3: &forebay_demo::S3Server, path: &str) -> Vec<u8> {
    let mut get = request("GET", path);
    (get.id, get.secret) = (forebay_demo::ACCESS_KEY.into(), forebay_demo::SECRET_KEY.into());
    let answer = get.send(s3.address()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_early_or_is_not_what_was_said_leaves_nothing() {
    use tokio::io::AsyncWriteExt;
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let at = cluster.address();
    let body = bytes(5, 200_000);
    // Another body than the one that was signed.
    let wrong = request("PUT", "/lake/x/hash").hash(&sha256(b"another")).body(body.clone()).send(at).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "XAmzContentSHA256Mismatch"));
    // The client goes away in the middle.
    let mut socket = tokio::net::TcpStream::connect(at).await.unwrap();
    socket.write_all(request("PUT", "/lake/x/half").body(body.clone()).head(at).as_bytes()).await.unwrap();
    socket.write_all(&body[..100_000]).await.unwrap();
    drop(socket);
    // Chunks with a signature that is none of ours.
    let chunked = || {
        let chunked = request("PUT", "/lake/x/chunks").hash("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
        chunked.header("x-amz-decoded-content-length", "10").header("content-encoding", "aws-chunked")
    };
    let seed = |request: &crate::rig::client::Signed| {
        let headers = request.signed(at);
        let (_, authorization) = headers.iter().find(|(name, _)| name == "authorization").unwrap();
        authorization.rsplit_once('=').unwrap().1.to_string()
    };
    let mut forged = chunked();
    let (good, zeros) = (forged.chunk_signature(&seed(&forged), b"0123456789"), "0".repeat(64));
    forged.body = format!("a;chunk-signature={zeros}\r\n0123456789\r\n0;chunk-signature={zeros}\r\n\r\n").into_bytes();
    let refused = forged.send(at).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "SignatureDoesNotMatch"));
    let mut last_forged = chunked();
    let first = last_forged.chunk_signature(&seed(&last_forged), b"0123456789");
    last_forged.body = format!("a;chunk-signature={first}\r\n0123456789\r\n0;chunk-signature={zeros}\r\n\r\n").into_bytes();
    assert_eq!(last_forged.send(at).await.code(), "SignatureDoesNotMatch");
    assert_eq!(good.len(), 64);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(list(&request("GET", "/lake?prefix=x%2F").send(at).await.text()), Vec::<String>::new());
    assert_eq!(s3.counters().deletes, 0, "nothing had to be cleaned up");
    // And with the right signatures it is there.
    let mut right = chunked();
    let first = right.chunk_signature(&seed(&right), b"0123456789");
    let last = right.chunk_signature(&first, b"");
    right.body = format!("a;chunk-signature={first}\r\n0123456789\r\n0;chunk-signature={last}\r\n\r\n").into_bytes();
    let answer = right.send(at).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(request("GET", "/lake/x/chunks").send(at).await.body, b"0123456789");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_be_limited_to_mounts_and_to_reading() {
    let mut settings = gateway_settings();
    settings.keys.push(forebay_s3::AccessRule::new("READER", "s").read_only());
    settings.keys.push(forebay_s3::AccessRule::new("ELSEWHERE", "s").only(vec!["other".parse().unwrap()]));
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    cluster.mount("other", "s3://other", &s3.endpoint(), |_| {}).await;
    s3.put("data", "a", b"a").unwrap();
    let at = cluster.address();
    let by = |id: &str, mut request: crate::rig::client::Signed| {
        (request.id, request.secret) = (id.into(), "s".into());
        request
    };
    assert_eq!(by("READER", request("GET", "/lake/a")).send(at).await.status, 200);
    for write in
        [request("PUT", "/lake/b").body("b"), request("DELETE", "/lake/a"), request("POST", "/lake?delete").body("<Delete/>")]
    {
        assert_eq!(by("READER", write).send(at).await.code(), "AccessDenied");
    }
    assert_eq!(by("ELSEWHERE", request("PUT", "/other/b").body("b")).send(at).await.status, 200);
    for refused in [request("GET", "/lake/a"), request("GET", "/lake"), request("PUT", "/lake/x").body("x")] {
        assert_eq!(by("ELSEWHERE", refused).send(at).await.code(), "AccessDenied");
    }
    for stolen in ["/other/stolen", "/other/stolen?partNumber=1&uploadId=u"] {
        let copy = request("PUT", stolen).header("x-amz-copy-source", "/lake/a");
        assert_eq!(by("ELSEWHERE", copy).send(at).await.code(), "AccessDenied", "{stolen}");
    }
    let buckets = by("ELSEWHERE", request("GET", "/")).send(at).await.text();
    assert!(buckets.contains("<Name>other</Name>") && !buckets.contains("lake"), "{buckets}");
    // Copies between mounts of one store, by who may.
    let copied = request("PUT", "/other/copy").header("x-amz-copy-source", "/lake/a").send(at).await;
    assert_eq!(copied.status, 200, "{}", copied.text());
    assert_eq!(request("GET", "/other/copy").send(at).await.body, b"a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_mount_is_not_written() {
    let (cluster, s3) = Cluster::over_s3(|options| options.read_only = true, gateway_settings()).await;
    s3.put("data", "a", b"a").unwrap();
    s3.reset_counters();
    let many = "<Delete><Object><Key>a</Key></Object></Delete>";
    for write in [request("PUT", "/lake/b").body("b"), request("DELETE", "/lake/a"), request("POST", "/lake?delete").body(many)] {
        assert_eq!(write.send(cluster.address()).await.code(), "AccessDenied");
    }
    assert_eq!(s3.counters().requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_another_store_is_of_the_version_that_is_named_or_none() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    s3.put("data", "k", b"now").unwrap();
    let copy = |source: &str| request("PUT", "/tmp/k").header("x-amz-copy-source", source).send(cluster.address());
    for version in ["before", "null"] {
        let refused = copy(&format!("/lake/k?versionId={version}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (501, "NotImplemented"), "{version}");
    }
    assert_eq!(request("GET", "/tmp/k").send(cluster.address()).await.code(), "NoSuchKey");
    assert_eq!(copy("/lake/k").await.status, 200);
    assert_eq!(request("GET", "/tmp/k").send(cluster.address()).await.body, b"now");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_into_another_store_takes_metadata_and_tags_along() {
    let tags = "<Tagging><TagSet><Tag><Key>a b</Key><Value>c&amp;d</Value></Tag></TagSet></Tagging>";
    let headers = "etag: \"e\"\r\nx-amz-meta-mine: yes\r\ncache-control: no-store\r\n";
    let (from, to) = (Parrot::start_with(tags, headers).await, Parrot::start("<CopyObjectResult/>").await);
    let mut cluster = Cluster::start().await;
    cluster.mount("source", "s3://source", &from.endpoint, |_| {}).await;
    cluster.mount("target", "s3://target", &to.endpoint, |_| {}).await;
    cluster.serve(gateway_settings()).await;
    let given = [("x-amz-tagging", "given=1"), ("x-amz-meta-given", "1"), ("content-language", "de")];
    for (directives, written, asks) in [
        (&[] as &[&str], ["x-amz-tagging: a%20b=c%26d\r", "x-amz-meta-mine: yes\r", "cache-control: no-store\r"], true),
        (
            &["x-amz-tagging-directive", "x-amz-metadata-directive"][..],
            ["x-amz-tagging: given=1\r", "x-amz-meta-given: 1\r", "content-language: de\r"],
            false,
        ),
    ] {
        from.heard();
        to.heard();
        let copy = request("PUT", "/target/k").header("x-amz-copy-source", "/source/k");
        let copy = given.iter().fold(copy, |copy, (name, value)| copy.header(name, value));
        let copy = directives.iter().fold(copy, |copy, name| copy.header(name, "REPLACE"));
        let answer = copy.send(cluster.address()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let heard = to.heard();
        let put = heard.iter().find(|head| head.starts_with("put /target/k")).unwrap();
        for header in written {
            assert!(format!("{put}\r").contains(header), "{header}: {put}");
        }
        let is_given = ["given", "content-language"].iter().any(|name| put.contains(name));
        assert_ne!(is_given, asks, "{put}");
        assert_eq!(from.heard().iter().any(|head| head.contains("?tagging")), asks);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_refused_for_its_tags_says_which_right_is_missing() {
    let (tags, etag) = ("<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>", "etag: \"e\"\r\n");
    let silent = Parrot::start_refusing(tags, etag, Some("?tagging")).await;
    let (tagged, open) = (Parrot::start_with(tags, etag).await, Parrot::start("<CopyObjectResult/>").await);
    let closed = Parrot::start_refusing("<CopyObjectResult/>", "", Some("x-amz-tagging: ")).await;
    let mut cluster = Cluster::start().await;
    for (name, store) in [("silent", &silent), ("tagged", &tagged), ("open", &open), ("closed", &closed)] {
        cluster.mount(name, &format!("s3://{name}"), &store.endpoint, |_| {}).await;
    }
    cluster.serve(gateway_settings()).await;
    for (source, target, right) in [("silent", "open", "s3:GetObjectTagging"), ("tagged", "closed", "s3:PutObjectTagging")] {
        let (source, target) = (format!("/{source}/k"), format!("/{target}/k"));
        let copy = || request("PUT", &target).header("x-amz-copy-source", &source);
        let refused = copy().send(cluster.address()).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "AccessDenied"), "{source}");
        for words in [right, "x-amz-tagging-directive: REPLACE"] {
            assert!(refused.text().contains(words), "{words}: {}", refused.text());
        }
        let copied = copy().header("x-amz-tagging-directive", "REPLACE").send(cluster.address()).await;
        assert_eq!(copied.status, 200, "{}", copied.text());
    }
    assert_eq!(open.heard().iter().filter(|head| head.starts_with("put ")).count(), 1, "a copy that is refused writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_deletes_that_the_store_refuses_is_not_to_be_sent_again() {
    let (cluster, s3) = Cluster::over_s3(|_| {}, gateway_settings()).await;
    let list = "<Delete><Object><Key>a</Key></Object></Delete>";
    for (status, code, said) in
        [(403, "AccessDenied", "AccessDenied"), (400, "MalformedXML", "InvalidRequest"), (503, "SlowDown", "SlowDown")]
    {
        s3.inject(forebay_demo::Fault::Refused(status, code), 1);
        let answer = request("POST", "/lake?delete").body(list).send(cluster.address()).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, said), "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_not_told_that_a_body_ends_where_it_breaks_off() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (began, ended) = (began.clone(), ended.clone());
            tokio::spawn(async move {
                let mut all = Vec::new();
                while !all.windows(4).any(|four: &[u8]| four == b"\r\n\r\n") {
                    if socket.read_buf(&mut all).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                if !all.starts_with(b"PUT ") {
                    let listing = "HTTP/1.1 200 OK\r\ncontent-length: 19\r\nconnection: close\r\n\r\n<ListBucketResult/>";
                    let _ = socket.write_all(listing.as_bytes()).await;
                    return;
                }
                let _ = began.send(());
                let end = loop {
                    match socket.read_buf(&mut all).await {
                        Ok(0) => break None,
                        Ok(_) => {}
                        Err(error) => break Some(error.kind()),
                    }
                };
                let _ = ended.send(end);
            });
        }
    });
    let mut cluster = Cluster::start().await;
    cluster.mount("lake", "s3://data", &endpoint, |_| {}).await;
    cluster.serve(gateway_settings()).await;
    let put = request("PUT", "/lake/half").hash("UNSIGNED-PAYLOAD").body(bytes(6, 200_000));
    let mut socket = TcpStream::connect(cluster.address()).await.unwrap();
    socket.write_all(put.head(cluster.address()).as_bytes()).await.unwrap();
    socket.write_all(&put.body[..100_000]).await.unwrap();
    // A client that has gone before is nobody whose body is begun.
    begins.recv().await.unwrap();
    drop(socket);
    assert_eq!(ends.recv().await, Some(Some(std::io::ErrorKind::ConnectionReset)));
}
