//! Conditional writes of temporary data.

use std::collections::HashSet;

use futures::future::join_all;
use tokio::io::AsyncWriteExt;

use crate::rig::client::{Answer, read, request};
use crate::rig::cluster::{Cluster, bytes, gateway_settings};

/// Conditions are looked at when the object is there as a whole: a value with its name, one in blocks, and a file.
const SIZES: [usize; 3] = [10, 100_000, (32 << 20) + 5];

async fn cluster() -> Cluster {
    let mut cluster = Cluster::start().await;
    cluster.serve(gateway_settings()).await;
    cluster
}

fn said(answer: &Answer) -> (u16, String) {
    (answer.status, if answer.status < 300 { String::new() } else { answer.code() })
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_string())
}

/// Puts as many objects at once as there are writers, and gives the answers of the one that did it and of all others.
async fn race(cluster: &Cluster, key: &str, name: &str, value: &str, size: usize) -> (usize, Answer, Vec<Answer>) {
    let writers = if size > 1 << 20 { 3 } else { 16 };
    let put = |writer: usize| request("PUT", key).header(name, value).body(bytes(writer as u64, size)).send(cluster.address());
    let answers = join_all((0..writers).map(put)).await;
    let (mut won, lost): (Vec<_>, Vec<_>) = answers.into_iter().enumerate().partition(|(_, answer)| answer.status == 200);
    assert_eq!(won.len(), 1, "{key}: {:?}", lost.iter().map(|(_, answer)| said(answer)).collect::<Vec<_>>());
    let (winner, answer) = won.remove(0);
    (winner, answer, lost.into_iter().map(|(_, answer)| answer).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writers_makes_an_object_and_one_replaces_it() {
    let cluster = cluster().await;
    for size in SIZES {
        let key = format!("/tmp/made/{size}/x");
        let (winner, answer, lost) = race(&cluster, &key, "if-none-match", "*", size).await;
        lost.iter().for_each(|answer| assert_eq!(said(answer), refused(412, "PreconditionFailed"), "{size}"));
        let got = request("GET", &key).send(cluster.address()).await;
        assert!(got.body == bytes(winner as u64, size), "{size}");
        assert_eq!(got.header("etag"), answer.header("etag"), "of what was written");
        // Never the same bytes, which would have the same ETag.
        for more in 1..3 {
            let etag = request("HEAD", &key).send(cluster.address()).await.header("etag").unwrap().to_string();
            let (winner, answer, lost) = race(&cluster, &key, "if-match", &etag, size + more).await;
            lost.iter().for_each(|answer| assert_eq!(said(answer), refused(412, "PreconditionFailed"), "{size}"));
            let got = request("GET", &key).send(cluster.address()).await;
            assert!(got.body == bytes(winner as u64, size + more), "{size}");
            assert_eq!(got.header("etag"), answer.header("etag"));
        }
    }
    let listed = request("GET", "/tmp?list-type=2&prefix=made%2F").send(cluster.address()).await.text();
    assert_eq!(listed.matches("<Key>").count(), SIZES.len(), "all that were made, and no drafts: {listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_writer_is_told_the_etag_of_its_own_bytes() {
    let cluster = cluster().await;
    for size in SIZES {
        let key = format!("/tmp/put/{size}/x");
        let writers = if size > 1 << 20 { 3 } else { 16 };
        let put = |writer: usize| request("PUT", &key).body(bytes(writer as u64, size)).send(cluster.address());
        let answers = join_all((0..writers).map(put)).await;
        let etags: HashSet<_> = answers.iter().map(|answer| answer.header("etag").unwrap()).collect();
        assert_eq!(etags.len(), writers, "{size}");
        let got = request("GET", &key).send(cluster.address()).await;
        let last = answers.iter().position(|answer| answer.header("etag") == got.header("etag")).expect("it is of one of them");
        assert!(got.body == bytes(last as u64, size), "{size}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_are_not_true_change_nothing() {
    let cluster = cluster().await;
    let send = async |method, path: &str, headers: &[(&str, &str)], body: &[u8]| {
        let request = headers.iter().fold(request(method, path), |request, (name, value)| request.header(name, value));
        request.body(body).send(cluster.address()).await
    };
    let none = "\"00000000000000000000000000000001\"";
    for path in ["/tmp/no/such/key", "/tmp/no", "/tmp/no/"] {
        let missing = send("PUT", path, &[("if-match", none)], b"").await;
        assert_eq!(said(&missing), refused(404, "NoSuchKey"), "{path}");
    }
    let folders = send("GET", "/tmp?list-type=2", &[], b"").await.text();
    assert!(!folders.contains("<Key>") && folders.contains("<KeyCount>0<"), "no folders are made for nothing: {folders}");
    let tag = send("PUT", "/tmp/a/x", &[], b"first").await.header("etag").unwrap().to_string();
    for wrong in [none, "\"other\"", "*"] {
        let put = send("PUT", "/tmp/a/x", &[("if-match", wrong)], b"second").await;
        assert_eq!(said(&put), refused(412, "PreconditionFailed"), "{wrong}");
    }
    for unknown in [vec![("if-none-match", tag.as_str())], vec![("if-match", tag.as_str()), ("if-none-match", "*")]] {
        assert_eq!(said(&send("PUT", "/tmp/a/x", &unknown, b"second").await), refused(501, "NotImplemented"));
    }
    // A folder is no object, and in the way of one.
    let folder = send("PUT", "/tmp/a", &[("if-none-match", "*")], b"x").await;
    assert_eq!(said(&folder), refused(409, "OperationAborted"));
    assert_eq!(said(&send("PUT", "/tmp/a/", &[("if-none-match", "*")], b"").await), refused(412, "PreconditionFailed"));
    assert_eq!(send("PUT", "/tmp/b/c/", &[("if-none-match", "*")], b"").await.status, 200);
    // Copies.
    let source = ("x-amz-copy-source", "/tmp/a/x");
    let copy = send("PUT", "/tmp/a/x2", &[source, ("if-match", &tag)], b"").await;
    assert_eq!(said(&copy), refused(404, "NoSuchKey"));
    assert_eq!(send("PUT", "/tmp/a/x2", &[source, ("if-none-match", "*")], b"").await.status, 200);
    let copy = send("PUT", "/tmp/a/x2", &[source, ("if-none-match", "*")], b"").await;
    assert_eq!(said(&copy), refused(412, "PreconditionFailed"));
    assert_eq!(send("PUT", "/tmp/a/x2", &[source, ("if-match", &tag)], b"").await.status, 200, "the same bytes, the same tag");
    // Deleting.
    let deleted = send("DELETE", "/tmp/a/x2", &[("if-match", none)], b"").await;
    assert_eq!(said(&deleted), refused(412, "PreconditionFailed"));
    assert_eq!(send("DELETE", "/tmp/a/x2", &[("if-match", &tag)], b"").await.status, 204);
    assert_eq!(send("DELETE", "/tmp/a/x2", &[("if-match", &tag)], b"").await.status, 204, "it is gone");
    assert_eq!(send("GET", "/tmp/a/x", &[], b"").await.body, b"first");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_deletes_has_conditions_of_its_own() {
    let cluster = cluster().await;
    let at = cluster.address();
    let mut tags = Vec::new();
    for key in ["a", "b", "c", "d"] {
        let put = request("PUT", &format!("/tmp/many/{key}")).body(key).send(at).await;
        tags.push(put.header("etag").unwrap().to_string());
    }
    let object = |key: &str, conditions: &str| format!("<Object><Key>many/{key}</Key>{conditions}</Object>");
    let objects = [
        object("a", &format!("<ETag>{}</ETag>", tags[0])),
        object("b", &format!("<ETag>{}</ETag>", tags[0])),
        object("c", "<VersionId>1</VersionId>"),
        object("c", &format!("<ETag>{}</ETag><Size>1</Size>", tags[2])),
        object("c", "<LastModifiedTime>Tue, 14 Nov 2023 22:13:20 GMT</LastModifiedTime>"),
        object("d", "<ETag>*</ETag>"),
        object("gone", &format!("<ETag>{}</ETag>", tags[0])),
    ];
    let done = request("POST", "/tmp?delete").body(format!("<Delete>{}</Delete>", objects.concat())).send(at).await.text();
    for key in ["a", "d", "gone"] {
        assert!(done.contains(&format!("<Deleted><Key>many/{key}</Key></Deleted>")), "{key}: {done}");
    }
    assert!(done.contains("<Error><Key>many/b</Key><Code>PreconditionFailed</Code>"), "{done}");
    assert_eq!(done.matches("<Error><Key>many/c</Key><Code>NotImplemented</Code>").count(), 3, "{done}");
    for (key, status) in [("a", 404), ("b", 200), ("c", 200), ("d", 404)] {
        assert_eq!(request("GET", &format!("/tmp/many/{key}")).send(at).await.status, status, "{key}");
    }
    assert_eq!(said(&request("DELETE", "/tmp/many/c?versionId=1").send(at).await), refused(501, "NotImplemented"));
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_in_parts_have_conditions_too() {
    let cluster = cluster().await;
    let key = "/tmp/parts/x";
    let begin = async || {
        let begun = request("POST", &format!("{key}?uploads=")).send(cluster.address()).await.text();
        let id = begun.split_once("<UploadId>").unwrap().1.split_once('<').unwrap().0.to_string();
        let part = request("PUT", &format!("{key}?partNumber=1&uploadId={id}")).body(bytes(1, 50_000));
        let etag = part.send(cluster.address()).await.header("etag").unwrap().to_string();
        let parts = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
        (id, format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"))
    };
    let complete = async |name: &str, value: &str| {
        let (id, parts) = begin().await;
        request("POST", &format!("{key}?uploadId={id}")).header(name, value).body(parts).send(cluster.address()).await
    };
    let wrong = "\"00000000000000000000000000000001\"";
    assert_eq!(said(&complete("if-match", wrong).await), refused(404, "NoSuchKey"));
    assert_eq!(complete("if-none-match", "*").await.status, 200);
    assert_eq!(said(&complete("if-none-match", "*").await), refused(412, "PreconditionFailed"));
    assert_eq!(said(&complete("if-match", wrong).await), refused(412, "PreconditionFailed"));
    let head = request("HEAD", key).send(cluster.address()).await;
    assert_eq!(complete("if-match", head.header("etag").unwrap()).await.status, 200);
    assert!(request("GET", key).send(cluster.address()).await.body == bytes(1, 50_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_of_uploads_is_bounded_and_others_wait() {
    let mut settings = gateway_settings();
    settings.upload_bytes_max = Some(1 << 20);
    let mut cluster = Cluster::start().await;
    cluster.serve(settings).await;
    let at = cluster.address();
    // It says that it brings a mebibyte, and takes its time.
    let (slow, content) = (request("PUT", "/tmp/slow").body(bytes(1, 1 << 20)), bytes(1, 1 << 20));
    let mut socket = tokio::net::TcpStream::connect(at).await.unwrap();
    socket.write_all(slow.head(at).as_bytes()).await.unwrap();
    socket.write_all(&content[..1000]).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let refused = request("PUT", "/tmp/other").body(bytes(2, 100_000)).send(at).await;
    assert_eq!(said(&refused), (503, "SlowDown".to_string()));
    // Others than uploads to temporary data are not held up.
    assert_eq!(request("GET", "/tmp?list-type=2").send(at).await.status, 200);
    let waiting = tokio::spawn(async move { request("PUT", "/tmp/other").body(bytes(2, 100_000)).send(at).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    socket.write_all(&content[1000..]).await.unwrap();
    assert_eq!(read(&mut socket, false).await.unwrap().status, 200);
    assert_eq!(waiting.await.unwrap().status, 200, "it came when there was room again");
    assert!(request("GET", "/tmp/slow").send(at).await.body == content);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_not_led_to_believe_what_is_not_so() {
    let cluster = cluster().await;
    let at = cluster.address();
    for size in [10, 100_000] {
        let put = request("PUT", "/tmp/x").body(bytes(1, size)).send(at).await;
        let (first, time) = (put.header("etag").unwrap().to_string(), "Fri, 31 Dec 2100 00:00:00 GMT");
        // 32 digits alone are taken for the MD5 of the bytes, by which uploads are found to be damaged.
        assert!(!first.trim_matches('"').bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        assert_eq!(request("PUT", "/tmp/x").body(bytes(2, size)).send(at).await.status, 200);
        // Nodes have no times: what was not changed since then is not known.
        let last = request("HEAD", "/tmp/x").send(at).await.header("last-modified").unwrap().to_string();
        for (name, value) in [("if-modified-since", last.as_str()), ("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT")] {
            let got = request("GET", "/tmp/x").header(name, value).send(at).await;
            assert!(got.status == 200 && got.body == bytes(2, size), "{name}: {}", got.status);
        }
        let copy = request("PUT", "/tmp/y").header("x-amz-copy-source", "/tmp/x");
        assert_eq!(copy.header("x-amz-copy-source-if-modified-since", time).send(at).await.status, 200);
        // A download that goes on after the object was replaced begins anew.
        for named in [first.as_str(), last.as_str()] {
            let got = request("GET", "/tmp/x").header("range", "bytes=5-").header("if-range", named).send(at).await;
            assert!(got.status == 200 && got.body == bytes(2, size), "{named}: {}", got.status);
        }
        let now = request("HEAD", "/tmp/x").send(at).await.header("etag").unwrap().to_string();
        let got = request("GET", "/tmp/x").header("range", "bytes=5-").header("if-range", &now).send(at).await;
        assert!(got.status == 206 && got.body == bytes(2, size)[5..], "{}", got.status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_what_is_being_replaced_gets_what_is_there() {
    let cluster = cluster().await;
    let at = cluster.address();
    let put = move |turn: u8| request("PUT", "/tmp/turns").body(vec![turn; 100_000]).send(at);
    assert_eq!(put(0).await.status, 200);
    let writing = tokio::spawn(async move {
        for turn in 1..=200 {
            assert_eq!(put(turn).await.status, 200);
        }
    });
    while !writing.is_finished() {
        let got = request("GET", "/tmp/turns").send(at).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert!(got.body.len() == 100_000 && got.body.iter().all(|byte| *byte == got.body[0]), "{} bytes", got.body.len());
    }
    writing.await.unwrap();
}
